"""A corpus as a Parquet file that anyone can open: a column a feature and horizon, named feature@horizon."""

import os
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from jobcast.domain.errors import TraceError, TrainingError
from jobcast.features.corpus import Corpus
from jobcast.traces.files import replacing
from jobcast.traces.parquet import read_parquet, write_parquet

AT, UNIT = "@", "min"
ARRIVES, LOAD = "arrives", "load"
POOL, TICK = "pool", "tick_s"


def write_corpus(corpus: Corpus, path: str | os.PathLike[str]) -> None:
    """Write `pool`, `tick_s`, then for every horizon `arrives@5min`, `load@5min` and `<feature>@5min`.

    The file takes its place whole, and the same corpus gives the same bytes.
    """
    pools = pl.Series(corpus.pools, dtype=pl.Enum(corpus.pools))
    columns = {POOL: pools.gather(corpus.pool_index), TICK: pl.Series(corpus.tick_s)}
    for h, horizon_min in enumerate(corpus.horizons_min):
        at = f"{AT}{horizon_min}{UNIT}"
        columns[ARRIVES + at] = pl.Series(corpus.arrives[:, h])
        columns[LOAD + at] = pl.Series(corpus.load[:, h])
        for f, name in enumerate(corpus.feature_names):
            columns[name + at] = pl.Series(np.ascontiguousarray(corpus.X[:, h, f]))
    with replacing(path) as draft:
        write_parquet(pl.DataFrame(columns), draft)


def read_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Read a corpus that `write_corpus` wrote.

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
    if not {POOL, TICK} <= set(table.columns) or not labels:
        raise TrainingError(f"{shown}: is not a corpus (no {POOL}, {TICK} or {LOAD}{AT}...); build the features again")
    return _corpus(table, labels)


def _corpus(table: pl.DataFrame, labels: list[str]) -> Corpus:
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
    return int(text) if text.isdigit() else float(text)
