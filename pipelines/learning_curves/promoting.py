"""`jobcast models promote accuracy-curve:N --trace FILE`: both versions on curves that neither saw."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobcast.models.evaluation.curves import curve_errors, pooled
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.finished_jobs import of_file
from jobcast.pipelines.learning_curves.evaluating import refuse_trained
from jobcast.pipelines.learning_curves.training import PREFIXES
from jobcast.pipelines.model_tables import made_from
from jobcast.pipelines.wording import brief
from jobcast.traces.learning_curves import CurveTable

DRAWS = 2000
ENDS = (0.025, 0.975)
"""Of the interval of a difference."""
CANDIDATE, HELD = "candidate", "champion"


def compare(
    registry: Registry, candidate: ModelVersion, held: ModelVersion, table: CurveTable, allow_overlap: bool
) -> dict[str, Any]:
    """Errors of both versions, which see the first 20 % and 50 % of each curve.

    The candidate is worse where the interval of the mean difference of errors, over curves drawn anew, lies above 0.
    Raises OverlapError where a version was trained on curves of the file, TrainingError where none can be scored.
    """
    overlap = [refuse_trained(registry, version, table, allow_overlap) for version in (candidate, held)]
    figures = compared(registry.load(candidate), registry.load(held), table)
    return {
        "figures": figures,
        "reasons": [
            f"mae {_pair(both, ' against ')} with {float(share):.0%} of the epochs seen"
            for share, both in figures.items()
            if both["interval"][0] > 0
        ],
        "overlap_allowed": any(overlap),
        **made_from(table, table.notes),
    }


def compared(candidate: Any, held: Any, table: CurveTable) -> dict[str, dict[str, Any]]:
    """By share of the epochs seen: figures of both, and the interval of the mean difference of their errors."""
    found = {}
    for prefix in PREFIXES:
        with of_file(table.path):
            ours, theirs = (curve_errors(model, table.curves, prefix) for model in (candidate, held))
        difference = np.asarray(ours["mae"]) - np.asarray(theirs["mae"])
        drawn = difference[np.random.default_rng(0).integers(difference.size, size=(DRAWS, difference.size))]
        found[f"{prefix:g}"] = {
            CANDIDATE: pooled([ours]),
            HELD: pooled([theirs]),
            "difference": float(difference.mean()),
            "interval": np.quantile(drawn.mean(axis=1), ENDS).tolist(),
        }
    return found


def comparison_lines(told: Mapping[str, Any]) -> list[str]:
    """A comparison as lines of text."""
    seen = "CURVES THAT A MODEL HAS SEEN (--allow-overlap)" if told["overlap_allowed"] else "curves that neither saw"
    lines = [f"{told['model']}, mae on {seen}: version {told['version']}, {told['alias']} {told['against']}"]
    for share, both in told["figures"].items():
        ends = " to ".join(f"{end:+.3g}" for end in both["interval"])
        figures = f"{_pair(both, ', ')}; difference {both['difference']:+.3g} ({ends})"
        lines.append(f"  {float(share):.0%} of the epochs seen: {figures}")
    return lines


def _pair(both: Mapping[str, Any], between: str) -> str:
    """The candidate's error and the other's."""
    return between.join(brief(both[name]["mae"]) for name in (CANDIDATE, HELD))
