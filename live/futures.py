"""Futures of a whole queue, played now and then, and answers from the last ones: what a long-lived process holds.

One copy of the run is played a future, from which the ends of all jobs are read. Playing takes seconds, an answer from
what was played well under a millisecond, so that one thread may refresh while others ask.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Job
from jobcast.domain.times import iso
from jobcast.live.completion_forecasts import Draws, completions
from jobcast.models.completion.intervals import Interval, IntervalTracker, Position
from jobcast.simulator.engine import Simulation

MOMENT_S = 1.0
"""What is left at least of a wait or a run that is not over."""
LAST = 500
"""Outcomes that are kept: those further back weigh nothing."""
AGAIN_S = 3600.0
"""After which futures of a job count again, and then whenever it has waited as long once more: who is asked about for
days is told from where it stands."""
AGAIN = np.arange(0.5, 20.0) / np.arange(19.5, 0.0, -1.0)
"""A start that is late comes as likely within as long again as not: quantiles of Pareto's law of index 1, less 1.
Gott, Implications of the Copernican principle for our future prospects, Nature 363, 1993."""
SINGLE = {0.5: 0.57, 0.9: 0.95}
"""By level that is told, the level of single jobs that reaches as far: those of a queue are missed together."""
Asked = tuple[float, Floats]
"""When futures were played, seconds from the epoch, and what was left in each, (n_futures,) seconds."""
Came = Mapping[str, tuple[float, float]]
"""By job id, first start and end, seconds from the epoch; NaN for what has not come, or never will."""


class Spread(NamedTuple):
    """When something will happen, seconds from now on.

    Attributes
    ----------
    intervals : one a level
    drawn_s : in each future in which it has not happened yet, (n_futures,)
    """

    intervals: tuple[Interval, ...]
    drawn_s: Floats

    @property
    def median_s(self) -> float:
        """Of the futures; where outcomes have moved the narrowest interval off it, the end of that next to it."""
        return self.intervals[0].nearest_s(float(np.median(self.drawn_s)))


class FutureAnswer(NamedTuple):
    """What is told of a job.

    Attributes
    ----------
    start : until it is first given GPUs; None for a job that had GPUs when futures were played
    end : until it ends
    age_s : seconds since futures were played
    """

    start: Spread | None
    end: Spread
    age_s: float


@dataclass(eq=False)
class Kind:
    """How starts, or ends, came against the futures that were drawn of them.

    Attributes
    ----------
    tracker : of how far intervals reach
    later : what is left of what should have come in all futures, as shares of how late it is, (n,); a moment by default
    """

    later: Floats = field(default_factory=lambda: np.zeros(1))
    tracker: IntervalTracker = field(default_factory=lambda: IntervalTracker(tuple(SINGLE.values())))
    _asked: dict[str, list[Asked]] = field(default_factory=dict, init=False)

    def learn(self, drawn_s: Mapping[str, Floats], came_s: Mapping[str, float], now_s: float) -> list[Position]:
        """Learn of those that have come; positions as of now of those that may still come, `drawn_s` by id, come back.

        Instants in seconds from the epoch.
        """
        for name, at_s in drawn_s.items():
            asked = self._asked.setdefault(name, [])
            if not asked or now_s - asked[0][0] >= max(AGAIN_S, 2.0 * (asked[-1][0] - asked[0][0])):
                asked.append((now_s, at_s - now_s))
        over = {name: self._asked.pop(name) for name in list(self._asked) if name not in drawn_s}
        # Of one that was cancelled while it waited nothing is learnt.
        came = {name: one for name, one in over.items() if isfinite(came_s.get(name, np.nan))}
        self.tracker.known = [*self.tracker.known, *self._positions(came, came_s, np.inf)][-LAST:]
        return self._positions(self._asked, {}, now_s)

    @property
    def awaited(self) -> set[str]:
        """Jobs of which it had not come when it was last learnt."""
        return set(self._asked)

    def _positions(self, asked: Mapping[str, list[Asked]], came_s: Mapping[str, float], now_s: float) -> list[Position]:
        rows = [(at_s, came_s.get(name, np.inf) - at_s, left_s) for name, of in asked.items() for at_s, left_s in of]
        rows.sort(key=lambda row: row[0])
        asked_s, took_s = (np.array([row[place] for row in rows]) for place in (0, 1))
        lengths_s = [np.maximum(left_s, MOMENT_S) for *_, left_s in rows]
        return self.tracker.positions(asked_s, np.maximum(took_s, MOMENT_S), lengths_s, now_s)

    def spread(self, at_s: Floats, now_s: float, open_now: list[Position]) -> Spread:
        """From instants in futures, (n_futures,), of those in which it has not happened yet; else see `later`."""
        later_s = at_s[at_s > now_s]
        left_s = later_s - now_s if len(later_s) else (now_s - at_s.max()) * self.later
        left_s = np.maximum(left_s, MOMENT_S)
        found = zip(SINGLE, self.tracker.intervals(left_s, open_now), strict=True)
        return Spread(tuple(replace(one, level=level) for level, one in found), left_s)


class _Played(NamedTuple):
    """Of the jobs that were active: (n_futures,) starts and ends of each by id, seconds from the epoch."""

    at_s: float
    start_s: dict[str, Floats]
    end_s: dict[str, Floats]
    open_starts: list[Position]
    open_ends: list[Position]


@dataclass(eq=False)
class Futures:
    """Plays futures of a run under its policy, and answers from them.

    Attributes
    ----------
    draws : of what may be
    starts, ends : what was learnt of either, from where each came among the futures that were drawn of it
    """

    draws: Draws
    starts: Kind = field(default_factory=lambda: Kind(AGAIN))
    ends: Kind = field(default_factory=Kind)
    _played: _Played | None = field(default=None, init=False)

    def refresh(
        self, run: Simulation, came: Came | None = None, later: Sequence[Job] = (), untold: Container[str] = ()
    ) -> None:
        """Play futures from the instant that a run has come to; the run is left as it is. Raises as its policy does.

        Where the run goes on meanwhile in another thread, pass a copy (`run.fork()`).

        Parameters
        ----------
        came : what has come of jobs that are not active any more; by default as the run has it
        later : jobs that may start later, of which the draws tell
        untold : ids of jobs of which nobody knows when they will end
        """
        there = list(run.cluster.active.values())
        active = [*there, *later]
        played = [completions(run, [job.seq for job in active], one) for one in self.draws(run, run.stream.arrived)]
        told = [job for job in active if job.job_id not in untold]
        end_s = {job.job_id: np.array([one[job.seq].end_s for one in played]) for job in told}
        waiting = [*(job for job in there if isnan(run.start_s(job.seq))), *later]
        start_s = {job.job_id: np.array([one[job.seq].start_s for one in played]) for job in waiting}
        if came is None:
            came = {job.job_id: (run.start_s(job.seq), run.end_s(job.seq)) for job in run.jobs[: run.stream.arrived]}
        starts, ends = ({name: one[which] for name, one in came.items()} for which in (0, 1))
        open_starts = self.starts.learn(start_s, starts, run.now_s)
        open_ends = self.ends.learn(end_s, ends, run.now_s)
        # In one go: whoever asks meanwhile sees the futures before or these, nothing in between.
        self._played = _Played(run.now_s, start_s, end_s, open_starts, open_ends)

    @property
    def awaited(self) -> set[str]:
        """Jobs of which something was still to come when futures were played."""
        return self.starts.awaited | self.ends.awaited

    def age_s(self, now_s: float) -> float:
        """Seconds since futures were played, NaN before the first ones."""
        return np.nan if self._played is None else now_s - self._played.at_s

    def knows(self, job_id: str, waits: bool = False) -> bool:
        """Whether a job was active when futures were played, and waited then where it `waits`."""
        return self._played is not None and job_id in (self._played.start_s if waits else self._played.end_s)

    def answer(self, job_id: str, now_s: float, started_s: float = np.nan) -> FutureAnswer:
        """When a job will start and end, from the last futures in which it has not done so yet.

        `started_s`: when a job started, NaN where it waits. Raises TraceError for a job that was not active then.
        """
        played = self._played
        if played is None or job_id not in played.end_s:
            when = "yet" if played is None else f"at {iso(played.at_s)}"
            raise TraceError(f"job {job_id}: no futures of it were played {when}; refresh, or pass an active job's id")
        start_s, end_s = played.start_s.get(job_id), played.end_s[job_id]
        if start_s is not None and not isnan(started_s):
            # It waited then: now that it has started it runs as long as in each of the futures.
            return self.about(None, started_s + end_s - start_s, now_s)
        return self.about(start_s, end_s, now_s)

    def about(self, start_s: Floats | None, end_s: Floats, now_s: float) -> FutureAnswer:
        """What futures of a job say, (n_futures,) starts and ends, by all that was learnt when they were last played.

        `start_s`: None for a job that has started.
        """
        played = self._played
        open_starts, open_ends = ([], []) if played is None else (played.open_starts, played.open_ends)
        if start_s is None:
            return FutureAnswer(None, self.ends.spread(end_s, now_s, open_ends), self.age_s(now_s))
        start = self.starts.spread(start_s, now_s, open_starts)
        # It ends as in the futures in which it has not started either; where all have it behind them, after it does.
        waits = start_s > now_s
        end_s = end_s[waits] if waits.any() else now_s + start.median_s + end_s - start_s
        end = self.ends.spread(end_s, now_s, open_ends)
        # Reaches of starts and of ends are learnt apart, but nobody ends before it starts.
        both = zip(start.intervals, end.intervals, strict=True)
        later = (replace(b, low_s=max(a.low_s, b.low_s), high_s=max(a.high_s, b.high_s)) for a, b in both)
        return FutureAnswer(start, end._replace(intervals=tuple(later)), self.age_s(now_s))
