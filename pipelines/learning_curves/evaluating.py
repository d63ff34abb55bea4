"""`jobcast evaluate accuracy-curve`: a version on curves that it has not seen.

`jobcast predict accuracy-curve`: where running jobs will end, from what was seen of them.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, OverlapError, TrainingError
from jobcast.models.evaluation.curves import score_curves
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.folders import DATA_FOLDER
from jobcast.models.registry.references import Ref
from jobcast.pipelines.finished_jobs import of_file
from jobcast.pipelines.learning_curves.training import apps_of, counts, fingerprint, read_trained
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.traces.learning_curves import CurveTable, LearningCurve

FLAT = "{} curves were not scored: they do not vary, or end with what is seen"


def score_version(
    reference: tuple[str, Ref], table: CurveTable, prefix: float, *, home: Path, allow_overlap: bool = False
) -> dict[str, Any]:
    """Figures of a version that sees the first share of each curve; see `models.evaluation.curves.score_curves`.

    Raises RegistryError for a version that is not there, OverlapError where it was trained on curves of the file,
    TrainingError where no curve goes on after its prefix.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    overlap = refuse_trained(registry, version, table, allow_overlap)
    model = registry.load(version)
    with of_file(table.path):
        figures = score_curves(model, table.curves, prefix)
    left = len(table.curves) - int(figures["curves"])
    return {
        **of_version(version),
        "prefix": prefix,
        **figures,
        "by_app": _by_app(model, table.curves, prefix),
        "algorithm": version.algorithm,
        "trained": {"trace": version.trace_name, "sha256": version.trace_sha256},
        "scored": {**counts(table.curves), "apps": apps_of(table.curves)},
        "overlap_allowed": overlap,
        "simulated": False,
        **made_from(table, (*table.notes, *_unfinished(table), *([FLAT.format(left)] if left else []))),
    }


def _by_app(model: Any, curves: Sequence[LearningCurve], prefix: float) -> dict[str, dict[str, Any]]:
    """Figures of each application; those without a curve that can be scored are left out."""
    found = {}
    for app in apps_of(curves):
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
    if known and not allowed:
        some = f"{known} of the {len(table.curves)} curves" if known < len(table.curves) else "all curves"
        raise OverlapError(
            f"{table.path}: {version.name} version {version.version} was trained on {some} in it; "
            "leave them out, or pass --allow-overlap to score it all the same"
        )
    return known > 0


def _unfinished(table: CurveTable) -> list[str]:
    """A note on runs that the file says are to go on: their last value counts as the final one."""
    short = sum(
        whole is not None and whole > curve.epochs for curve, whole in zip(table.curves, table.epochs, strict=True)
    )
    return [f"{short} curves end before their epochs; their last value was taken for the final one"] if short else []


MEDIAN = 0.5


def forecast_runs(
    reference: tuple[str, Ref], table: CurveTable, epochs: int | None, target: float | None, *, home: Path
) -> dict[str, Any]:
    """Final values of running jobs with 90 % intervals, and where a target is given whether and when it is reached.

    Parameters
    ----------
    table : what was seen of each job
    epochs : of a whole run, where the file does not tell them by the column `epochs`

    Raises
    ------
    ConfigError
        A run's epochs are not told, or are fewer than were seen.
    RegistryError
        The version is not there.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    whole = [_whole(curve, told or epochs) for curve, told in zip(table.curves, table.epochs, strict=True)]
    forecast = registry.load(version).forecast(table.curves, whole)
    answers: dict[str, Sequence[Any]] = {
        "final": forecast.final_mean,
        "final_low": forecast.final_low,
        "final_high": forecast.final_high,
    }
    if target is not None:
        answers["reach_probability"] = forecast.reach_probability(target)
        answers["reach_epoch"] = forecast.reach_epoch(target, MEDIAN)
    return {
        **of_version(version),
        "target": target,
        "curves": [
            {
                "app": curve.app,
                "batch_size": curve.batch_size,
                "seen": curve.epochs,
                "epochs": whole[i],
                "last": float(curve.metric[-1]),
                **{name: _number(values[i]) for name, values in answers.items()},
            }
            for i, curve in enumerate(table.curves)
        ],
        "overlap": trained_on(registry, version, table.curves) > 0,
        **made_from(table, table.notes),
    }


def _whole(curve: LearningCurve, epochs: int | None) -> int:
    """Epochs of a whole run."""
    run = f"{curve.app} at batch size {curve.batch_size}"
    if epochs is None:
        raise ConfigError(f"--epochs: how many epochs {run} runs in all is not told; give N, or a column epochs")
    if epochs < curve.epochs:
        raise ConfigError(f"--epochs {epochs}: {run} has reached epoch {curve.epochs} already; give the whole run's")
    return epochs


def _number(value: Any) -> float | None:
    """A figure as JSON has it; None for an epoch that never comes."""
    return float(value) if np.isfinite(value) else None
