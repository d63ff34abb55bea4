"""SIA, Tables 10, 20, 23, Figures 21, 22 (section 5.4.1, appendix B): how well arrivals are forecast, from what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, horizon_label
from jobcast.features.arrivals import PAPER_SETS, feature_sets
from jobcast.features.corpus import build_corpus
from jobcast.models.evaluation.ablation import EVEN_ODDS, PaperRecipe
from jobcast.models.evaluation.arrivals import recall_by_pool, recall_per_pool_hour
from jobcast.models.evaluation.intervals import duration_groups, mean_durations_min
from jobcast.models.scores import detection
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.report.look import styles
from jobcast.traces.generators import generate
from jobcast.traces.history import histories_of
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import pools_to_learn_from
from jobcast.traces.table import Trace
from papers.plotting import panels
from papers.results import Floats, Page, grid, number, numbers, result
from papers.sia.bench import FEWEST_JOBS, PHILLY_FILE, THREE_WEEKS, TRAINED_FROM, TRAINED_UNTIL, Bench

OURS, WHOLE, ALL = "jobcast's own", PAPER_SETS[-1], "all"
CAMPUS_TRAINED_UNTIL, CAMPUS_UNTIL = "2024-02-05", "2024-02-26"
"""Five weeks of the made-up trace and the three after, as of Philly."""
TRAIN_STEP_S = 900.0
"""Between rows that teach; neighbours tell nearly the same."""
KEYS = ("precision", "recall", "f1")
HEAD = ("data", "pools", "horizon_min", "features", *KEYS)
Cells = dict[tuple[str, str, float, str], tuple[float | None, ...]]
"""(data, pools, horizon, features) -> precision, recall, F-score."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of forecasts on one trace: cells of tables, and recalls by horizon as the package's plots take them."""

    cells: Cells
    by_hour: Mapping[str, Mapping[str, Any]]
    by_pool: Mapping[str, Mapping[str, Any]]


def scored(name: str, trace: Trace, from_s: float, until_s: float, end_s: float) -> Scored:
    """Learn from [from_s, until_s), score on [until_s, end_s): the paper's recipe by features, and our default."""
    training = trace.between(from_s, until_s)
    histories = histories_of(trace.between(None, end_s), pools_to_learn_from(training, FEWEST_JOBS))
    corpus = build_corpus(histories, from_s, end_s, DEFAULT_HORIZONS_MIN)
    known = corpus.of_rows(corpus.until(until_s) & (corpus.tick_s % TRAIN_STEP_S == 0.0))
    later = corpus.of_rows(corpus.tick_s >= until_s)
    forecasts: dict[str, tuple[Floats, Floats]] = {}
    even = np.full(len(DEFAULT_HORIZONS_MIN), EVEN_ODDS)
    sets = feature_sets(corpus.feature_names)
    for features in PAPER_SETS:
        forecasts[features] = PaperRecipe(sets[features]).fit(known, until_s).predict_proba(later.X), even
    own = WillJobsArrive().fit(known, until_s)
    forecasts[OURS] = own.predict_proba(later.X), own.thresholds_f1_
    groups = {ALL: later.pools, **duration_groups(later.pools, mean_durations_min(training))}
    cells: Cells = {}
    by_hour, by_pool = {}, {}
    for h, horizon in enumerate(DEFAULT_HORIZONS_MIN):
        rows = later.scored(until_s, end_s, h)
        arrives, pool = later.arrives[rows, h], np.array(later.pools)[later.pool_index[rows]]
        for features, (probability, threshold) in forecasts.items():
            declared = probability[rows, h] >= threshold[h]
            for group, pools in groups.items():
                its = np.isin(pool, pools)
                cells[name, group, horizon, features] = tuple(detection(arrives[its], declared[its]).values())
        declared = forecasts[WHOLE][0][rows, h] >= EVEN_ODDS
        by_hour[horizon_label(horizon)] = recall_per_pool_hour(
            arrives, declared, later.pool_index[rows], later.tick_s[rows]
        )
        recalls = {one: detection(arrives[pool == one], declared[pool == one])["recall"] for one in later.pools}
        by_pool[horizon_label(horizon)] = recall_by_pool(recalls)
    return Scored(cells, by_hour, by_pool)


def forecast_tables(bench: Bench, page: Page) -> None:
    """Write the page, table and plot into a folder."""
    campus = generate("campus", 0)[0]
    cuts = (TRAINED_FROM, TRAINED_UNTIL, THREE_WEEKS[1])
    found = {
        "Philly": scored("Philly", read_trace(bench.data / PHILLY_FILE, format="philly"), *map(parse_time, cuts)),
        "campus": scored(
            "campus", campus, float(campus.submit_s[0]), *map(parse_time, (CAMPUS_TRAINED_UNTIL, CAMPUS_UNTIL))
        ),
    }
    printed = pl.read_csv(Path(__file__).with_suffix(".csv")).iter_rows()
    cells: Cells = {(data, pools, float(h), features): tuple(values) for data, pools, h, features, *values in printed}
    for one in found.values():
        cells |= one.cells
    page.csv(HEAD, [(*key, *("" if one is None else f"{one:.4g}" for one in row)) for key, row in cells.items()])
    shown = [(name, kind) for kind in ("by_hour", "by_pool") for name in found]
    titles = {"by_hour": "Figure 21: pool-hours", "by_pool": "Figure 22: pools"}

    def panel(axes: Axes, which: tuple[str, str]) -> None:
        name, kind = which
        curves, style = getattr(found[name], kind), styles(list(map(horizon_label, DEFAULT_HORIZONS_MIN)))
        for horizon, told in curves.items():
            x, y = ([0.0, *(point[key] for point in told["cdf"]), 1.0] for key in ("recall", "share"))
            axes.step(x, y, where="post", label=horizon, **style[horizon].line)
        axes.set(xlabel="recall", ylabel="at or below", title=f"{titles[kind]}, {name}", ylim=(0, 1.02))

    panels(page, "Recall by hour and by pool", shown, panel, height=5.6, columns=2, titled=False)
    groups = dict.fromkeys(pools for _, pools, *_ in cells)
    tables = [part for one in groups for part in (f"### {_said(one)}", _table(cells, one, list(found)))]
    page.write(tables=tables, extremes=_extremes(found), **_found(cells, found))


def _said(pools: str) -> str:
    return "Tables 10 and 20: all pools" if pools == ALL else f"Table 23: pools whose jobs run {pools} in the mean"


def _table(cells: Cells, pools: str, ours: Sequence[str]) -> str:
    """Precision, recall and F-score by horizon and features, data side by side."""
    data = [name for name in ("CloudML", "Helios", *ours) if (name, pools, 5.0, WHOLE) in cells]
    rows = [
        (horizon_label(horizon), features, *(_cell(cells.get((name, pools, horizon, features))) for name in data))
        for horizon in DEFAULT_HORIZONS_MIN
        for features in (*PAPER_SETS, *([OURS] if set(ours) & set(data) else []))
    ]
    return grid(("horizon", "features", *data), rows)


def _cell(values: Sequence[float | None] | None) -> str:
    return "-" if values is None else " ".join(number(np.nan if value is None else value) for value in values)


def _extremes(found: Mapping[str, Scored]) -> str:
    rows = [
        (name, horizon, f"{told['hours']:,}", *(f"{100 * told[key]:.0f}" for key in EXTREMES))
        for name, one in found.items()
        for horizon, told in one.by_hour.items()
    ]
    return grid(("data", "horizon", "pool-hours", "recall 0, %", "recall 1, %", "either, if independent, %"), rows)


EXTREMES = ("share_0", "share_1", "extremes_if_independent")


def _found(cells: Cells, found: Mapping[str, Scored]) -> dict[str, str]:
    def f1(name: str, features: str, horizon: float) -> float:
        return cells[name, ALL, horizon, features][2] or np.nan

    by_horizon = {name: [f1(name, WHOLE, horizon) for horizon in DEFAULT_HORIZONS_MIN] for name in found}
    closed, recent = (
        {name: [f1(name, last, h) - f1(name, first, h) for h in DEFAULT_HORIZONS_MIN] for name in found}
        for first, last in (PAPER_SETS[1::2], PAPER_SETS[:2])
    )
    apart = {name: [sum(told[key] for key in EXTREMES[:2]) - told[EXTREMES[2]] for told in one.by_hour.values()]
             for name, one in found.items()}  # fmt: skip
    spread = {name: [told["p90"] - told["p10"] for told in one.by_pool.values()] for name, one in found.items()}

    def told(values: Mapping[str, Sequence[float]], holds: bool | None = None) -> str:
        return result("; ".join(f"{name} {numbers(of)}" for name, of in values.items()), holds)

    return {
        "longer": told(by_horizon, all(of == sorted(of) for of in by_horizon.values())),
        "recent": told(recent, all(of[0] == max(of) and of[0] > 0 for of in recent.values())),
        "closed": told(closed),
        "modal": told(apart, all(min(of) > 0 for of in apart.values())),
        "pools": told(spread, all(min(of) > 0.1 for of in spread.values())),
    }
