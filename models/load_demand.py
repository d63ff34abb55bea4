"""What is demanded of an estimate of load, and the smallest of nested estimates that gives it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COVERAGE = 0.95
"""Share of all windows whose load the estimate shall reach."""
LOADED_COVERAGE = 0.7
"""Share of the windows *with* load. Where most windows are empty an estimate of nothing reaches `COVERAGE` already."""
SPARE_ERRORS = 1.645
"""Standard errors by which a coverage of past windows shall pass the demand: 95 % one-sided."""
LENDING_COVERAGE = 0.6
"""Share of all windows that a scheduler's reservation shall cover; it asks only where jobs are forecast to arrive. On
October 2017 of the Philly trace SIA was slowed by durations, hardly by loads, so that reserving less was faster at the
same cost of short bins (`duration_costs.UNDER_COST`); `benchmarks/choose_sia.py`."""
DAY_S = 86400.0
Floats = NDArray[np.float64]


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
    residual = sums - rows * (sums.sum() / rows.sum())
    variance = len(days) / (len(days) - 1) * (residual @ residual) / rows.sum() ** 2
    return float(np.sqrt(variance))


def smallest_that_covers(
    load: NDArray[np.floating],
    tick_s: Floats,
    estimate: Callable[[int], NDArray[np.floating]],
    candidates: int,
    demanded: float,
) -> tuple[int, float]:
    """The first of nested estimates whose coverage reaches a demand with `SPARE_ERRORS` to spare.

    Split conformal prediction [1] with a margin: the next weeks are not drawn from the last ones' distribution, and
    the spread over days tells by how much a coverage moves.

    Parameters
    ----------
    load, tick_s : (n_windows,) what came in windows that the estimates have not learnt from, and when they began
    estimate : number of a candidate -> its estimates (n_windows,); larger numbers never estimate less
    candidates : how many there are; the last is taken where none suffices

    Returns
    -------
    Its number, and its coverage of these windows.

    References
    ----------
    .. [1] Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005.
    """
    low, high = 0, candidates - 1
    while low < high:
        middle = (low + high) // 2
        covered = load <= estimate(middle)
        enough = covered.mean() - SPARE_ERRORS * coverage_error(covered, tick_s) >= demanded
        low, high = (low, middle) if enough else (middle + 1, high)
    return low, float((load <= estimate(low)).mean())


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Nested estimates of windows that came after what they learnt from; see `smallest_that_covers`.

    Attributes
    ----------
    load, tick_s : (n_windows,) what came, and when the windows began
    estimate, candidates : number -> estimates (n_windows,), never less with larger numbers; how many there are
    """

    load: NDArray[np.floating]
    tick_s: Floats
    estimate: Callable[[int], NDArray[np.floating]]
    candidates: int

    def smallest(self, demanded: float) -> tuple[int, float]:
        """The first that covers a demand, and its coverage."""
        return smallest_that_covers(self.load, self.tick_s, self.estimate, self.candidates, demanded)


def over_estimation(load: NDArray[np.floating], estimates: Sequence[float] | NDArray[np.floating]) -> float:
    """Sum of the estimates over the sum of what came; infinity where nothing came."""
    came = float(np.sum(load))
    return float(np.sum(estimates)) / came if came > 0 else float("inf")
