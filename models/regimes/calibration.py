"""Levels of intervals, corrected by how often those of finished jobs held the truth.

Where the run time is certain (nothing can follow, or hardly) an interval is a point and nearly always right. With
`open`, the others are to hold the truth as often as they say, and all intervals together hold it more often; with
`all`, all together do, and those that are no points hold it less often. The levels to compute are chosen on the jobs
that were learned from, the more closely the more jobs there are.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.ahead import shortest
from jobcast.models.regimes.trajectories import POINTS, progress_at

WANTED = (0.5, 0.9)
"""Levels that are corrected; those between are interpolated."""
TRIED = np.round(np.arange(0.2, 0.991, 0.01), 2)
MOST_JOBS = 400
JOBS_TO_TRUST = 100
"""Jobs at which the correction counts as much as the level that was asked for."""
OPEN, ALL = "open", "all"
TINY = 1e-6
"""Of a job's run time: shorter intervals are points."""


class Spread(Protocol):
    """What tells the distribution of the time left."""

    def nodes(self, training: Training, progress: Progress) -> tuple[Floats, Floats]:
        """Seconds left and their weights."""
        ...


def calibrated(
    rule: Spread, jobs: Sequence[tuple[Training, tuple[Regime, ...]]], over: str = OPEN
) -> dict[float, float]:
    """Level wanted -> level to compute: the least one whose intervals held the truth that often.

    Parameters
    ----------
    rule : whose distributions are looked at
    jobs : finished ones with their regimes; of many, evenly chosen ones
    over : the intervals that are counted, open or all
    """
    looked_at = [_of_job(rule, *job, over) for job in jobs[:: -(-len(jobs) // MOST_JOBS)]]
    held = [row for rows in looked_at for row in rows]
    if not held:
        return {level: level for level in WANTED}
    share = np.maximum.accumulate(np.mean(held, axis=0))
    found = {level: float(TRIED[min(int(np.searchsorted(share, level)), len(TRIED) - 1)]) for level in WANTED}
    jobs_counted = sum(bool(rows) for rows in looked_at)
    trust = jobs_counted / (jobs_counted + JOBS_TO_TRUST)
    return {level: trust * least + (1 - trust) * level for level, least in found.items()}


def _of_job(rule: Spread, training: Training, regimes: tuple[Regime, ...], over: str) -> list[Floats]:
    total_s = training.run_time_s(regimes)
    held: list[Floats] = []
    for point in POINTS:
        progress = progress_at(regimes, training.epochs * point / 100)
        values, weights = rule.nodes(training, progress)
        row = _held(values, weights, total_s - training.run_time_s(progress.regimes), TINY * total_s)
        held += row if over == ALL or not _is_point(values, weights, TINY * total_s) else []
    return held


def _held(values: Floats, weights: Floats, truth_s: float, tiny_s: float) -> list[Floats]:
    """Whether the interval of each level held the truth, one row (n_tried,)."""
    ends = [shortest(values, weights, float(level)) for level in TRIED]
    return [np.array([low - tiny_s <= truth_s <= high + tiny_s for low, high in ends], np.float64)]


def _is_point(values: Floats, weights: Floats, tiny_s: float) -> bool:
    low, high = shortest(values, weights, WANTED[-1])
    return high - low <= tiny_s


def stated(level: float, levels: Mapping[float, float]) -> float:
    """The level to compute for the one that is asked for.

    >>> stated(0.7, {0.5: 0.4, 0.9: 0.8})
    0.6
    """
    wanted = [0.0, *sorted(levels), 1.0]
    return float(np.interp(level, wanted, [0.0, *(levels[one] for one in sorted(levels)), 1.0]))
