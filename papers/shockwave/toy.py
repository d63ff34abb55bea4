"""Three jobs on four GPUs in whole rounds: the toy by which Shockwave, section 2, shows what a fairness filter does.

Jobs slow down linearly on fewer GPUs than they ask for, as in Themis.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil


@dataclass(frozen=True, slots=True)
class ToyJob:
    """A job of one iteration.

    Attributes
    ----------
    name : one letter
    serial : rounds on one GPU; its work in GPU-rounds
    gpus : asked for, more are of no use
    """

    name: str
    serial: int
    gpus: int


JOBS = (ToyJob("A", 12, 3), ToyJob("B", 8, 2), ToyJob("C", 6, 2))
GPUS = 4
"""Shockwave, caption of Figure 1."""

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """A schedule's figures.

    Attributes
    ----------
    ends : rounds that each job takes until it ends
    """

    ends: Counts

    @property
    def rho(self) -> tuple[float, ...]:
        """Finish-time fairness of each job against an equal share of the GPUs, serial x jobs / GPUs rounds."""
        return tuple(end * GPUS / (job.serial * len(JOBS)) for job, end in zip(JOBS, self.ends, strict=True))

    @property
    def worst_rho(self) -> float:
        """The largest rho."""
        return max(self.rho)

    @property
    def worst_requested_rho(self) -> float:
        """The largest rho against the run time on the GPUs asked for x jobs, as section 2.1 defines it in words."""
        return max(end * job.gpus / (job.serial * len(JOBS)) for job, end in zip(JOBS, self.ends, strict=True))

    @property
    def mean_jct(self) -> float:
        """Mean job completion time in rounds."""
        return sum(self.ends) / len(self.ends)

    @property
    def makespan(self) -> int:
        """Rounds until the last job ends."""
        return max(self.ends)


def score(schedule: Sequence[str]) -> Score:
    """Score a schedule: for each GPU a letter a round, a dot where it idles.

    Raises
    ------
    ValueError
        It is not for these GPUs, gives a job more GPUs than it asks for, or not exactly its work.

    >>> score(["BBBAAAA", "BBBAAAA", "CCCAAAA", "CCCBB.."]).ends
    (7, 5, 3)
    """
    rounds = _grants_of(schedule)
    ends = []
    for i, job in enumerate(JOBS):
        received = [granted[i] for granted in rounds]
        if max(received) > job.gpus or sum(received) != job.serial:
            raise ValueError(f"job {job.name} receives {received}; it takes {job.gpus} a round, {job.serial} in all")
        ends.append(max(at for at, count in enumerate(received) if count) + 1)
    return Score(tuple(ends))


def leaves_filter_at(schedule: Sequence[str], shares: Sequence[Fraction]) -> int | None:
    """First round of a schedule that no filter with these shares grants, whatever its ties; None: it keeps to them."""
    attained = (0,) * len(JOBS)
    for at, granted in enumerate(_grants_of(schedule)):
        if granted not in set(_filtered_grants(shares[min(at, len(shares) - 1)], attained)):
            return at
        attained = _sum(attained, granted)
    return None


def filter_scores(shares: Sequence[Fraction]) -> frozenset[Score]:
    """What a fairness filter can lead to, over all ways to break its ties.

    In each round the share of the unfinished jobs (rounded up) that attained the fewest GPU-rounds so far passes.
    All splits of GPUs among them are equally efficient here: one at a time goes to the job that attained least,
    this round included. What they leave goes to the others in the same way.

    Parameters
    ----------
    shares : passing the filter in each round; the last one holds from there on
    """
    return _explore(lambda at, attained: _filtered_grants(shares[min(at, len(shares) - 1)], attained))


def adaptive_scores(choices: Sequence[Fraction]) -> frozenset[Score]:
    """What `filter_scores` can lead to if any of the shares may be taken in any round."""
    return _explore(lambda _, attained: (x for share in choices for x in _filtered_grants(share, attained)))


def all_scores() -> frozenset[Score]:
    """All that schedules without idle GPUs can lead to; idling never ends a job earlier here."""
    return _explore(lambda _, attained: _all_grants(attained))


def _explore(grants: Callable[[int, Counts], Iterator[Counts]]) -> frozenset[Score]:
    """Follow all grants from round to round until every job has ended."""
    start = (0,) * len(JOBS)
    states, at = {(start, start)}, 0
    found: set[tuple[Counts, Counts]] = set()
    while states:
        after: set[tuple[Counts, Counts]] = set()
        for attained, ends in states:
            for granted in set(grants(at, attained)):
                now = _sum(attained, granted)
                ended = tuple(
                    end or (at + 1 if done == job.serial else 0) for job, end, done in zip(JOBS, ends, now, strict=True)
                )
                (found if all(ended) else after).add((now, ended))
        states, at = after, at + 1
    return frozenset(Score(ends) for _, ends in found)


def _grants_of(schedule: Sequence[str]) -> list[Counts]:
    """GPUs of each job by round."""
    if len(schedule) != GPUS:
        raise ValueError(f"the schedule is for {len(schedule)} GPUs; give one for {GPUS}")
    return [tuple(column.count(job.name) for job in JOBS) for column in zip(*schedule, strict=True)]


def _sum(attained: Counts, granted: Counts) -> Counts:
    return tuple(done + more for done, more in zip(attained, granted, strict=True))


def _filtered_grants(share: Fraction, attained: Counts) -> Iterator[Counts]:
    active = [i for i, job in enumerate(JOBS) if attained[i] < job.serial]
    for passing in combinations(active, ceil(share * len(active))):
        rest = [i for i in active if i not in passing]
        if all(attained[i] <= attained[j] for i in passing for j in rest):
            yield from _hand_out((passing, rest), attained, (0,) * len(JOBS))


def _hand_out(groups: tuple[Sequence[int], ...], attained: Counts, granted: Counts) -> Iterator[Counts]:
    """Give the GPUs one at a time to whoever has least, the first group first; all ways where several have."""
    room = _room(attained)
    for group in groups:
        wanting = [i for i in group if granted[i] < room[i]]
        if wanting and sum(granted) < GPUS:
            least = min(attained[i] + granted[i] for i in wanting)
            for i in wanting:
                if attained[i] + granted[i] == least:
                    more = tuple(x + (j == i) for j, x in enumerate(granted))
                    yield from _hand_out(groups, attained, more)
            return
    yield granted


def _all_grants(attained: Counts) -> Iterator[Counts]:
    room = _room(attained)
    most = min(GPUS, sum(room))
    return (granted for granted in product(*(range(x + 1) for x in room)) if sum(granted) == most)


def _room(attained: Counts) -> Counts:
    """GPUs that each job can use in a round."""
    return tuple(min(job.gpus, job.serial - done) for job, done in zip(JOBS, attained, strict=True))
