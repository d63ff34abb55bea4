"""Curves of a predictor, as tables and as plots: are probabilities honest, what do they separate, what do they look at.

Plots of where arrival forecasts are right: hour by hour, pool by pool, features by features. SIA, appendix B.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.models.scores import ECE_BINS
from jobcast.pipelines.report import plots
from jobcast.pipelines.report.formatting import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[Mapping[str, float]]
CDF_SIZE = (6.9, 4.0)
BAR_IN = 0.3
PAPER_RECIPE = "paper_recipe"
ZOOM = 0.12
"""Free room left and right of the bars' ends, as a share of what they span."""


def recalls(curves: Mapping[str, Points], title: str, of_what: str) -> str:
    """Distribution of recalls, a step curve a horizon. SIA, Figures 21 and 22.

    Parameters
    ----------
    curves : horizon -> points of `recall` and the `share` of `of_what` at or below it
    """
    looks = plots.styles(list(curves))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for horizon, points in curves.items():
            if points:
                # From corner to corner: the curve is a distribution.
                x = [0.0, *(point["recall"] for point in points), 1.0]
                y = [0.0, *(point["share"] for point in points), 1.0]
                axes.step(x, y, where="post", label=horizon, **looks[horizon].line)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="recall of windows with arrivals")
        plots.percent_ticks(axes.yaxis)
        axes.set_ylabel(f"{of_what} at or below")
        plots.legend_beside(axes)

    return plots.draw(title, paint, CDF_SIZE)


def ablation(by_horizon: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """PR-AUC of twins that may look at more and more features, a panel a horizon. SIA, Tables 20 and 23.

    Parameters
    ----------
    by_horizon : horizon -> set of features -> `pr_auc` and `pr_auc_interval`
    """
    # All panels share their rows.
    labels = list(dict.fromkeys(label for sets in by_horizon.values() for label in sets))
    names = ["paper's recipe" if label == PAPER_RECIPE else plots.wrapped(label) for label in labels]

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(1, len(by_horizon), sharey=True, squeeze=False)[0]
        for axes, (horizon, sets) in zip(panels, by_horizon.items(), strict=True):
            rows = {labels.index(label): block for label, block in sets.items() if block["pr_auc"] is not None}
            _dots(axes, rows, {row for row in rows if labels[row] == PAPER_RECIPE})
            axes.set(xlabel="PR-AUC", title=horizon)
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.8)
            axes.grid(axis="y", visible=False)

    return plots.draw(
        "PR-AUC by features that the model may look at", paint, (plots.WIDE[0], 1.5 + BAR_IN * 1.4 * len(labels))
    )


def _dots(axes: "Axes", rows: Mapping[int, Mapping[str, Any]], pale: Collection[int]) -> None:
    """PR-AUC of each row as a dot on the bar of its interval, its number above it."""
    edges: list[float] = []
    for row, block in rows.items():
        value, color = block["pr_auc"], plots.INK if row in pale else plots.PALETTE[0]
        ends = block.get("pr_auc_interval") or [value, value]
        edges += ends
        axes.plot(ends, [row, row], color=color, linewidth=2.2, alpha=0.55)
        axes.plot([value], [row], "o", color=color, markersize=5)
        axes.annotate(number(value), (value, row), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8)
    low, high = min(edges, default=0.0), max(edges, default=1.0)
    # A single dot spans nothing.
    room = ZOOM * (high - low) or ZOOM
    axes.set_xlim(low - room, high + room)


TOP_FEATURES = 15
MARKERS = "os^Dv"


def reliability(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Observed share against predicted probability, a curve a horizon; honest probabilities lie on the diagonal.

    Parameters
    ----------
    curves : horizon -> a bin each: `forecast`, `observed` (shares of 1) and `n`, the rows in it
    """
    looks = plots.styles(list(curves))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=plots.INK, linewidth=0.9, alpha=0.6)
        for marker, (horizon, curve) in zip(MARKERS * len(curves), curves.items(), strict=False):
            x, y, n = _columns([one for one in curve if one["n"]], "forecast", "observed", "n")
            axes.plot(x, y, label=horizon, color=looks[horizon].color, linewidth=1.4, marker=marker, ms=3)
            axes.scatter(x, y, s=14 + 90 * n / max(n.max(initial=1), 1), marker=marker, color=looks[horizon].color)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set_xlabel("predicted probability that jobs arrive")
        axes.set_ylabel("share of windows with arrivals")
        plots.legend_beside(axes)

    return plots.draw("Reliability of arrival probabilities by horizon", paint, (6.4, 4.9))


def _columns(rows: Sequence[Mapping[str, float]], *names: str) -> list[Any]:
    return [np.array([row[name] for row in rows], dtype=float) for name in names]


def precision_recall(
    curves: Mapping[str, Sequence[Mapping[str, float]]],
    points: Mapping[str, Mapping[str, Mapping[str, float | None]]] | None = None,
) -> str:
    """Precision against recall, a panel a horizon, with rules of thumb as points.

    Parameters
    ----------
    curves : horizon -> a threshold each: `precision`, `recall`
    points : horizon -> name -> `precision`, `recall`, for the threshold in use and the baselines
    """

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for axes, (horizon, curve) in zip(panels, curves.items(), strict=True):
            # Every so manieth point: thousands look the same and make a page heavy.
            recall, precision = _columns(curve[:: -(-len(curve) // plots.MOST_POINTS) or 1], "recall", "precision")
            axes.plot(recall, precision, color=plots.PALETTE[0], label="predictor")
            _mark(axes, (points or {}).get(horizon, {}))
            axes.set(xlim=(-0.02, 1.04), ylim=(-0.02, 1.04), xlabel="recall", xticks=(0, 0.5, 1), title=horizon)
        panels[0].set_ylabel("precision")
        plots.legend_beside(panels[-1])

    return plots.draw("Precision and recall by horizon, beside baselines", paint, (1.7 + 2.9 * len(curves), 3.7))


def _mark(axes: "Axes", points: Mapping[str, Mapping[str, float | None]]) -> None:
    for i, (name, point) in enumerate(points.items()):
        precision, recall = point.get("precision"), point.get("recall")
        if precision is not None and recall is not None:
            color, marker = plots.PALETTE[(i + 1) % len(plots.PALETTE)], MARKERS[i % len(MARKERS)]
            axes.scatter([recall], [precision], s=46, label=name, zorder=3, color=color, marker=marker)


def importance(horizon: str, features: Mapping[str, float] | Sequence[tuple[str, float]]) -> str:
    """The features that a predictor of one horizon gains most from, as shares of the gain of all."""
    pairs = list(features.items()) if isinstance(features, Mapping) else [(name, gain) for name, gain in features]
    whole = sum(gain for _, gain in pairs) or 1.0
    # Ties by name: the same drawing each time.
    best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:TOP_FEATURES]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.barh(
            [plots.wrapped(name) for name, _ in best],
            [100 * gain / whole for _, gain in best],
            color=plots.PALETTE[0],
            height=0.66,
        )
        axes.invert_yaxis()
        axes.set_xlabel("share of the gain of all features (%)")
        axes.grid(axis="y", visible=False)

    return plots.draw(
        f"Most important features, {horizon} ahead", paint, (plots.NARROW[0], 1.1 + 0.24 * max(3, len(best)))
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
    points : horizon -> name -> `precision`, `recall`: of the threshold in use and of rules to beat, for plots alone
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

    def drawings(self) -> dict[str, str]:
        """SVG by name, of what there is to be drawn; `importance_5min` of each horizon."""
        drawn: dict[str, str] = {}
        if self.reliability:
            drawn["reliability"] = reliability(self.reliability)
        if self.precision_recall:
            drawn["precision_recall"] = precision_recall(self.precision_recall, self.points)
        if any(self.recall_per_pool_hour.values()):
            drawn["recall_per_pool_hour"] = recalls(
                self.recall_per_pool_hour, "Recall within each hour of each pool", "pool-hours"
            )
        if any(self.recall_by_pool.values()):
            drawn["recall_by_pool"] = recalls(self.recall_by_pool, "Recall pool by pool", "pools")
        if self.ablation:
            drawn["ablation"] = ablation(self.ablation)
        return drawn | {f"{IMPORTANCE}{name}": importance(name, of) for name, of in self.importance.items() if of}

    def draw(self, folder: Path) -> tuple[Path, ...]:
        """Write the curves as SVG files into a folder; their paths."""
        drawings = {folder / f"{name}.svg": drawing for name, drawing in self.drawings().items()}
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
