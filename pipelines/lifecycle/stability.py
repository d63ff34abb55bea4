"""How far the distribution of a feature has moved: the population stability index."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import active_grid, build_corpus
from jobcast.features.targets import load_within
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace

BINS = 10
"""Bins of equal share in the reference. Siddiqi, Credit Risk Scorecards (2006), chapter 8, where the index is from."""
PSI_LIMIT = 0.25
"""From here on the same source calls a shift large."""
EMPTY = 0.5
"""Rows that an empty bin counts as, for a logarithm needs some."""
LEAST_ROWS = 100
"""Of a side, for an index to tell anything: among n rows that have not moved it is about (BINS - 1) / n by chance."""
STEP_S = 1800.0
"""Grid of the rows that are compared; neighbours of 5 minutes are all but equal."""
MINUTE_S = 60.0
Columns = dict[tuple[str, str], NDArray[Any]]
"""Values of inputs by name and horizon."""


def stability_index(reference: ArrayLike, current: ArrayLike, bins: int = BINS) -> float | None:
    """Population stability index: sum over bins of (p - q) ln(p / q); 0 = alike, None where a side is empty.

    Parameters
    ----------
    reference, current : (n,), (m,) values; bins are of equal share in the former, NaN is a bin of its own

    Examples
    --------
    >>> stability_index([1, 2, 3, 4], [1, 2, 3, 4])
    0.0
    >>> stability_index(np.arange(100), np.arange(100) + 50) > PSI_LIMIT
    True
    """
    old, new = np.asarray(reference, np.float64), np.asarray(current, np.float64)
    known = old[~np.isnan(old)]
    if not len(old) or not len(new):
        return None
    edges = np.unique(np.quantile(known, np.arange(1, bins) / bins)) if len(known) else np.empty(0)
    p, q = (_shares(values, edges) for values in (old, new))
    return float(((q - p) * np.log(q / p)).sum())


def _shares(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = np.isnan(values)
    which = np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="right"))
    counts = np.maximum(np.bincount(which, minlength=len(edges) + 2), EMPTY)
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def shifts(reference: Columns, current: Columns) -> dict[str, float]:
    """Index of each input of which both hold `LEAST_ROWS`; of one that each horizon has for itself, the largest."""
    found: dict[str, float] = {}
    for column in reference.keys() & current.keys():
        if min(len(reference[column]), len(current[column])) < LEAST_ROWS:
            continue
        value = stability_index(reference[column], current[column])
        if value is not None:
            name = column[0]
            found[name] = max(value, found.get(name, 0.0))
    return dict(sorted(found.items()))


def input_columns(model: Any, trace: Trace, from_s: float, until_s: float, pools: Sequence[str]) -> Columns:
    """What a predictor looked at in [from_s, until_s): features, or the loads of past windows, by name and horizon."""
    return _COLUMNS[model.name](model, trace, from_s, until_s, pools)


def _arrival_columns(
    model: WillJobsArrive, trace: Trace, from_s: float, until_s: float, pools: Sequence[str]
) -> Columns:
    histories = {name: history for name, history in pool_histories(trace).items() if name in pools}
    corpus = build_corpus(histories, from_s, until_s, model.horizons_min_, STEP_S)
    return {
        (name, horizon_label(k)): corpus.X[:, h, column]
        for h, k in enumerate(model.horizons_min_)
        for column, name in enumerate(corpus.feature_names)
    }


def _load_columns(model: NewLoad, trace: Trace, from_s: float, until_s: float, pools: Sequence[str]) -> Columns:
    known = {name: history for name, history in pool_histories(trace).items() if name in pools}
    histories = list(known.values())
    ticks_s = active_grid(known, from_s, until_s, STEP_S, MINUTE_S * max(model.horizons_min_))
    return {
        ("load", horizon_label(k)): np.concatenate(
            [np.empty(0), *(load_within(one, ticks_s - MINUTE_S * k, [MINUTE_S * k])[:, 0] for one in histories)]
        )
        for k in model.horizons_min_
    }


def _duration_columns(model: JobDuration, trace: Trace, from_s: float, until_s: float, pools: Sequence[str]) -> Columns:
    names = trace.jobs["pool"].to_numpy().astype(str)
    wanted = (trace.submit_s >= from_s) & (trace.submit_s < until_s) & np.isin(names, list(pools))
    rows = model.rows(trace, wanted) if wanted.any() else np.empty((0, len(model.columns)))
    return {(name, ""): rows[:, column] for column, name in enumerate(model.columns)}


_COLUMNS: Mapping[str, Callable[..., Columns]] = {
    WillJobsArrive.name: _arrival_columns,
    NewLoad.name: _load_columns,
    JobDuration.name: _duration_columns,
}
