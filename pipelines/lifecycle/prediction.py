"""What a registered version says, at an instant of a trace or of a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from jobcast.models.predictor import Known
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import Ref
from jobcast.pipelines.experiments.forecast_specs import JCT
from jobcast.pipelines.lifecycle.evaluation import opened
from jobcast.pipelines.lifecycle.predictors import check_capable
from jobcast.pipelines.lifecycle.predictors.life import PREDICT, VersionAndData
from jobcast.pipelines.report.formatting import duration
from jobcast.pipelines.report.model_tables import of_version
from jobcast.traces.table import Trace


def predict_at(reference: tuple[str, Ref], trace: Trace, at_s: float, *, home: Path) -> dict[str, Any]:
    """`predict_known` at an instant of a trace; nothing after it is read."""
    return predict_known(reference, Known(trace, {}, None, at_s), {"at_s": at_s}, home=home)


def predict_known(reference: tuple[str, Ref], known: Known, asked: Mapping[str, Any], *, home: Path) -> dict[str, Any]:
    """Answers of a version.

    Parameters
    ----------
    asked : options of the question by name, such as `at_s`

    Raises ConfigError for a predictor that answers no such question, RegistryError for a version that is not there,
    TraceError when the data hold nothing to answer from.
    """
    check_capable(PREDICT, reference[0], (JCT,))
    predictor, version, registry = opened(reference, home)
    answers = predictor.answered(VersionAndData(known, version, registry), asked)
    return {**of_version(version), **answers, **registry.staleness()}


def predicted_rows(reference: tuple[str, Ref], known: Known, *, home: Path) -> tuple[pl.DataFrame, ModelVersion]:
    """Answers of a version as rows, a pool and horizon, a job or a run each, and the version that gave them.

    Raises as `predict_known`.
    """
    check_capable(PREDICT, reference[0], (JCT,))
    predictor, version, _ = opened(reference, home)
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
    return "\n".join(lines)


def _said_of_job(answer: Mapping[str, Any]) -> str:
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
