"""When a week counts as drifted, and when sharing is switched off: documented limits, and nothing but the past.

How far the distribution of a feature has moved: the population stability index.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain import switches
from jobcast.domain.horizons import horizon_label
from jobcast.domain.switches import Switch
from jobcast.features.corpus import SCORED, active_grid, build_corpus
from jobcast.features.targets import load_within
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.lifecycle.forecast_rows import ArrivalRows, Sample
from jobcast.pipelines.report.formatting import number, share

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
    # Edges are of numbers; NaN has a bin of its own, the last.
    known = old[~np.isnan(old)]
    if not len(old) or not len(new):
        return None
    # Values that are often the same make quantiles fall together: fewer bins then.
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
    # A set has no order of its own: the result is sorted.
    for column in reference.keys() & current.keys():
        if min(len(reference[column]), len(current[column])) < LEAST_ROWS:
            continue
        value = stability_index(reference[column], current[column])
        if value is not None:
            name = column[0]
            found[name] = max(value, found.get(name, 0.0))
    return dict(sorted(found.items()))


def arrival_inputs(model: WillJobsArrive, sample: Sample) -> Columns:
    """Features, by horizon."""
    corpus = build_corpus(sample.histories, sample.from_s, sample.until_s, model.horizons_min_, STEP_S, copies=SCORED)
    return {
        (name, horizon_label(k)): corpus.X[:, h, column]
        for h, k in enumerate(model.horizons_min_)
        for column, name in enumerate(corpus.feature_names)
    }


def load_inputs(model: NewLoad, sample: Sample) -> Columns:
    """Loads of past windows, by horizon."""
    known = sample.histories
    ticks_s = active_grid(known, sample.from_s, sample.until_s, STEP_S, MINUTE_S * max(model.horizons_min_))
    return {
        # The load of the window that has just ended, which was known at the instant.
        ("load", horizon_label(k)): np.concatenate(
            [np.empty(0), *(load_within(one, ticks_s - MINUTE_S * k, [MINUTE_S * k])[:, 0] for one in known.values())]
        )
        for k in model.horizons_min_
    }


def duration_inputs(model: JobDuration, sample: Sample) -> Columns:
    """Features of jobs."""
    wanted = sample.submitted
    rows = model.rows(sample.trace, wanted) if wanted.any() else np.empty((0, len(model.columns)))
    return {(name, ""): rows[:, column] for column, name in enumerate(model.columns)}


def job_inputs(*names: str) -> Callable[[Any, Sample], Columns]:
    """Columns of the trace, of its jobs that were over; NaN where a job tells nothing."""

    def columns(model: Any, sample: Sample) -> Columns:
        over = sample.over
        return {(name, ""): over.numbers(name, np.nan) for name in names}

    return columns


DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Limit:
    """From which excess on a figure is to be watched, and from which on it has drifted.

    Attributes
    ----------
    figure : its name
    excess : (figures of a block, what is nominal) -> how far it is off; None = no telling
    watch, drifted : limits of the excess
    granted : share of `watch` that is granted to what a few weeks of training leave open, on stationary traces as well
    """

    figure: str
    excess: Callable[[Mapping[str, Any], Mapping[str, float]], float | None]
    watch: float
    drifted: float
    granted: float = 0.5


def plain(figure: str) -> Callable[..., float | None]:
    """The figure itself."""
    return lambda figures, nominal: figures.get(figure)


def size(figure: str) -> Callable[..., float | None]:
    """How far a figure lies from 0."""
    return lambda figures, nominal: None if figures.get(figure) is None else abs(figures[figure])


def above(figure: str, sign: float = 1.0) -> Callable[..., float | None]:
    """How far a figure lies above what is nominal (below, with sign -1)."""

    def excess(figures: Mapping[str, Any], nominal: Mapping[str, float]) -> float | None:
        if figures.get(figure) is None or figure not in nominal:
            return None
        return float(sign * (figures[figure] - nominal[figure]))

    return excess


LEVEL = 0.9
"""What intervals promise to hold."""
COVERAGE = Limit("coverage_90", above("coverage_90", -1.0), 0.05, 0.10)


def weak(validation: Mapping[str, Any]) -> list[str]:
    """What to say of a version whose intervals held so little in its own validation that `drift` would object.

    >>> weak({"coverage_90": 0.81}), weak({})
    ([], [])
    >>> weak({"coverage_90": 0.61})
    ['90 % intervals held 61.0 % of the last part of the training time: do not rely on them, or train on more time']
    """
    excess = COVERAGE.excess(validation, {COVERAGE.figure: LEVEL})
    if excess is None or excess <= COVERAGE.drifted:
        return []
    held = share(validation[COVERAGE.figure])
    what = f"{100 * LEVEL:g} % intervals held {held} of the last part of the training time"
    return [f"{what}: do not rely on them, or train on more time"]


def moved_inputs(psi: Mapping[str, float], usual: Mapping[str, float]) -> list[str]:
    """Columns that moved by more than the limit and more than between the weeks of training, most moved first."""
    moved = [name for name, value in psi.items() if value > max(PSI_LIMIT, usual.get(name, 0.0))]
    return sorted(moved, key=lambda name: (-psi[name], name))


@dataclass(frozen=True, slots=True)
class SwitchRule(switches.SwitchRule):
    """The rule at the end of each week, by all windows of a grid."""

    def sharing(self, rows: ArrivalRows, at_s: float) -> bool:
        """What holds from an instant on, by windows that had ended by then; rows of one pool and horizon."""
        # By when the truth was known: a switch must not look ahead.
        seen = (rows.known_s <= at_s) & (rows.time_s >= at_s - DAY_S * self.days) & rows.arrives
        return self.shares(int((~rows.passed[seen]).sum()), int(seen.sum()))

    def __str__(self) -> str:
        return (
            f"off where the gate missed more than {share(self.most_missed)} of at least {self.least_arrivals} windows "
            f"with arrivals in the last {number(self.days)} days"
        )


def switches_of(
    rows: Mapping[float, ArrivalRows], ends_s: Sequence[float], rule: SwitchRule, pools: Sequence[str]
) -> list[Switch]:
    """Changes of sharing at the ends of completed weeks.

    Parameters
    ----------
    rows : horizon in minutes -> rows of all pools
    ends_s : of the completed weeks, ascending; the row of an end follows from what had been observed by then
    """
    found = []
    for horizon_min, of_all in rows.items():
        for pool in pools:
            # Sharing is on until a week says otherwise.
            mine, state = of_all.of(np.asarray(of_all.pool == pool)), True
            for end_s in ends_s:
                sharing = rule.sharing(mine, end_s)
                if sharing != state:
                    found.append(Switch(pool, horizon_min, end_s, sharing))
                state = sharing
    return sorted(found)
