"""Futures of a whole queue, played now and then, and answers from the last ones: what a long-lived process holds.

One copy of the run is played a future, from which the ends of all jobs are read. Playing takes seconds, an answer from
what was played well under a millisecond, so that one thread may refresh while others ask.
"""

from dataclasses import dataclass, field
from math import isnan
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TraceError
from jobcast.domain.times import iso
from jobcast.live.completion_forecasts import Draws, completions
from jobcast.models.completion.intervals import Interval, IntervalTracker, Position
from jobcast.simulator.engine import Simulation

MOMENT_S = 1.0
"""What is left at least of a wait or a run that is not over."""


class FutureAnswer(NamedTuple):
    """What is told of a job.

    Attributes
    ----------
    start, end : seconds from now on until it is first given GPUs, and until it ends, one interval a level; `start` is
        empty for a job that had GPUs when futures were played
    median_s : of the time until it ends
    age_s : seconds since futures were played
    """

    start: tuple[Interval, ...]
    end: tuple[Interval, ...]
    median_s: float
    age_s: float


class _Played(NamedTuple):
    """Of the jobs that were active: (n_futures,) starts and ends of each by id, seconds from the epoch."""

    at_s: float
    start_s: dict[str, Floats]
    end_s: dict[str, Floats]
    open_now: list[Position]


@dataclass(eq=False)
class Futures:
    """Plays futures of a run under its policy, and answers from them.

    Attributes
    ----------
    draws : of what may be
    tracker : of how far intervals reach; it learns where jobs ended among the first futures that were drawn of each
    """

    draws: Draws
    tracker: IntervalTracker = field(default_factory=IntervalTracker)
    _played: _Played | None = field(default=None, init=False)
    _first: dict[int, tuple[float, Floats]] = field(default_factory=dict, init=False)

    def refresh(self, run: Simulation) -> None:
        """Play futures from the instant that a run has come to; the run is left as it is. Raises as its policy does.

        Where the run goes on meanwhile in another thread, pass a copy (`run.fork()`).
        """
        active = list(run.cluster.active.values())
        played = [completions(run, [job.seq for job in active], one) for one in self.draws(run, run.stream.arrived)]
        start_s, end_s = dict[str, Floats](), dict[str, Floats]()
        for job in active:
            end_s[job.job_id] = np.array([one[job.seq].end_s for one in played])
            if isnan(run.start_s(job.seq)):
                start_s[job.job_id] = np.array([one[job.seq].start_s for one in played])
            self._first.setdefault(job.seq, (run.now_s, end_s[job.job_id] - run.now_s))
        # In one go: whoever asks meanwhile sees the futures before or these, nothing in between.
        self._played = _Played(run.now_s, start_s, end_s, self._learnt(run))

    def _learnt(self, run: Simulation) -> list[Position]:
        """Positions of jobs that have not ended, as of now; those of the others are the tracker's from now on."""
        over = {seq: self._first.pop(seq) for seq in list(self._first) if seq not in run.cluster.active}
        self.tracker.known += self._positions(over, [run.end_s(seq) - over[seq][0] for seq in over], np.inf)
        return self._positions(self._first, [np.inf] * len(self._first), run.now_s)

    def _positions(self, asked: dict[int, tuple[float, Floats]], took_s: list[float], now_s: float) -> list[Position]:
        asked_s, futures_s = (list(column) for column in zip(*asked.values(), strict=True)) if asked else ([], [])
        lengths_s = [np.maximum(one, MOMENT_S) for one in futures_s]
        return self.tracker.positions(np.array(asked_s), np.maximum(took_s, MOMENT_S), lengths_s, now_s)

    def age_s(self, now_s: float) -> float:
        """Seconds since futures were played, NaN before the first ones."""
        return np.nan if self._played is None else now_s - self._played.at_s

    def answer(self, job_id: str, now_s: float) -> FutureAnswer:
        """When a job will start and end, from the last futures in which it has not done so yet.

        Raises TraceError for a job that was not active when futures were played.
        """
        played = self._played
        if played is None or job_id not in played.end_s:
            when = "yet" if played is None else f"at {iso(played.at_s)}"
            raise TraceError(f"job {job_id}: no futures of it were played {when}; refresh, or pass an active job's id")
        ends_s = _left(played.end_s[job_id], now_s)
        start = self.tracker.intervals(_left(played.start_s[job_id], now_s)) if job_id in played.start_s else ()
        end = self.tracker.intervals(ends_s, played.open_now)
        return FutureAnswer(start, end, float(np.median(ends_s)), now_s - played.at_s)


def _left(at_s: Floats, now_s: float) -> Floats:
    """Seconds from now on in the futures in which something has not happened yet; a moment where it has in all."""
    later = at_s[at_s > now_s]
    return np.maximum(later - now_s, MOMENT_S) if len(later) else np.array([MOMENT_S])
