"""What a registered version says at one instant of a trace."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import TraceError
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.features.arrivals import arrival_features
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import Ref
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.forecast_specs import CURVES, JCT, check_known
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.pipelines.times import iso
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from jobcast.traces.splits import gpu_jobs
from jobcast.traces.table import Trace

Answer = dict[str, Any]


def _arrivals(model: WillJobsArrive, known: Trace, at_s: float) -> Answer:
    horizons_s = [60.0 * k for k in model.horizons_min_]
    histories = pool_histories(known)
    rows = [arrival_features(history, np.array([at_s]), horizons_s) for history in histories.values()]
    probability = model.predict_proba(np.concatenate(rows))
    return {
        "pools": {
            name: {
                horizon_label(k): {
                    "probability": float(probability[i, h]),
                    "arrives": bool(probability[i, h] >= model.thresholds_f1_[h]),
                    "gate": bool(probability[i, h] >= model.thresholds_gate_[h]),
                }
                for h, k in enumerate(model.horizons_min_)
            }
            for i, name in enumerate(histories)
        }
    }


def _loads(model: NewLoad, known: Trace, at_s: float) -> Answer:
    return {
        "pools": {
            name: {
                horizon_label(k): {"gpus": float(gpus)}
                for k, gpus in zip(model.horizons_min_, model.predict(history, np.array([at_s]))[0], strict=True)
            }
            for name, history in pool_histories(known).items()
        }
    }


def _durations(model: JobDuration, known: Trace, at_s: float) -> Answer:
    """Bins of the jobs that have not ended, from what had ended by the instant."""
    jobs, durations = known.to_jobs()
    history = RunHistory(known.pools, EarlierJobs(jobs, known.start_s, known.end_s, durations))
    history.advance(at_s)
    tracker = model.tracker()
    tracker.catch_up(history)
    unfinished = np.flatnonzero(known.end_s > at_s)
    labels = bin_labels(model.horizons_min)
    rows = tracker.rows([jobs[i] for i in unfinished])
    chosen, shares = model.predict(rows), model.predict_proba(rows)
    return {
        "jobs": {
            jobs[i].job_id: {
                "pool": jobs[i].pool,
                "bin": labels[int(b)],
                "probabilities": dict(zip(labels, map(float, p), strict=True)),
            }
            for i, b, p in zip(unfinished, chosen, shares, strict=True)
        }
    }


ANSWERS: Mapping[str, Callable[[Any, Trace, float], Answer]] = {
    WillJobsArrive.name: _arrivals,
    NewLoad.name: _loads,
    JobDuration.name: _durations,
}


def predict_at(reference: tuple[str, Ref], trace: Trace, at_s: float, *, home: Path) -> dict[str, Any]:
    """Answers of a version at an instant; nothing after it is read.

    Raises ConfigError for a predictor that answers no such question, RegistryError for a version that is not there,
    TraceError when the trace holds no job up to the instant.
    """
    check_known("predict", reference[0], ANSWERS, (CURVES, JCT))
    registry = open_registry(home)
    version = registry.resolve(*reference)
    trace = gpu_jobs(trace)
    known = trace.between(None, float(np.nextafter(at_s, np.inf)))
    if not len(known):
        raise TraceError(f"{trace.source.path}: no job was submitted by {iso(at_s)}; choose a later --at")
    return {
        **of_version(version),
        "at": iso(at_s),
        **ANSWERS[version.name](registry.load(version), known, at_s),
        "overlap": version.train_until_s > at_s,
        **made_from(trace.source, trace.notes, trace.dropped),
    }


def prediction_table(result: Mapping[str, Any]) -> str:
    """Answers for a person: a line a pool or job."""
    lines = [f"{result['predictor']} {result['version']} at {result['at']}"]
    for pool, by_horizon in result.get("pools", {}).items():
        lines.append(f"{pool:<16}" + "".join(f"  {name} {_said(answer)}" for name, answer in by_horizon.items()))
    for job_id, answer in result.get("jobs", {}).items():
        lines.append(f"{job_id:<16}  {answer['bin']} ({answer['probabilities'][answer['bin']]:.0%})  {answer['pool']}")
    if result["overlap"]:
        lines.append("note: the version was trained on what comes after this instant")
    return "\n".join(lines)


def _said(answer: Mapping[str, Any]) -> str:
    if "gpus" in answer:
        return f"{answer['gpus']:g} GPUs"
    return f"{answer['probability']:.2f} {'yes' if answer['arrives'] else 'no'}"
