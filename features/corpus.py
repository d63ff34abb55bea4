"""The training corpus: one row a pool and grid instant, with the features and the truth of every horizon.

A corpus as a Parquet file that anyone can open: a column a feature and horizon, named feature@horizon.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import TraceError, TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.domain.memory import need_memory
from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.targets import arrivals_within, load_within
from jobcast.traces.files import replacing
from jobcast.traces.table_files import read_parquet, write_parquet

STEP_S = 300.0
"""One prediction every 5 minutes a pool. SIA, Figure 21."""
QUIET_S = 28 * 86400.0
"""Further than this from any event of any pool, one instant is like the next: they are left out of the grid."""
REMEDY = (
    "take a shorter time (--from and --until; `jobcast run`: a shorter trace, or a longer step_s in its --params), "
    "or allow more with --memory"
)
COPIES = 12
"""Corpora that a training holds at its peak, measured: features in float64, each model's own form of its rows."""
SCORED = 4
"""Corpora that a scoring holds at its peak, measured (3.5): the rows of its window, the paper's recipe learning."""

Mask: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Rows of all pools, by pool (names ascending), then by instant.

    Attributes
    ----------
    pools : names of the pools, ascending
    pool_index : (N,) int32, position of the row's pool in `pools`
    tick_s : (N,) float64, the row's instant t, seconds from the epoch, UTC
    horizons_min : (H,) horizons k in minutes
    X : (N, H, F) float32, features known at t
    arrives : (N, H) bool, whether any job arrives in (t, t + k]
    load : (N, H) float32, GPUs that arrive in (t, t + k]
    feature_names : (F,) names of the columns of `X`
    """

    pools: tuple[str, ...]
    pool_index: NDArray[np.int32]
    tick_s: NDArray[np.float64]
    horizons_min: tuple[float, ...]
    X: NDArray[np.float32]
    arrives: NDArray[np.bool_]
    load: NDArray[np.float32]
    feature_names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.tick_s.size)

    @property
    def step_s(self) -> float:
        """The least time between two instants; `STEP_S` where there are not two."""
        apart_s = np.diff(np.unique(self.tick_s))
        return float(apart_s.min()) if apart_s.size else STEP_S

    def until(self, until_s: float) -> Mask:
        """Rows with t < until_s, shape (N,)."""
        return self.tick_s < until_s

    def purged(self, until_s: float, horizon_index: int) -> Mask:
        """Rows whose whole window (t, t + k] lies before until_s, shape (N,): what training may learn from.

        A window that ends at until_s exactly holds that instant, so it is left out.
        """
        # Strictly: see the docstring; `scored` takes the window that ends there.
        return self._window_end_s(horizon_index) < until_s

    def scored(self, from_s: float, until_s: float, horizon_index: int) -> Mask:
        """Rows with t >= from_s whose window does not reach past until_s, shape (N,): what counts in a score."""
        return (self.tick_s >= from_s) & (self._window_end_s(horizon_index) <= until_s)

    def horizon_matrix(self, horizon_index: int, mask: Mask | None = None) -> tuple[NDArray[np.float32], Mask]:
        """Features (n, F) and targets (n,) of one horizon, of all rows or of those in a mask (N,)."""
        rows: Any = slice(None) if mask is None else mask
        return self.X[rows, horizon_index], self.arrives[rows, horizon_index]

    def of_rows(self, mask: Mask) -> "Corpus":
        """Corpus of the rows in a mask (N,); the pools stay as they are."""
        picked = ("pool_index", "tick_s", "X", "arrives", "load")
        return replace(self, **{name: getattr(self, name)[mask] for name in picked})

    def of_pools(self, names: Sequence[str]) -> "Corpus":
        """Corpus of some pools.

        Raises
        ------
        ValueError
            A pool is not in the corpus.
        """
        missing = sorted(set(names) - set(self.pools))
        if missing:
            raise ValueError(f"pools {missing} are not in the corpus; it holds {list(self.pools)}")
        kept = [number for number, name in enumerate(self.pools) if name in set(names)]
        rows = self.of_rows(np.isin(self.pool_index, kept))
        # Pools are numbered anew, in the order of the names.
        index = np.searchsorted(kept, rows.pool_index).astype(np.int32)
        return replace(rows, pools=tuple(self.pools[number] for number in kept), pool_index=index)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as Parquet: `pool`, `tick_s`, then for every horizon `arrives@5min`, `load@5min`, `<feature>@5min`.

        The file takes its place whole, and the same corpus gives the same bytes.
        """
        # An enumeration keeps pools without rows, and their order.
        pools = pl.Series(self.pools, dtype=pl.Enum(self.pools))
        columns = {POOL: pools.gather(self.pool_index), TICK: pl.Series(self.tick_s)}
        for h, horizon_min in enumerate(self.horizons_min):
            at = f"{AT}{horizon_min}{UNIT}"
            columns[ARRIVES + at] = pl.Series(self.arrives[:, h])
            columns[LOAD + at] = pl.Series(self.load[:, h])
            for f, name in enumerate(self.feature_names):
                columns[name + at] = pl.Series(np.ascontiguousarray(self.X[:, h, f]))
        # Whoever reads meanwhile sees the old file or the new one.
        with replacing(path) as draft:
            write_parquet(pl.DataFrame(columns), draft)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Corpus":
        """Read what `save` wrote (`load` is the column of GPUs).

        Raises
        ------
        TrainingError
            There is no such file, or it is not a corpus.
        """
        shown = os.fspath(path)
        if not Path(path).is_file():
            raise TrainingError(f"{shown}: no such corpus; build the features first")
        try:
            table = read_parquet(path, "build the features again")
        except TraceError as error:
            raise TrainingError(str(error)) from error
        labels = [name.removeprefix(LOAD + AT) for name in table.columns if name.startswith(LOAD + AT)]
        if not labels or {POOL, TICK}.difference(table.columns):
            raise TrainingError(
                f"{shown}: is not a corpus (no {POOL}, {TICK} or {LOAD}{AT}...); build the features again"
            )
        return _corpus(table, labels)

    def _window_end_s(self, horizon_index: int) -> NDArray[np.float64]:
        return self.tick_s + MINUTE_S * self.horizons_min[horizon_index]


def grid(from_s: float, until_s: float, step_s: float = STEP_S) -> NDArray[np.float64]:
    """Multiples of step_s in [from_s, until_s).

    >>> grid(1.0, 900.0).tolist()
    [300.0, 600.0]
    """
    # Whole multiples times the step: adding steps up would drift from the grid of other windows.
    return np.arange(math.ceil(from_s / step_s), math.ceil(until_s / step_s), dtype=np.float64) * step_s


def active_grid(
    histories: Mapping[str, PoolHistory],
    from_s: float,
    until_s: float,
    step_s: float = STEP_S,
    horizon_s: float = QUIET_S,
) -> NDArray[np.float64]:
    """The instants of `grid` that lie within `QUIET_S` of an event of any pool, or within a horizon if that is longer.

    Their number goes by what happened, not by the span: of a trace whose jobs came in two bursts years apart it is
    those about the bursts. Where nothing ever happened it is the whole grid, and so it is of a trace without a silence
    of eight weeks.

    >>> none = np.empty(0)
    >>> pool = PoolHistory(np.array([0.0, 1e9]), np.ones(2), none, none, none, none)
    >>> len(grid(0.0, 1e9)), len(active_grid({"a": pool}, 0.0, 1e9))
    (3333334, 16128)
    """
    of_pools = [part for one in histories.values() for part in (one.arrival_s, one.start_s, one.completion_s)]
    events = np.unique(np.concatenate([np.empty(0), *of_pools]))
    # Starts and ends that are not on record are NaN or infinite.
    events = events[np.isfinite(events)]
    if not events.size:
        # Before it is made: without jobs nothing bounds a span.
        need_memory(8 * (until_s - from_s) / step_s, "a grid without a single job")
        return grid(from_s, until_s, step_s)
    near_s = max(QUIET_S, horizon_s)
    # Closer ones have grids that meet: no instant may come twice.
    after = np.flatnonzero(np.diff(events) > 2 * near_s)
    begins = np.maximum(events[np.append(0, after + 1)] - near_s, from_s)
    ends = np.minimum(events[np.append(after, -1)] + near_s, until_s)
    return np.concatenate([grid(a, b, step_s) for a, b in zip(begins, ends, strict=True)])


def build_corpus(
    histories: Mapping[str, PoolHistory],
    from_s: float,
    until_s: float,
    horizons_min: Sequence[float],
    step_s: float = STEP_S,
    progress: Progress | None = None,
    copies: int = COPIES,
) -> Corpus:
    """Corpus of all pools on the multiples of step_s in [from_s, until_s), without long silences: `active_grid`.

    Parameters
    ----------
    histories : events by pool; may reach past until_s, and must for the targets of its last windows to be true
    from_s, until_s : seconds from the epoch, UTC
    horizons_min : (H,) horizons in minutes
    progress : called with (pools done, pools in all)
    copies : corpora that what it is built for holds at its peak, itself among them

    Raises
    ------
    MemoryLimitError
        That would need more memory than it may take.
    """
    pools = tuple(sorted(histories))
    horizons_s = MINUTE_S * np.asarray(horizons_min, np.float64)
    ticks = active_grid(histories, from_s, until_s, step_s, horizons_s.max(initial=QUIET_S))
    shape = (len(pools), ticks.size, horizons_s.size)
    # Four bytes a feature and for the load, one for the truth.
    row_bytes = horizons_s.size * (4 * len(feature_names()) + 5)
    what = f"features of {len(pools):,} pools at {ticks.size:,} instants"
    need_memory(copies * len(pools) * ticks.size * row_bytes, what, REMEDY)
    # Filled pool by pool, so that float64 rows of one pool are all that is held besides.
    X = np.empty((*shape, len(feature_names())), np.float32)
    arrives = np.empty(shape, np.bool_)
    load = np.empty(shape, np.float32)
    for i, pool in enumerate(pools):
        X[i] = arrival_features(histories[pool], ticks, horizons_s)
        arrives[i] = arrivals_within(histories[pool], ticks, horizons_s)
        load[i] = load_within(histories[pool], ticks, horizons_s)
        if progress is not None:
            progress(i + 1, len(pools))
    rows = len(pools) * ticks.size
    return Corpus(
        pools=pools,
        pool_index=np.repeat(np.arange(len(pools), dtype=np.int32), ticks.size),
        tick_s=np.tile(ticks, len(pools)),
        horizons_min=tuple(horizons_min),
        X=X.reshape(rows, *X.shape[2:]),
        arrives=arrives.reshape(rows, *shape[2:]),
        load=load.reshape(rows, *shape[2:]),
        feature_names=feature_names(),
    )


AT, UNIT = "@", "min"
ARRIVES, LOAD = "arrives", "load"
POOL, TICK = "pool", "tick_s"


def _corpus(table: pl.DataFrame, labels: list[str]) -> Corpus:
    # Every horizon has the same columns: the first one tells their names.
    truths = {name + AT + labels[0] for name in (ARRIVES, LOAD)}
    own = [name for name in table.columns if name.endswith(AT + labels[0]) and name not in truths]
    names = tuple(name.removesuffix(AT + labels[0]) for name in own)
    X = np.empty((table.height, len(labels), len(names)), np.float32)
    for h, label in enumerate(labels):
        for f, name in enumerate(names):
            X[:, h, f] = table[name + AT + label].to_numpy()
    return Corpus(
        pools=tuple(cast(pl.Enum, table.schema[POOL]).categories),
        pool_index=table[POOL].to_physical().cast(pl.Int32).to_numpy().copy(),
        tick_s=table[TICK].to_numpy().copy(),
        horizons_min=tuple(_number(label.removesuffix(UNIT)) for label in labels),
        X=X,
        arrives=_stacked(table, ARRIVES, labels).astype(np.bool_),
        load=_stacked(table, LOAD, labels).astype(np.float32),
        feature_names=names,
    )


def _stacked(table: pl.DataFrame, name: str, labels: list[str]) -> np.ndarray:
    return np.stack([table[name + AT + label].to_numpy() for label in labels], axis=1)


def _number(text: str) -> float:
    # 5 and 5.0 are written differently, and models find their horizons by these labels.
    return int(text) if text.isdigit() else float(text)
