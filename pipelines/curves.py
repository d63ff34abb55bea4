"""Curves of a predictor, as tables for plots and as drawings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.models.scores import ECE_BINS

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
        from jobcast.pipelines import plots_predictors as plots

        drawn: dict[str, str] = {}
        if self.reliability:
            drawn["reliability"] = plots.reliability(self.reliability)
        if self.precision_recall:
            drawn["precision_recall"] = plots.precision_recall(self.precision_recall, self.points)
        if any(self.recall_per_pool_hour.values()):
            drawn["recall_per_pool_hour"] = plots.recall_per_pool_hour(self.recall_per_pool_hour)
        if any(self.recall_by_pool.values()):
            drawn["recall_by_pool"] = plots.recall_by_pool(self.recall_by_pool)
        if self.ablation:
            drawn["ablation"] = plots.ablation(self.ablation)
        return drawn | {f"{IMPORTANCE}{name}": plots.importance(name, of) for name, of in self.importance.items() if of}

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
            best = np.maximum.accumulate(precision[::-1])[::-1]
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
