"""`jobcast models promote accuracy-curve:N --trace FILE`: both versions on curves that neither saw."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobcast import __version__
from jobcast.domain.errors import PromotionError, TrainingError
from jobcast.models.evaluation.curves import curve_errors, pooled
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.files import to_json
from jobcast.pipelines.learning_curves.evaluating import refuse_trained
from jobcast.pipelines.learning_curves.training import PREFIXES
from jobcast.pipelines.lifecycle.promotion import TAG
from jobcast.pipelines.model_tables import made_from
from jobcast.pipelines.wording import brief
from jobcast.traces.learning_curves import CurveTable, LearningCurve

DRAWS = 2000
ENDS = (0.025, 0.975)
"""Of the interval of a difference."""
CANDIDATE, HELD = "candidate", "champion"


def promote_curves(
    name: str, number: int, alias: str, table: CurveTable, *, force: bool, allow_overlap: bool, home: Path
) -> dict[str, Any]:
    """Move an alias to a version unless its errors are larger beyond doubt; what to tell the user.

    Both versions see the first 20 % and 50 % of each curve. The candidate is worse where the interval of the mean
    difference of errors, over curves drawn anew, lies above 0.

    Raises OverlapError where a version was trained on curves of the file, TrainingError where none can be scored.
    """
    registry = open_registry(home)
    candidate = registry.resolve(name, number)
    held = registry.resolve(name, alias if alias in registry.show(name).aliases else CHAMPION)
    told = {"model": name, "version": number, "alias": alias, "compared": False, "promoted": True, "forced": False}
    if held.version != number:
        overlap = [refuse_trained(registry, version, table, allow_overlap) for version in (candidate, held)]
        figures = compared(registry.load(candidate), registry.load(held), table)
        reasons = [
            f"mae {_pair(both, ' against ')} with {float(share):.0%} of the epochs seen"
            for share, both in figures.items()
            if both["interval"][0] > 0
        ]
        told |= {
            "compared": True,
            "against": held.version,
            "figures": figures,
            "reasons": reasons,
            "promoted": force or not reasons,
            "forced": bool(force and reasons),
            "overlap_allowed": any(overlap),
            **made_from(table, table.notes),
        }
        verdict = {key: told[key] for key in ("alias", "against", "promoted", "forced", "reasons", "inputs")}
        registry.tag(candidate, {TAG: to_json(verdict).strip()})
    if told["promoted"]:
        registry.promote(name, number, alias=alias)
    return {**told, "home": str(home), "jobcast": __version__}


def compared(candidate: Any, held: Any, table: CurveTable) -> dict[str, dict[str, Any]]:
    """By share of the epochs seen: figures of both, and the interval of the mean difference of their errors."""
    found = {}
    for prefix in PREFIXES:
        ours, theirs = (_errors(model, table, table.curves, prefix) for model in (candidate, held))
        difference = np.asarray(ours["mae"]) - np.asarray(theirs["mae"])
        drawn = difference[np.random.default_rng(0).integers(difference.size, size=(DRAWS, difference.size))]
        found[f"{prefix:g}"] = {
            CANDIDATE: pooled([ours]),
            HELD: pooled([theirs]),
            "difference": float(difference.mean()),
            "interval": np.quantile(drawn.mean(axis=1), ENDS).tolist(),
        }
    return found


def promotion_table(told: Mapping[str, Any]) -> str:
    """What `models promote` says; the last line says where the alias points."""
    lines = []
    if told["compared"]:
        seen = (
            "CURVES THAT A MODEL HAS SEEN (--allow-overlap)" if told["overlap_allowed"] else "curves that neither saw"
        )
        lines.append(f"{told['model']}, mae on {seen}: version {told['version']}, {told['alias']} {told['against']}")
        for share, both in told["figures"].items():
            ends = " to ".join(f"{end:+.3g}" for end in both["interval"])
            pair = f"{brief(both[CANDIDATE]['mae'])}, {brief(both[HELD]['mae'])}"
            lines.append(
                f"  {float(share):.0%} of the epochs seen: {pair}; difference {both['difference']:+.3g} ({ends})"
            )
    if told["forced"]:
        lines.append(f"worse, promoted by --force: {'; '.join(told['reasons'])}")
    if told["promoted"]:
        lines.append(f"{told['model']}: {told['alias']} is version {told['version']}")
    return "\n".join(lines)


def refuse(told: Mapping[str, Any]) -> None:
    """Raise a PromotionError where the version was not promoted."""
    if not told["promoted"]:
        raise PromotionError(
            f"{told['model']}:{told['version']} is worse than {told['alias']} {told['against']} on "
            f"{told['inputs']['trace']['path']}: {'; '.join(told['reasons'])}; {told['alias']} stays version "
            f"{told['against']}, --force promotes all the same"
        )


def _pair(both: Mapping[str, Any], between: str) -> str:
    """The candidate's error and the other's."""
    return between.join(brief(both[name]["mae"]) for name in (CANDIDATE, HELD))


def _errors(model: Any, table: CurveTable, curves: Sequence[LearningCurve], prefix: float) -> dict[str, Any]:
    try:
        return curve_errors(model, curves, prefix)
    except TrainingError as error:
        raise TrainingError(f"{table.path}: {error}") from error
