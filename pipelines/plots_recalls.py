"""Plots of where arrival forecasts are right: hour by hour, pool by pool, features by features. SIA, appendix B."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobcast.pipelines.plots import INK, PALETTE, WIDE, draw, legend_beside, percent_ticks, styles, wrapped
from jobcast.pipelines.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[Mapping[str, float]]
CDF_SIZE = (6.9, 4.0)
BAR_IN = 0.3
PAPER_RECIPE = "paper_recipe"
ZOOM = 0.12
"""Free room left and right of the bars' ends, as a share of what they span."""


def recall_per_pool_hour(curves: Mapping[str, Points]) -> str:
    """Distribution of the recall within each hour of each pool, a step curve a horizon. SIA, Figure 21.

    Parameters
    ----------
    curves : horizon -> points of `recall` and the `share` of pool-hours at or below it
    """
    return _cdf(curves, "Recall within each hour of each pool", "pool-hours at or below")


def recall_by_pool(curves: Mapping[str, Points]) -> str:
    """Distribution of the pools' recalls, a step curve a horizon. SIA, Figure 22."""
    return _cdf(curves, "Recall pool by pool", "pools at or below")


def _cdf(curves: Mapping[str, Points], title: str, of_what: str) -> str:
    looks = styles(list(curves))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for horizon, points in curves.items():
            if points:
                x = [0.0, *(point["recall"] for point in points), 1.0]
                y = [0.0, *(point["share"] for point in points), 1.0]
                axes.step(x, y, where="post", label=horizon, **looks[horizon].line)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="recall of windows with arrivals")
        percent_ticks(axes.yaxis)
        axes.set_ylabel(of_what)
        legend_beside(axes)

    return draw(title, paint, CDF_SIZE)


def ablation(by_horizon: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """PR-AUC of twins that may look at more and more features, a panel a horizon. SIA, Tables 20 and 23.

    Parameters
    ----------
    by_horizon : horizon -> set of features -> `pr_auc` and `pr_auc_interval`
    """
    labels = list(dict.fromkeys(label for sets in by_horizon.values() for label in sets))
    names = ["paper's recipe" if label == PAPER_RECIPE else wrapped(label) for label in labels]

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(1, len(by_horizon), sharey=True, squeeze=False)[0]
        for axes, (horizon, sets) in zip(panels, by_horizon.items(), strict=True):
            rows = {labels.index(label): block for label, block in sets.items() if block["pr_auc"] is not None}
            _dots(axes, rows, {row for row in rows if labels[row] == PAPER_RECIPE})
            axes.set(xlabel="PR-AUC", title=horizon)
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.8)
            axes.grid(axis="y", visible=False)

    return draw("PR-AUC by features that the model may look at", paint, (WIDE[0], 1.5 + BAR_IN * 1.4 * len(labels)))


def _dots(axes: "Axes", rows: Mapping[int, Mapping[str, Any]], pale: Collection[int]) -> None:
    """PR-AUC of each row as a dot on the bar of its interval, its number above it."""
    edges: list[float] = []
    for row, block in rows.items():
        value, color = block["pr_auc"], INK if row in pale else PALETTE[0]
        ends = block.get("pr_auc_interval") or [value, value]
        edges += ends
        axes.plot(ends, [row, row], color=color, linewidth=2.2, alpha=0.55)
        axes.plot([value], [row], "o", color=color, markersize=5)
        axes.annotate(number(value), (value, row), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8)
    low, high = min(edges, default=0.0), max(edges, default=1.0)
    room = ZOOM * (high - low) or ZOOM
    axes.set_xlim(low - room, high + room)
