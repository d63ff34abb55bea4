"""A registered version scored on data and asked from data: `jobcast evaluate` and `jobcast predict`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.models.predictor import Known
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import Ref
from jobcast.pipelines.experiments.forecast_specs import JCT
from jobcast.pipelines.lifecycle.predictors import check_capable, find_predictor
from jobcast.pipelines.lifecycle.predictors.life import EVALUATE, PREDICT, Life, VersionAndData, Wishes
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import duration
from jobcast.pipelines.report.model_tables import of_version
from jobcast.pipelines.report.predictor_plots import CurvePoints


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Figures as `jobcast evaluate --json` tells them, and points for plots where they were wished for.

    `version` is None of what was trained on the way.
    """

    result: dict[str, Any]
    version: ModelVersion | None
    curves: CurvePoints = field(default_factory=CurvePoints)


def evaluate_known(
    reference: tuple[str, Ref],
    known: Known,
    *,
    home: Path,
    wishes: Wishes | None = None,
    allow_overlap: bool = False,
    progress: Step | None = None,
) -> Evaluated:
    """Figures of a version on data; by default of what came after its training.

    Raises RegistryError, OverlapError for a version that cannot be used, TrainingError when nothing can be scored,
    ConfigError for wishes that cannot be granted.
    """
    if wishes is not None and wishes.every_days is not None:
        check_capable(EVALUATE, reference[0], (JCT,))
        # Trained on the way and not kept: there is no version to open.
        walked = find_predictor(reference[0], settings=TrainSettings(seed=wishes.seed)).walked(known, wishes, progress)
        return Evaluated({"predictor": reference[0], "version": None, "aliases": [], **walked}, None)
    predictor, version, registry = _opened(EVALUATE, reference, home)
    case = VersionAndData(known, version, registry, wishes or Wishes(), allow_overlap, progress)
    figures, curves = predictor.scored(case)
    return Evaluated({**of_version(version), **figures}, version, curves)


def _opened(command: str, reference: tuple[str, Ref], home: Path) -> tuple[Life[Any], ModelVersion, Registry]:
    """A predictor with the model of a registered version, once it can be asked by a command.

    Raises ConfigError for a predictor that cannot, RegistryError for a version that is not there.
    """
    check_capable(command, reference[0], (JCT,))
    registry = open_registry(home)
    version = registry.resolve(*reference)
    predictor = find_predictor(reference[0])
    # Loaded, not fitted: `fitted_`, what is told of a training, is not there.
    predictor.model_ = registry.load(version)
    return predictor, version, registry


def predict_known(reference: tuple[str, Ref], known: Known, asked: Mapping[str, Any], *, home: Path) -> dict[str, Any]:
    """Answers of a version.

    Parameters
    ----------
    asked : options of the question by name, such as `at_s`

    Raises ConfigError for a predictor that answers no such question, RegistryError for a version that is not there,
    TraceError when the data hold nothing to answer from.
    """
    predictor, version, registry = _opened(PREDICT, reference, home)
    answers = predictor.answered(VersionAndData(known, version, registry), asked)
    return {**of_version(version), **answers, **registry.staleness()}


def predicted_rows(reference: tuple[str, Ref], known: Known, *, home: Path) -> tuple[pl.DataFrame, ModelVersion]:
    """Answers of a version as rows, a pool and horizon, a job or a run each, and the version that gave them.

    Raises as `predict_known`.
    """
    predictor, version, _ = _opened(PREDICT, reference, home)
    return predictor.predict(known), version


def prediction_table(result: Mapping[str, Any]) -> str:
    """Answers for a person: a line a pool or job."""
    lines = [f"{result['predictor']} {result['version']} at {result['at']}"]
    for pool, by_horizon in result.get("pools", {}).items():
        lines.append(f"{pool:<16}" + "".join(f"  {name} {_said(answer)}" for name, answer in by_horizon.items()))
    for job_id, answer in result.get("jobs", {}).items():
        lines.append(f"{job_id:<16}  {_said_of_job(answer)}  {answer['pool']}")
    if result.get("beyond"):
        count = len(result["beyond"])
        lines.append(
            f"note: {count} jobs run on beyond the time that their epochs take alone, {result['beyond'][0]} first"
        )
    if result["overlap"]:
        lines.append("note: the version was trained on what comes after this instant")
    lines += [f"warning: {line}" for line in result.get("another_cluster") or ()]
    if "silent_s" in result:
        silence = duration(result["silent_s"])
        lines.append(f"warning: no job was submitted in the {silence} before: has the trace what came of late?")
    return "\n".join(lines)


def _said_of_job(answer: Mapping[str, Any]) -> str:
    # Two shapes of an answer about jobs: a bin of run times, or regimes to come.
    if "bin" in answer:
        return f"{answer['bin']} ({answer['probabilities'][answer['bin']]:.0%})"
    ahead = ", ".join(
        f"{one['epochs']:.1f} at {one['batch_size']} ({one['low']:.1f} to {one['high']:.1f})"
        for one in answer["regimes"]
    )
    low, high = (duration(answer[f"remaining_{end}_s"]) for end in ("low", "high"))
    done = f"epoch {answer['epochs_done']:.1f} of {answer['epochs']}"
    return f"{done}; {duration(answer['remaining_s'])} left ({low} to {high}): epochs {ahead}"


def _said(answer: Mapping[str, Any]) -> str:
    if "gpus" in answer:
        return f"{answer['gpus']:g} GPUs"
    return f"{answer['probability']:.2f} {'yes' if answer['arrives'] else 'no'}"
