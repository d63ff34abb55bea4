"""The paper's estimate of load: the largest of the last n windows. SIA, section 5.4.1."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError
from jobcast.domain.history import PoolHistory
from jobcast.features.loads import window_loads
from jobcast.models.load_data import MOST_WINDOWS, Demands, LoadData, Nested, demanded_coverage
from jobcast.models.metadata import kept, take_up

KEPT = ("windows_", "lending_windows_", "coverages_", "demands_")
"""What was chosen of each horizon, as a model's file keeps it."""


class SlidingMax:
    """Largest load of the last n windows as wide as the horizon, n the smallest that covers what is demanded.

    Attributes
    ----------
    columns : names of what it reads for each horizon: loads of past windows, the newest first
    windows_ : (H,) n by horizon
    lending_windows_ : (H,) n of what a scheduler reserves
    coverages_ : (H,) share of the training windows that n covers
    demands_ : (H,) share that was demanded
    """

    algorithm: ClassVar[str] = "sliding-max"

    def fit(self, data: LoadData, demands: Demands) -> Self:
        """Choose n by horizon."""
        self.windows_: tuple[int, ...] = ()
        self.coverages_: tuple[float, ...] = ()
        self.demands_: tuple[float, ...] = ()
        self._of_training: list[Nested] = []
        for horizon in range(len(data.horizons_min)):
            rows = data.learnt(horizon, data.until_s)
            load = data.load[rows, horizon]
            # Column n - 1 is the largest of the last n windows: the estimates are nested.
            largest = np.maximum.accumulate(data.past[rows, horizon], axis=1)
            demanded = demanded_coverage(load, demands.coverage, demands.loaded_coverage)
            nested = Nested(load, data.tick_s[rows], partial(_column, largest), MOST_WINDOWS)
            chosen, reached = nested.smallest(demanded)
            # Kept for `choose_lending`; a sliding maximum has learnt nothing, so it is tried on the training itself.
            self._of_training.append(nested)
            self.windows_ += (chosen + 1,)
            self.coverages_ += (reached,)
            self.demands_ += (demanded,)
        self.choose_lending(demands.lending_coverage)
        return self

    def choose_lending(self, coverage: float) -> None:
        """Choose anew what a scheduler reserves: a share of all windows. Only after `fit`, not after `read`."""
        self.lending_windows_ = tuple(nested.smallest(coverage)[0] + 1 for nested in self._of_training)

    @property
    def columns(self) -> tuple[str, ...]:
        """`load_1` is the window that ends at t, `load_2` the one before it."""
        return tuple(f"load_{i + 1}" for i in range(max(*self.windows_, *self.lending_windows_)))

    def rows(self, history: PoolHistory, ticks_s: Sequence[float] | Floats, horizons_min: Sequence[float]) -> Floats:
        """What it reads at some instants, (T, H, F)."""
        most = max(*self.windows_, *self.lending_windows_)
        return np.stack([window_loads(history, ticks_s, MINUTE_S * k, most) for k in horizons_min], axis=1)

    def estimate(self, X: NDArray[Any], horizon: int) -> Floats:
        """GPUs from rows (n, F) of a horizon, (n,)."""
        return self._largest(X, self.windows_[horizon])

    def lend(self, X: NDArray[Any]) -> Floats:
        """GPUs that a scheduler reserves, from rows (n, H, F), (n, H)."""
        return np.stack([self._largest(X[:, h], n) for h, n in enumerate(self.lending_windows_)], axis=1)

    def instant_rows(
        self, features: Floats, histories: Iterable[PoolHistory], at_s: Sequence[float], horizons_min: Sequence[float]
    ) -> Floats:
        """What `rows` gives of several pools, each at its instant, (n_pools, H, F)."""
        each = zip(histories, at_s, strict=True)
        return np.concatenate([self.rows(history, [instant_s], horizons_min) for history, instant_s in each])

    def quantiles(self, X: NDArray[Any], levels: Floats) -> Floats:
        """Empirical quantiles of the past windows at each level, (n, H, L), from rows (n, H, F)."""
        return np.moveaxis(np.quantile(X, levels, axis=2, method="higher"), 0, 2)

    @staticmethod
    def _largest(X: NDArray[Any], windows: int) -> Floats:
        return np.asarray(X[:, :windows].max(axis=1).astype(np.float64))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return kept(self, KEPT)

    def write(self, folder: Path) -> None:
        """Nothing beside what `told` tells."""

    @classmethod
    def read(cls, saved: dict[str, Any], folder: Path) -> Self:
        """From what `told` and `write` gave; RegistryError where more windows are declared than `fit` chooses from."""
        rule = cls()
        # A file from elsewhere could ask for windows without end, each of which is computed.
        for windows in (*saved["windows"], *saved["lending_windows"]):
            if not (isinstance(windows, int) and 1 <= windows <= MOST_WINDOWS):
                what = f"{windows!r} windows of load where 1 to {MOST_WINDOWS} can be"
                raise RegistryError(f"{folder}: declares {what}; train the model again")
        take_up(rule, saved, KEPT)
        return rule


def _column(table: NDArray[Any], number: int) -> NDArray[Any]:
    return table[:, number]
