"""Curves of a predictor, as tables and charts: are probabilities honest, what do they separate, what do they look at.

Charts of where arrival forecasts are right: hour by hour, pool by pool, features by features. SIA, appendix B.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.models.scores import ECE_BINS
from jobcast.pipelines.report.backtest_charts import intervals
from jobcast.pipelines.report.charts import (
    MOST_POINTS,
    PALETTE,
    Axis,
    Chart,
    bands,
    colour,
    curves,
    looks,
    records,
    svg_of,
)

Points = Sequence[Mapping[str, float]]
PAPER_RECIPE = "paper_recipe"
TOP_FEATURES = 15
RECALL = "recall of windows with arrivals"


def recalls(by_horizon: Mapping[str, Points], title: str, of_what: str) -> Chart:
    """Distribution of recalls, a step curve a horizon. SIA, Figures 21 and 22.

    Parameters
    ----------
    by_horizon : horizon -> points of `recall` and the `share` of `of_what` at or below it
    """
    # From corner to corner: the curve is a distribution.
    series = {
        horizon: ([0.0, *(one["recall"] for one in points), 1.0], [0.0, *(one["share"] for one in points), 1.0])
        for horizon, points in by_horizon.items()
        if points
    }
    x, y = Axis(RECALL, "share", low=0.0, high=1.0), Axis(f"{of_what} at or below", "share", low=0.0, high=1.0)
    return curves(title, series, x, y)


def ablation(horizon: str, sets: Mapping[str, Mapping[str, Any]]) -> Chart:
    """PR-AUC of twins that may look at more and more features. SIA, Tables 20 and 23.

    Parameters
    ----------
    sets : set of features -> `pr_auc` and `pr_auc_interval`
    """
    known = {label: block for label, block in sets.items() if block["pr_auc"] is not None}
    return intervals(
        f"PR-AUC by features that the model may look at, {horizon}",
        ["paper's recipe" if label == PAPER_RECIPE else label for label in known],
        [block["pr_auc"] for block in known.values()],
        [tuple(block.get("pr_auc_interval") or [block["pr_auc"]] * 2) for block in known.values()],
        Axis("PR-AUC"),
        [label != PAPER_RECIPE for label in known],
    )


def reliability(by_horizon: Mapping[str, Sequence[Mapping[str, float]]]) -> Chart:
    """Observed share against predicted probability, a curve a horizon; honest probabilities lie on the diagonal.

    Parameters
    ----------
    by_horizon : horizon -> a bin each: `forecast`, `observed` (shares of 1) and `n`, the rows in it
    """
    import altair as alt

    series = {
        horizon: _columns([one for one in bins if one["n"]], "forecast", "observed")
        for horizon, bins in by_horizon.items()
    }
    x = Axis("predicted probability that jobs arrive", "share", low=0.0, high=1.0)
    y = Axis("share of windows with arrivals", "share", low=0.0, high=1.0)
    honest = alt.Chart(records(x=[0.0, 1.0], y=[0.0, 1.0])).mark_line(strokeDash=[4, 3], opacity=0.6, color="#8a949e")
    title = "Reliability of arrival probabilities by horizon"
    return curves(
        title, series, x, y, interpolate="linear", dots=True, beside=[honest.encode(x="x:Q", y="y:Q")], height=320
    )


def _columns(rows: Sequence[Mapping[str, float]], *names: str) -> Any:
    return tuple(np.array([row[name] for row in rows], dtype=float) for name in names)


def precision_recall(
    horizon: str,
    points: Sequence[Mapping[str, float]],
    rules: Mapping[str, Mapping[str, float | None]] | None = None,
) -> Chart:
    """Precision against recall, with rules of thumb as points.

    Parameters
    ----------
    points : a threshold each: `precision`, `recall`
    rules : name -> `precision`, `recall`, for the threshold in use and the baselines
    """
    import altair as alt

    # Every so manieth point: thousands look the same and make a page heavy.
    thinned = _columns(points[:: -(-len(points) // MOST_POINTS) or 1], "recall", "precision")
    told = {name: (rule.get("recall"), rule.get("precision")) for name, rule in (rules or {}).items()}
    known = {name: pair for name, pair in told.items() if None not in pair}
    labels = ["predictor", *known]
    # Of all rules, so that one that is unknown here changes no other's colour.
    colours = looks(["predictor", *(rules or {})])
    data = records(series=list(known), x=[at for at, _ in known.values()], y=[value for _, value in known.values()])
    marks = alt.Chart(data).mark_point(filled=True, size=80, opacity=1)
    marks = marks.encode(x="x:Q", y="y:Q", color=colour(labels, colours), tooltip=["series:N", "x:Q", "y:Q"])
    x, y = Axis("recall", "share", low=0.0, high=1.0), Axis("precision", "share", low=0.0, high=1.0)
    return curves(
        f"Precision and recall, {horizon} ahead",
        {"predictor": thinned, **{name: ([], []) for name in known}},
        x, y, colours=colours, interpolate="linear", beside=[marks] if known else [], room=bool(known),
    )  # fmt: skip


def importance(horizon: str, features: Mapping[str, float] | Sequence[tuple[str, float]]) -> Chart:
    """The features that a predictor of one horizon gains most from, as shares of the gain of all."""
    pairs = list(features.items()) if isinstance(features, Mapping) else [(name, gain) for name, gain in features]
    whole = sum(gain for _, gain in pairs)
    # Ties by name: the same drawing each time.
    best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:TOP_FEATURES]
    x = Axis("share of the gain of all features", "share", low=0.0)
    names = [name.replace("_", " ") for name, _ in best]
    return bands(
        f"Most important features, {horizon} ahead",
        names,
        {"row": names, "value": [gain / whole for _, gain in best]},
        {"type": "bar", "color": PALETTE[0]},
        {"shorthand": "value", **x.settings()},
        step=19,
        tooltip=[{"field": "row", "title": "feature"}, x.tooltip("value")],
    )


IMPORTANCE = "importance_"
RECALL_STEPS = 101
"""Points of the precision-recall table, at equal steps of recall."""


@dataclass(frozen=True, slots=True)
class CurvePoints:
    """Curves by kind, each by horizon.

    Attributes
    ----------
    reliability : horizon -> bins of `forecast`, `observed`, `n`
    precision_recall : horizon -> points of `precision`, `recall`, `threshold`
    importance : horizon -> gain by feature
    recall_per_pool_hour, recall_by_pool : horizon -> points of `recall`, `share` (at or below)
    ablation : horizon -> set of features -> `pr_auc`, `pr_auc_interval`
    points : horizon -> name -> `precision`, `recall`: of the threshold in use and of rules to beat, for charts alone
    """

    reliability: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    precision_recall: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    importance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recall_per_pool_hour: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    recall_by_pool: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    ablation: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    points: Mapping[str, Mapping[str, Mapping[str, float | None]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; the points of plots stand in the evaluation."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "points"}

    def drawings(self) -> dict[str, Chart]:
        """Charts by name, of what there is to be drawn; `importance_5min` of each horizon."""
        drawn: dict[str, Chart] = {}
        if self.reliability:
            drawn["reliability"] = reliability(self.reliability)
        for name, points in self.precision_recall.items():
            drawn[f"precision_recall_{name}"] = precision_recall(name, points, self.points.get(name))
        for key, title, of_what in (
            ("recall_per_pool_hour", "Recall within each hour of each pool", "pool-hours"),
            ("recall_by_pool", "Recall pool by pool", "pools"),
        ):
            if any(getattr(self, key).values()):
                drawn[key] = recalls(getattr(self, key), title, of_what)
        # A model that knows one answer only gains by no feature.
        gains = {name: of for name, of in self.importance.items() if any(of.values())}
        drawn |= {f"ablation_{name}": ablation(name, sets) for name, sets in self.ablation.items()}
        return drawn | {f"{IMPORTANCE}{name}": importance(name, of) for name, of in gains.items()}

    def draw(self, folder: Path) -> tuple[Path, ...]:
        """Write the curves as SVG files into a folder; their paths."""
        drawings = {folder / f"{name}.svg": svg_of(drawing) for name, drawing in self.drawings().items()}
        for path, drawing in drawings.items():
            path.write_text(drawing, encoding="utf-8")
        return tuple(drawings)

    def precision_at_recall(self) -> dict[str, list[float]]:
        """A column a horizon: the best precision at each recall or above, on an equal grid of recall."""
        grid = np.linspace(0.0, 1.0, RECALL_STEPS)
        table: dict[str, list[float]] = {"recall": grid.round(4).tolist()}
        for horizon, curve in self.precision_recall.items():
            points = sorted((point["recall"], point["precision"]) for point in curve)
            recall, precision = np.array(points).T
            # The best precision at this recall or any higher one.
            best = np.maximum.accumulate(precision[::-1])[::-1]
            # Shares are sums of floats: a hair below the grid point still counts as on it.
            at = np.minimum(np.searchsorted(recall, grid - 1e-12), len(best) - 1)
            table[horizon] = best[at].tolist()
        return table

    def observed_by_forecast(self) -> dict[str, list[float | None]]:
        """A column a horizon: observed share by bin of the forecast probability; None where no row fell into it."""
        table: dict[str, list[float | None]] = {
            "predicted": [round((i + 0.5) / ECE_BINS, 4) for i in range(ECE_BINS)],
        }
        for horizon, curve in self.reliability.items():
            column: list[float | None] = [None] * ECE_BINS
            for one in curve:
                # A forecast of exactly 1 belongs into the last bin.
                column[min(int(one["forecast"] * ECE_BINS), ECE_BINS - 1)] = one["observed"]
            table[horizon] = column
        return table


def by_kind(by_horizon: Mapping[str, Mapping[str, Any]], importance: Mapping[str, Mapping[str, float]]) -> CurvePoints:
    """Turn the curves of `models.evaluation.arrival_curves` around: kind first, then horizon."""
    return CurvePoints(
        {name: curves["reliability"] for name, curves in by_horizon.items()},
        {name: curves["precision_recall"] for name, curves in by_horizon.items() if curves["precision_recall"]},
        importance,
        {name: curves["recall_per_pool_hour"] for name, curves in by_horizon.items()},
        {name: curves["recall_by_pool"] for name, curves in by_horizon.items()},
    )
