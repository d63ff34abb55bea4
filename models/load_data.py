"""Rows that estimates of load learn from and are calibrated on: all pools, every horizon, in order of time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.history import PoolHistory
from jobcast.domain.memory import need_memory
from jobcast.features.corpus import STEP_S, active_grid
from jobcast.features.load_features import load_feature_names, load_features
from jobcast.features.loads import window_loads
from jobcast.features.targets import load_within

MINUTE_S = 60.0
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
Floats = NDArray[np.float64]
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
        ticks_s = ticks_s[:: _stride(len(ticks_s) * len(histories))]
        rows, columns = len(ticks_s) * len(histories), len(load_feature_names()) + MOST_WINDOWS + 1
        what = f"loads of {len(histories):,} pools at {len(ticks_s):,} instants"
        need_memory(COPIES * 4 * rows * len(horizons_s) * columns, what)
        pools = [histories[name] for name in sorted(histories)]
        return cls(
            float(from_s),
            float(until_s),
            tuple(horizons_min),
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
            begin_s = self.until_s - (FOLDS - number) * length_s
            known = self.learnt(horizon, begin_s)
            later = (self.tick_s >= begin_s) & self.learnt(horizon, begin_s + length_s)
            if known.any() and later.any():
                yield known, later


def _stride(rows: int) -> int:
    """Odd, at least `STRIDE`."""
    needed = int(np.ceil(rows / MOST_ROWS))
    return max(STRIDE, needed + 1 - needed % 2)


def _past(pool: PoolHistory, ticks_s: Floats, horizons_s: Floats) -> NDArray[np.float32]:
    by_horizon = [window_loads(pool, ticks_s, float(k), MOST_WINDOWS).astype(np.float32) for k in horizons_s]
    return np.stack(by_horizon, axis=1)
