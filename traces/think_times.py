"""Which job of a trace begot which: the closed loop of SIA, sections 2 and 5.4, read off users and ends of jobs."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Succession
from jobcast.traces.table import Trace

MAX_THINK_S = 4 * 3600.0
"""Longest think time: within a working day, short of the night, after which the calendar decides."""
BURST_GAP_S = 60.0
"""Jobs of one person and tag submitted no further apart were launched together."""
TIMER_GAPS = 8
"""Gaps between launches from which on a person's may be told to keep to a timer."""
TIMER_TOLERANCE = 0.05
"""Of a period, by which a launch may miss it."""
TIMER_SHARE = 0.8
"""Of a person's gaps that are whole periods where a timer launches; a person's own are so by chance in 1 of 10."""


@dataclass(frozen=True, slots=True)
class Successors:
    """What follows what.

    Attributes
    ----------
    successions : job id -> what it follows, for the jobs that follow any
    timers : persons who keep to a timer, so that their jobs follow none
    """

    successions: Mapping[str, Succession]
    timers: int

    @property
    def mean_think_s(self) -> float:
        """Mean think time of the jobs that follow others, seconds; NaN without any."""
        thinks_s = [one.think_s for one in self.successions.values()]
        return sum(thinks_s) / len(thinks_s) if thinks_s else float("nan")


@dataclass(frozen=True, slots=True)
class _Launch:
    """Jobs that one person submitted together, by position in the trace; when the first of them came."""

    begin_s: float
    tag: str
    jobs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Times:
    """Submissions and ends by position in the trace, seconds from the epoch."""

    submit_s: Sequence[float]
    end_s: Sequence[float]


def find_successors(trace: Trace, max_think_s: float = MAX_THINK_S) -> Successors:
    """Find the jobs that somebody submitted after having awaited others.

    A person is a pool and a user. Jobs submitted together (same tag, at most `BURST_GAP_S` apart) are a launch. It
    follows the job of its tag that had ended last by then, or, where none of that tag ended within `max_think_s`, the
    person's job that had; and with it those of the same launch that had ended too, for results of a launch are looked
    at together. The think time runs from the last end to the submission. Launches of persons who keep to a timer
    follow none: their gaps are whole multiples of one period, whatever the run times.

    Parameters
    ----------
    trace : with users; ends are its end times, else submission (or start) + duration
    max_think_s : longest think time of a launch, seconds

    Raises
    ------
    TraceError
        No job names its user.
    ConfigError
        `max_think_s` is not positive.
    """
    if not 0 < max_think_s < float("inf"):
        raise ConfigError(f"--max-think must be a positive number of seconds, got {max_think_s:g}")
    jobs, _ = trace.to_jobs()
    people: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        if job.user:
            # one name in two pools may be two people
            people[job.pool, job.user].append(place)
    if not people:
        raise TraceError(
            f"{trace.source.path}: no job names its user, so that nobody's next job is known; "
            "give a column user, or replay without --closed-loop"
        )
    times = _Times(trace.submit_s.tolist(), trace.end_s.tolist())
    found: dict[str, Succession] = {}
    timers = 0
    for places in people.values():
        launches = list(_launches(places, [jobs[place].tag for place in places], times.submit_s))
        # a robot awaits nothing, and would tie its jobs to others by chance
        if keeps_to_a_timer([launch.begin_s for launch in launches]):
            timers += 1
            continue
        for place, awaited in _awaited(launches, times, max_think_s):
            # results are looked at when the last of them is there
            think_s = times.submit_s[place] - max(times.end_s[other] for other in awaited)
            found[jobs[place].job_id] = Succession(tuple(jobs[other].job_id for other in awaited), think_s)
    return Successors(found, timers)


def keeps_to_a_timer(launches_s: Sequence[float]) -> bool:
    """Whether nearly all gaps between launches (ascending, seconds) are whole multiples of their median.

    >>> keeps_to_a_timer([0, 600, 1203, 1800, 3001, 3600, 4204, 4800, 5400])
    True
    >>> keeps_to_a_timer([0, 700, 1203, 1500, 3001, 3900, 4204, 5000, 5400])
    False
    """
    gaps_s = [after - before for before, after in pairwise(launches_s)]
    if len(gaps_s) < TIMER_GAPS:
        return False
    # the median: a timer that skips a few turns leaves it alone
    period_s = median(gaps_s)
    periods = [gap_s / period_s for gap_s in gaps_s]
    # a gap near 0 is a whole number of periods, too, but of none
    whole = sum(number >= 1 / 2 and abs(number - round(number)) <= TIMER_TOLERANCE for number in periods)
    return whole >= TIMER_SHARE * len(gaps_s)


def _launches(places: Sequence[int], tags: Sequence[str], submit_s: Sequence[float]) -> Iterator[_Launch]:
    """One person's jobs, in order of submission, as launches."""
    own: list[int] = []
    tag = ""
    for place, its_tag in zip(places, tags, strict=True):
        # from job to job, not from the first: a long sweep is one launch
        if own and (its_tag != tag or submit_s[place] - submit_s[own[-1]] > BURST_GAP_S):
            yield _Launch(submit_s[own[0]], tag, tuple(own))
            own = []
        tag = its_tag
        own.append(place)
    yield _Launch(submit_s[own[0]], tag, tuple(own))


def _awaited(launches: Sequence[_Launch], times: _Times, max_think_s: float) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each job of launches that follow any, with the jobs that it awaits; by position, in order of submission."""
    ended = [(times.end_s[place], place, launch) for launch in launches for place in launch.jobs]
    # launches do not compare, so the key stops before them
    ended.sort(key=lambda one: one[:2])
    by_tag: dict[str, list[tuple[float, int, _Launch]]] = defaultdict(list)
    for one in ended:
        by_tag[one[2].tag].append(one)
    for launch in launches:
        begin_s = launch.begin_s
        # same tag first: people look at what they work on
        last = _last_ended(by_tag[launch.tag], launch, max_think_s) or _last_ended(ended, launch, max_think_s)
        if last is None:
            continue
        awaited = tuple(place for place in last.jobs if times.end_s[place] <= begin_s)
        for place in launch.jobs:
            yield place, awaited


def _last_ended(ended: Sequence[tuple[float, int, _Launch]], launch: _Launch, max_think_s: float) -> _Launch | None:
    """Launch of the job that had ended last when another launch began, if that was recently enough and came before."""
    index = bisect_right(ended, launch.begin_s, key=lambda one: one[0]) - 1
    if index < 0:
        return None
    end_s, place, other = ended[index]
    # a job cannot await what was launched after it
    return other if launch.begin_s - end_s <= max_think_s and place < launch.jobs[0] else None
