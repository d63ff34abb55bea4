"""Plots of the predictors: are probabilities honest, what do they separate, what do they look at."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.pipelines.plots import INK, MOST_POINTS, NARROW, PALETTE, draw, legend_beside, styles, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP_FEATURES = 15
MARKERS = "os^Dv"


def reliability(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Observed share against predicted probability, a curve a horizon; honest probabilities lie on the diagonal.

    Parameters
    ----------
    curves : horizon -> a bin each: `forecast`, `observed` (shares of 1) and `n`, the rows in it
    """
    looks = styles(list(curves))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.9, alpha=0.6)
        for marker, (horizon, curve) in zip(MARKERS * len(curves), curves.items(), strict=False):
            x, y, n = _columns([one for one in curve if one["n"]], "forecast", "observed", "n")
            axes.plot(x, y, label=horizon, color=looks[horizon].color, linewidth=1.4, marker=marker, ms=3)
            axes.scatter(x, y, s=14 + 90 * n / max(n.max(initial=1), 1), marker=marker, color=looks[horizon].color)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set_xlabel("predicted probability that jobs arrive")
        axes.set_ylabel("share of windows with arrivals")
        legend_beside(axes)

    return draw("Reliability of arrival probabilities by horizon", paint, (6.4, 4.9))


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
            recall, precision = _columns(curve[:: -(-len(curve) // MOST_POINTS) or 1], "recall", "precision")
            axes.plot(recall, precision, color=PALETTE[0], label="predictor")
            _mark(axes, (points or {}).get(horizon, {}))
            axes.set(xlim=(-0.02, 1.04), ylim=(-0.02, 1.04), xlabel="recall", xticks=(0, 0.5, 1), title=horizon)
        panels[0].set_ylabel("precision")
        legend_beside(panels[-1])

    return draw("Precision and recall by horizon, beside baselines", paint, (1.7 + 2.9 * len(curves), 3.7))


def _mark(axes: "Axes", points: Mapping[str, Mapping[str, float | None]]) -> None:
    for i, (name, point) in enumerate(points.items()):
        precision, recall = point.get("precision"), point.get("recall")
        if precision is not None and recall is not None:
            color, marker = PALETTE[(i + 1) % len(PALETTE)], MARKERS[i % len(MARKERS)]
            axes.scatter([recall], [precision], s=46, label=name, zorder=3, color=color, marker=marker)


def importance(horizon: str, features: Mapping[str, float] | Sequence[tuple[str, float]]) -> str:
    """The features that a predictor of one horizon gains most from, as shares of the gain of all."""
    pairs = list(features.items()) if isinstance(features, Mapping) else [(name, gain) for name, gain in features]
    whole = sum(gain for _, gain in pairs) or 1.0
    best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:TOP_FEATURES]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.barh(
            [wrapped(name) for name, _ in best], [100 * gain / whole for _, gain in best], color=PALETTE[0], height=0.66
        )
        axes.invert_yaxis()
        axes.set_xlabel("share of the gain of all features (%)")
        axes.grid(axis="y", visible=False)

    return draw(f"Most important features, {horizon} ahead", paint, (NARROW[0], 1.1 + 0.24 * max(3, len(best))))
