"""NewLoadEstimate: a conservative estimate of the GPUs that will arrive in a pool. SIA, section 5.4.1."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.errors import TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, grid
from jobcast.features.loads import sliding_max, window_loads
from jobcast.features.targets import load_within
from jobcast.models.metadata import read_metadata, write_metadata

CANDIDATE_WINDOWS: tuple[int, ...] = (1, 2, 4, 6, 8)
"""How many past windows the maximum may run over; "the recent few" of SIA, section 5.4.1."""
COVERAGE = 0.8
"""Share of the windows whose load is covered. In backtests of SIA on October 2017 of the Philly trace a lower share
than .95 lent more and slowed no job more: `benchmarks/choose_coverage.py`."""
MINUTE_S = 60.0
Floats = NDArray[np.float64]


class NewLoad:
    """Largest load of the last n windows as wide as the horizon.

    The number of windows is chosen for each horizon on the training data: the smallest whose estimate covers the
    load of a share `coverage` of all windows (of all pools, every 5 minutes), else the largest candidate.

    Parameters
    ----------
    coverage : share of windows whose load the estimate shall reach, in (0, 1]

    Attributes
    ----------
    horizons_min_ : (H,) horizons in minutes
    windows_ : (H,) number of past windows
    coverages_ : (H,) share of the training windows that this number covers
    trained_from_s_, trained_until_s_ : the window that it was chosen on, seconds from the epoch
    pools_ : pools that it was chosen on
    """

    name: ClassVar[str] = "new-load"

    def __init__(self, coverage: float = COVERAGE):
        self.coverage = coverage

    def fit(
        self, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, horizons_min: Sequence[float]
    ) -> Self:
        """Choose the number of windows.

        Parameters
        ----------
        histories : events by pool; what lies before `from_s` is read as history, nothing from `until_s` on
        from_s, until_s : seconds from the epoch
        horizons_min : (H,) horizons in minutes

        Raises
        ------
        TrainingError
            There is no pool, or a horizon is longer than the window.
        """
        self.horizons_min_ = tuple(horizons_min)
        self.trained_from_s_, self.trained_until_s_ = float(from_s), float(until_s)
        self.pools_ = tuple(sorted(histories))
        chosen = [self._chosen(histories, MINUTE_S * horizon_min) for horizon_min in horizons_min]
        self.windows_ = tuple(windows for windows, _ in chosen)
        self.coverages_ = tuple(coverage for _, coverage in chosen)
        return self

    def _chosen(self, histories: Mapping[str, PoolHistory], horizon_s: float) -> tuple[int, float]:
        ticks_s = grid(self.trained_from_s_, self.trained_until_s_, STEP_S)
        ticks_s = ticks_s[ticks_s + horizon_s < self.trained_until_s_]
        if not len(ticks_s) or not histories:
            raise TrainingError(
                f"{self.name}: no window of {horizon_label(horizon_s / MINUTE_S)} in the training time of "
                f"{len(histories)} pools; train on a longer trace or leave the horizon out"
            )
        covered = np.array([_covered(histories[pool], ticks_s, horizon_s) for pool in self.pools_]).mean(axis=0)
        enough = np.flatnonzero(covered >= self.coverage)
        best = int(enough[0]) if len(enough) else len(CANDIDATE_WINDOWS) - 1
        return CANDIDATE_WINDOWS[best], float(covered[best])

    def predict(self, history: PoolHistory, ticks_s: ArrayLike) -> Floats:
        """GPUs (sum of widths) that may arrive in (t, t + k].

        Parameters
        ----------
        history : events of one pool; may reach past the instants, which changes nothing
        ticks_s : (T,) instants, seconds from the epoch

        Returns
        -------
        (T, H)
        """
        by_horizon = [
            sliding_max(history, ticks_s, MINUTE_S * horizon_min, windows)
            for horizon_min, windows in zip(self.horizons_min_, self.windows_, strict=True)
        ]
        return np.stack(by_horizon, axis=1)

    def save(self, folder: Path) -> None:
        """Write `metadata.json`, which is all of it."""
        told = {
            "coverage": self.coverage,
            "horizons_min": list(self.horizons_min_),
            "windows": list(self.windows_),
            "coverages": list(self.coverages_),
            "trained_from_s": self.trained_from_s_,
            "trained_until_s": self.trained_until_s_,
            "pools": list(self.pools_),
        }
        write_metadata(folder, self.name, told)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder does not hold such a model."""
        told = read_metadata(folder, cls.name)
        model = cls(told["coverage"])
        model.horizons_min_, model.windows_ = tuple(told["horizons_min"]), tuple(told["windows"])
        model.coverages_, model.pools_ = tuple(told["coverages"]), tuple(told["pools"])
        model.trained_from_s_, model.trained_until_s_ = told["trained_from_s"], told["trained_until_s"]
        return model


def _covered(history: PoolHistory, ticks_s: Floats, horizon_s: float) -> Floats:
    """Share of the windows whose load the maximum over n past ones reaches, for each candidate n."""
    load = load_within(history, ticks_s, [horizon_s])
    largest = np.maximum.accumulate(window_loads(history, ticks_s, horizon_s, CANDIDATE_WINDOWS[-1]), axis=1)
    estimates = largest[:, np.array(CANDIDATE_WINDOWS) - 1]
    covered: Floats = (load <= estimates).mean(axis=0)
    return covered
