"""Rows that estimates of load learn from and are calibrated on: all pools, every horizon, in order of time.

What is demanded of an estimate of load, and the smallest of nested estimates that gives it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, MINUTE_S
from jobcast.domain.history import PoolHistory
from jobcast.domain.memory import need_memory
from jobcast.features.corpus import STEP_S, active_grid
from jobcast.features.load_features import load_feature_names, load_features
from jobcast.features.loads import window_loads
from jobcast.features.targets import load_within

STRIDE = 3
"""One grid instant in so many; 2 would fall in step with jobs every 600 s."""
MOST_ROWS = 400_000
"""Longer traces and more pools are thinned further."""
FOLDS = 2
FOLD_SHARE = 0.2
"""Each fold's share of the training time, at its end: of five weeks the fourth and the fifth."""
MOST_WINDOWS = 24
"""As far back as a sliding maximum may look; the recent few windows of SIA, section 5.4.1."""
COPIES = 3
"""What a training holds of the rows at its peak."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LoadData:
    """Rows by pool, then by instant.

    Attributes
    ----------
    from_s, until_s : no window that reaches `until_s` is read
    horizons_min : (H,)
    tick_s : (N,) instants, seconds from the epoch
    X : (N, H, F) float32, `features.load_features`
    past : (N, H, MOST_WINDOWS) float32, GPUs of the last windows, the newest first
    load : (N, H) float32, GPUs that arrive in (t, t + k]
    """

    from_s: float
    until_s: float
    horizons_min: tuple[float, ...]
    tick_s: Floats
    X: NDArray[np.float32]
    past: NDArray[np.float32]
    load: NDArray[np.float32]

    @classmethod
    def of(
        cls, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, horizons_min: Sequence[float]
    ) -> "LoadData":
        """Rows of all pools on a thinned grid; what lies before `from_s` is read as history.

        Raises MemoryLimitError where they would need more memory than they may take.
        """
        horizons_s = MINUTE_S * np.asarray(horizons_min, np.float64)
        ticks_s = active_grid(histories, from_s, until_s, STEP_S, horizons_s.max(initial=0.0))
        # Thinned before the rows are built: they are what takes memory.
        ticks_s = ticks_s[:: _stride(len(ticks_s) * len(histories))]
        rows, columns = len(ticks_s) * len(histories), len(load_feature_names()) + MOST_WINDOWS + 1
        what = f"loads of {len(histories):,} pools at {len(ticks_s):,} instants"
        # Four bytes a number; one column more is the load itself.
        need_memory(COPIES * 4 * rows * len(horizons_s) * columns, what)
        pools = [histories[name] for name in sorted(histories)]
        return cls(
            float(from_s),
            float(until_s),
            tuple(horizons_min),
            # Pool by pool, as the rows below are concatenated.
            np.tile(ticks_s, len(pools)),
            np.concatenate([load_features(pool, ticks_s, horizons_s).astype(np.float32) for pool in pools]),
            np.concatenate([_past(pool, ticks_s, horizons_s) for pool in pools]),
            np.concatenate([load_within(pool, ticks_s, horizons_s).astype(np.float32) for pool in pools]),
        )

    def learnt(self, horizon: int, until_s: float) -> Mask:
        """Rows (N,) whose window ends before an instant."""
        return self.tick_s + MINUTE_S * self.horizons_min[horizon] < until_s

    def folds(self, horizon: int) -> Iterator[tuple[Mask, Mask]]:
        """Rows to learn from and later rows to score, (N,), of each fold that has both; no window crosses."""
        length_s = FOLD_SHARE * (self.until_s - self.from_s)
        for number in range(FOLDS):
            # Folds lie at the end: demands are of the weeks to come, which resemble the last ones most.
            begin_s = self.until_s - (FOLDS - number) * length_s
            known = self.learnt(horizon, begin_s)
            later = (self.tick_s >= begin_s) & self.learnt(horizon, begin_s + length_s)
            if known.any() and later.any():
                yield known, later


def _stride(rows: int) -> int:
    """Odd, at least `STRIDE`."""
    needed = int(np.ceil(rows / MOST_ROWS))
    # An even number is raised to the next odd one.
    return max(STRIDE, needed + 1 - needed % 2)


def _past(pool: PoolHistory, ticks_s: Floats, horizons_s: Floats) -> NDArray[np.float32]:
    by_horizon = [window_loads(pool, ticks_s, float(k), MOST_WINDOWS).astype(np.float32) for k in horizons_s]
    return np.stack(by_horizon, axis=1)


COVERAGE = 0.95
"""Share of all windows whose load the estimate shall reach."""
LOADED_COVERAGE = 0.7
"""Share of the windows *with* load. Where most windows are empty an estimate of nothing reaches `COVERAGE` already."""
SPARE_ERRORS = 1.645
"""Standard errors by which a coverage of past windows shall pass the demand: 95 % one-sided."""
LENDING_COVERAGE = 0.6
"""Share of all windows that a scheduler's reservation shall cover; it asks only where jobs are forecast to arrive. On
October 2017 of the Philly trace SIA was slowed by durations, hardly by loads, so that reserving less was faster at the
same cost of short bins (`duration_booster.UNDER_COST`); `benchmarks/choose_sia.py` at commit 24e9ea6."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Shares of windows to cover: for the estimate, of all and of those with load; for what a scheduler reserves."""

    coverage: float = COVERAGE
    loaded_coverage: float = LOADED_COVERAGE
    lending_coverage: float = LENDING_COVERAGE

    @classmethod
    def of(
        cls,
        coverage: float,
        loaded_coverage: float = LOADED_COVERAGE,
        lending_coverage: float = LENDING_COVERAGE,
    ) -> "Demands":
        """Demands of which the later two are at most the first: who asks for little gets little.

        >>> Demands.of(0.5)
        Demands(coverage=0.5, loaded_coverage=0.5, lending_coverage=0.5)
        """
        return cls(coverage, min(loaded_coverage, coverage), min(lending_coverage, coverage))


def demanded_coverage(load: NDArray[np.floating], coverage: float, loaded_coverage: float = LOADED_COVERAGE) -> float:
    """Share of all windows to cover, so that both demands hold: of all windows, and of those with load.

    Parameters
    ----------
    load : (n_windows,) GPUs that came in past windows
    coverage, loaded_coverage : the demands

    >>> round(demanded_coverage(np.array([0.0] * 9 + [4.0]), 0.95, 0.7), 3)
    0.97
    """
    loaded = float((load > 0).mean()) if len(load) else 0.0
    # Passing 30 % of the loaded windows passes 30 % x their share of all.
    return max(coverage, 1.0 - (1.0 - loaded_coverage) * loaded)


def coverage_error(covered: NDArray[np.bool_], tick_s: Floats) -> float:
    """Standard error of a coverage, by days: errors of one day hang together. 0 where there are less than two days.

    >>> coverage_error(np.array([True, True, False, False]), np.array([0.0, 1.0, 86400.0, 86401.0]))
    0.5
    """
    days, position = np.unique(np.floor(tick_s / DAY_S), return_inverse=True)
    if len(days) < 2:
        return 0.0
    rows = np.bincount(position)
    sums = np.bincount(position, weights=covered)
    # The variance of a ratio of sums over days, by the residuals of days (Cochran, Sampling Techniques).
    residual = sums - rows * (sums.sum() / rows.sum())
    variance = len(days) / (len(days) - 1) * (residual @ residual) / rows.sum() ** 2
    return float(np.sqrt(variance))


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Nested estimates of windows that came after what they learnt from.

    Attributes
    ----------
    load, tick_s : (n_windows,) what came, and when the windows began
    estimate : number of a candidate -> its estimates (n_windows,); larger numbers never estimate less
    candidates : how many there are
    """

    load: NDArray[np.floating]
    tick_s: Floats
    estimate: Callable[[int], NDArray[np.floating]]
    candidates: int

    def smallest(self, demanded: float) -> tuple[int, float]:
        """The first whose coverage reaches a demand with `SPARE_ERRORS` to spare, else the last; and its coverage.

        Split conformal prediction [1] with a margin: the next weeks are not drawn from the last ones' distribution, and
        the spread over days tells by how much a coverage moves.

        References
        ----------
        .. [1] Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005.
        """
        low, high = 0, self.candidates - 1
        # Bisection: coverage rises with the number, for larger numbers never estimate less.
        while low < high:
            middle = (low + high) // 2
            covered = self.load <= self.estimate(middle)
            enough = covered.mean() - SPARE_ERRORS * coverage_error(covered, self.tick_s) >= demanded
            low, high = (low, middle) if enough else (middle + 1, high)
        return low, float((self.load <= self.estimate(low)).mean())


def over_estimation(load: NDArray[np.floating], estimates: Sequence[float] | NDArray[np.floating]) -> float:
    """Sum of the estimates over the sum of what came; infinity where nothing came."""
    came = float(np.sum(load))
    return float(np.sum(estimates)) / came if came > 0 else float("inf")
