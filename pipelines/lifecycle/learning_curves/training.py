"""How AccuracyCurve learns, by the algorithm's name.

Which curves a version was trained on, kept among its files: scoring it on one of them would flatter it.

Figures of twins: the predictor trained without what it is then scored on, an application at a time.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import LEAST_EPOCHS, CurveModel, curve_errors, pooled
from jobcast.pipelines.report.console import Step
from jobcast.traces.learning_curves import LearningCurve

Curves = Sequence[LearningCurve]
Fit = Callable[[type[AccuracyCurve], Curves, int, Step | None], AccuracyCurve]


def _combination(kind: type[AccuracyCurve], curves: Curves, seed: int, progress: Step | None) -> AccuracyCurve:
    """Priors of the families by penalised least squares."""
    return kind().fit(curves)


def _bayes(kind: type[AccuracyCurve], curves: Curves, seed: int, progress: Step | None) -> AccuracyCurve:
    """Priors of the families by PyMC, which takes a minute and more; ConfigError where that is not installed."""
    from jobcast.models.curves.learning import learn_prior

    return kind(learn_prior(curves, seed, progress=progress)).fit(curves)


ALGORITHMS: Mapping[str, Fit] = {"combination": _combination, "bayes": _bayes}
"""Algorithm -> (class, curves, seed, progress) -> a fitted predictor; the default first."""


def fitted(
    algorithm: str,
    curves: Curves,
    seed: int,
    progress: Step | None = None,
    kind: type[AccuracyCurve] = AccuracyCurve,
) -> AccuracyCurve:
    """A predictor trained on finished runs. Raises TrainingError where they tell nothing."""
    return ALGORITHMS[algorithm](kind, curves, seed, progress)


FILE = "trained_curves.json"


def fingerprint(curve: LearningCurve) -> str:
    """SHA-256 of a curve's application, batch size, epochs and metric, in hex.

    >>> import numpy as np
    >>> curve = LearningCurve("LM", 32, np.array([1, 2]), np.array([0.1, 0.4]))
    >>> fingerprint(curve) == fingerprint(curve.prefix(2)), fingerprint(curve) == fingerprint(curve.prefix(1))
    (True, False)
    """
    digest = hashlib.sha256(f"{curve.app}\0{curve.batch_size}\0{len(curve)}\0".encode())
    digest.update(curve.epoch.astype("<i8").tobytes())
    digest.update(curve.metric.astype("<f8").tobytes())
    return digest.hexdigest()


def write_trained(folder: Path, curves: Iterable[LearningCurve]) -> None:
    """Write the curves' fingerprints, ascending, into a predictor's folder."""
    found = sorted(fingerprint(curve) for curve in curves)
    (folder / FILE).write_text(json.dumps({"curves": found}, indent=1) + "\n", encoding="utf-8")


def read_trained(folder: Path) -> frozenset[str]:
    """Fingerprints of the curves that the predictor in a folder was trained on.

    Raises
    ------
    RegistryError
        The file is not there or damaged.
    """
    path = folder / FILE
    try:
        return frozenset(str(one) for one in json.loads(path.read_text(encoding="utf-8"))["curves"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegistryError(f"{path}: cannot be read ({error!r}); train the predictor again") from error


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


def apps_of(curves: Sequence[LearningCurve]) -> list[str]:
    """Applications of some curves, ascending."""
    return sorted({curve.app for curve in curves})


def counts(curves: Sequence[LearningCurve]) -> dict[str, int]:
    """How much there is to learn from or to score."""
    scheduled = sum(bool(curve.lr_milestones) for curve in curves)
    return {"curves": len(curves), "epochs": sum(map(len, curves)), "curves_with_lr_milestones": scheduled}
