"""How AccuracyCurve learns; figures of twins, trained without what they are scored on; which curves a version has seen.

Which curves a version was trained on is kept among its files: scoring it on one of them would flatter it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, OverlapError, RegistryError, TrainingError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import LEAST_EPOCHS, curve_errors, pooled, score_curves
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.folders import DATA_FOLDER
from jobcast.pipelines.report.console import Step, part_of
from jobcast.traces.learning_curves import CurveTable, LearningCurve

Curves = Sequence[LearningCurve]


def fitted(
    algorithm: str,
    curves: Curves,
    seed: int,
    progress: Step | None = None,
    kind: type[AccuracyCurve] = AccuracyCurve,
) -> AccuracyCurve:
    """A predictor trained on finished runs: priors of the families by penalised least squares, or by PyMC for `bayes`.

    Raises TrainingError where they tell nothing, ConfigError where PyMC is not installed.
    """
    if algorithm == "combination":
        return kind().fit(curves)
    # PyMC takes seconds to import, and is an extra; it learns for a minute and more.
    from jobcast.models.curves.learning import learn_prior

    return kind(learn_prior(curves, seed, progress=progress)).fit(curves)


FILE = "trained_curves.json"


def fingerprint(curve: LearningCurve) -> str:
    """SHA-256 of a curve's application, batch size, epochs and metric, in hex.

    >>> import numpy as np
    >>> curve = LearningCurve("LM", 32, np.array([1, 2]), np.array([0.1, 0.4]))
    >>> fingerprint(curve) == fingerprint(curve.prefix(2)), fingerprint(curve) == fingerprint(curve.prefix(1))
    (True, False)
    """
    # Length and byte order are fixed, so that no two curves run into one another on any machine.
    digest = hashlib.sha256(f"{curve.app}\0{curve.batch_size}\0{len(curve)}\0".encode())
    digest.update(curve.epoch.astype("<i8").tobytes())
    digest.update(curve.metric.astype("<f8").tobytes())
    return digest.hexdigest()


def write_trained(folder: Path, curves: Iterable[LearningCurve]) -> None:
    """Write the curves' fingerprints, ascending, into a predictor's folder."""
    # Sorted: the same curves in another order are the same training.
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


def held_out(
    curves: Curves,
    fit: Callable[[Curves, Step | None], AccuracyCurve],
    progress: Step | None = None,
    prefixes: Sequence[float] = PREFIXES,
) -> Twins:
    """Score twins on what they did not see: each application, or parts of the curves where there is only one.

    Curves of fewer than three epochs are learnt from, not scored.

    Parameters
    ----------
    curves : those of the training
    fit : how a predictor is trained on some of them, telling how far it is
    progress : called with (done, total)
    prefixes : shares of the epochs that twins see
    """
    left_out, folds = _folds(curves)
    notes = ["one application: twins left out parts of its curves"] if left_out == CURVE else []
    errors: dict[str, list[dict[str, Any]]] = {f"{prefix:g}": [] for prefix in prefixes}
    for done, fold in enumerate(folds):
        # Sorted, so that figures add up in the same order every time.
        scored = [curves[i] for i in sorted(fold) if len(curves[i]) >= LEAST_EPOCHS]
        try:
            if scored:
                rest = [curve for i, curve in enumerate(curves) if i not in fold]
                twin = fit(rest, part_of(progress, done, len(folds)))
                for prefix in prefixes:
                    errors[f"{prefix:g}"].append(curve_errors(twin, scored, prefix))
        # A fold without a twin is told; the others still count.
        except TrainingError as error:
            notes.append(f"no twin without {', '.join(sorted({curve.app for curve in scored}))}: {error}")
        if progress:
            progress(done + 1, len(folds))
    figures = {share: pooled(parts) for share, parts in errors.items() if parts}
    if not figures:
        return Twins(NOTHING, notes=(*notes, "no twin could be scored: give curves of three epochs or more"))
    return Twins(left_out, figures, tuple(notes))


def _folds(curves: Curves) -> tuple[str, list[set[int]]]:
    """What is left out at a time, as positions."""
    apps = sorted({curve.app for curve in curves})
    # Of one application there is no other to learn from: then parts of its own curves are left out.
    if len(apps) > 1:
        return APP, [{i for i, curve in enumerate(curves) if curve.app == app} for app in apps]
    parts = min(PARTS, len(curves))
    if parts < 2:
        return NOTHING, []
    # Every fifth curve: neighbours in a file are often alike.
    return CURVE, [set(range(part, len(curves), parts)) for part in range(parts)]


def apps_of(curves: Sequence[LearningCurve]) -> list[str]:
    """Applications of some curves, ascending."""
    return sorted({curve.app for curve in curves})


def counts(curves: Sequence[LearningCurve]) -> dict[str, int]:
    """How much there is to learn from or to score."""
    scheduled = sum(bool(curve.lr_milestones) for curve in curves)
    return {"curves": len(curves), "epochs": sum(map(len, curves)), "curves_with_lr_milestones": scheduled}


def by_app(model: Any, curves: Sequence[LearningCurve], prefix: float) -> dict[str, dict[str, Any]]:
    """Figures of each application; those without a curve that can be scored are left out."""
    found = {}
    for app in apps_of(curves):
        # An application whose curves are all too short has no figures.
        with suppress(TrainingError):
            found[app] = score_curves(model, [curve for curve in curves if curve.app == app], prefix)
    return found


def trained_on(registry: Registry, version: ModelVersion, curves: Sequence[LearningCurve]) -> int:
    """How many of the curves a version was trained on."""
    trained = read_trained(registry.folder(version) / DATA_FOLDER / version.name)
    return sum(fingerprint(curve) in trained for curve in curves)


def refuse_trained(registry: Registry, version: ModelVersion, table: CurveTable, allowed: bool) -> bool:
    """Whether a version was trained on curves of a file; OverlapError unless that is allowed."""
    known = trained_on(registry, version, table.curves)
    # All of them: the user is likely to have given the training file itself.
    if known and not allowed:
        some = f"{known} of the {len(table.curves)} curves" if known < len(table.curves) else "all curves"
        raise OverlapError(
            f"{table.path}: {version.name} version {version.version} was trained on {some} in it; "
            "leave them out, or pass --allow-overlap to score it all the same"
        )
    return known > 0


def unfinished(table: CurveTable) -> list[str]:
    """A note on runs that the file says are to go on: their last value counts as the final one."""
    short = sum(
        whole is not None and whole > curve.epochs for curve, whole in zip(table.curves, table.epochs, strict=True)
    )
    return [f"{short} curves end before their epochs; their last value was taken for the final one"] if short else []


def whole_epochs(curve: LearningCurve, epochs: int | None) -> int:
    """Epochs of a whole run."""
    run = f"{curve.app} at batch size {curve.batch_size}"
    if epochs is None:
        raise ConfigError(f"--epochs: how many epochs {run} runs in all is not told; give N, or a column epochs")
    if epochs < curve.epochs:
        raise ConfigError(f"--epochs {epochs}: {run} has reached epoch {curve.epochs} already; give the whole run's")
    return epochs


def number(value: Any) -> float | None:
    """A figure as JSON has it; None for an epoch that never comes."""
    return float(value) if np.isfinite(value) else None
