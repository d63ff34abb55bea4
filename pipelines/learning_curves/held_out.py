"""Figures of twins: the predictor trained without what it is then scored on, an application at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobcast.domain.errors import TrainingError
from jobcast.models.evaluation.curves import LEAST_EPOCHS, CurveModel, curve_errors, pooled
from jobcast.pipelines.console import Step
from jobcast.traces.learning_curves import LearningCurve

PREFIXES = (0.2, 0.5)
"""Shares of the epochs that twins see."""
PARTS = 5
"""In which the curves of a single application are left out."""
APP, CURVE, NOTHING = "app", "curve", "nothing"
SAID = {
    APP: "of twins that did not see the application that they were scored on",
    CURVE: "of twins that did not see the curves that they were scored on",
    NOTHING: "missing, for no twin could be scored",
}
Curves = Sequence[LearningCurve]


@dataclass(frozen=True, slots=True)
class Twins:
    """What twins scored.

    Attributes
    ----------
    left_out : app, curve or nothing
    figures : share of the epochs seen -> figures as `score_curves` has them, over all curves
    notes : what a reader of the figures should know
    """

    left_out: str
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """What the figures are, in words."""
        return SAID[self.left_out]


def held_out(curves: Curves, fit: Callable[[Curves, Step | None], CurveModel], progress: Step | None = None) -> Twins:
    """Score twins on what they did not see: each application, or parts of the curves where there is only one.

    Curves of fewer than three epochs are learnt from, not scored.

    Parameters
    ----------
    curves : those of the training
    fit : how a predictor is trained on some of them, telling how far it is
    progress : called with (done, total)
    """
    left_out, folds = _folds(curves)
    notes = ["one application: twins left out parts of its curves"] if left_out == CURVE else []
    errors: dict[str, list[dict[str, Any]]] = {f"{prefix:g}": [] for prefix in PREFIXES}
    for done, fold in enumerate(folds):
        scored = [curves[i] for i in sorted(fold) if len(curves[i]) >= LEAST_EPOCHS]
        try:
            if scored:
                rest = [curve for i, curve in enumerate(curves) if i not in fold]
                twin = fit(rest, part_of(progress, done, len(folds)))
                for prefix in PREFIXES:
                    errors[f"{prefix:g}"].append(curve_errors(twin, scored, prefix))
        except TrainingError as error:
            notes.append(f"no twin without {', '.join(sorted({curve.app for curve in scored}))}: {error}")
        if progress:
            progress(done + 1, len(folds))
    figures = {share: pooled(parts) for share, parts in errors.items() if parts}
    if not figures:
        return Twins(NOTHING, notes=(*notes, "no twin could be scored: give curves of three epochs or more"))
    return Twins(left_out, figures, tuple(notes))


def part_of(progress: Step | None, part: int, parts: int) -> Step | None:
    """Progress of one of several parts of equal length, from 0, as that of the whole.

    >>> part_of(lambda done, total: print(done, total), 1, 4)(5, 10)
    15 40
    """
    return None if progress is None else lambda done, total: progress(part * total + done, parts * total)


def _folds(curves: Curves) -> tuple[str, list[set[int]]]:
    """What is left out at a time, as positions."""
    apps = sorted({curve.app for curve in curves})
    if len(apps) > 1:
        return APP, [{i for i, curve in enumerate(curves) if curve.app == app} for app in apps]
    parts = min(PARTS, len(curves))
    if parts < 2:
        return NOTHING, []
    return CURVE, [set(range(part, len(curves), parts)) for part in range(parts)]
