"""Scoring a registered version on a window of a trace: the figures of `jobcast evaluate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.features.corpus import STEP_S
from jobcast.models.evaluation.intervals import CONFIDENCE
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.references import Ref
from jobcast.pipelines.console import Step
from jobcast.pipelines.curves import CurvePoints
from jobcast.pipelines.forecast_specs import CURVES, JCT, check_known
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.pipelines.scoring import SCORERS, Scoring, Wishes
from jobcast.pipelines.sources import apart_in_time, refuse_overlap
from jobcast.pipelines.times import iso
from jobcast.traces.splits import MIN_TRAIN_JOBS, check_tests, gpu_jobs, pools_to_learn_from
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Figures as `jobcast evaluate --json` tells them, and points for plots where they were wished for."""

    result: dict[str, Any]
    version: ModelVersion
    curves: CurvePoints = field(default_factory=CurvePoints)


def scored_pools(trace: Trace, train_from_s: float, train_until_s: float) -> tuple[str, ...]:
    """Pools with at least 100 training jobs; all pools where the trace does not hold the training time."""
    training = trace.between(train_from_s, train_until_s)
    if not len(training):
        return tuple(trace.pools)
    try:
        return pools_to_learn_from(training, MIN_TRAIN_JOBS)
    except TrainingError:
        return tuple(trace.pools)


def stretch_of(
    trace: Trace, from_s: float | None, until_s: float | None, begin_s: float, doing: str, why: str
) -> tuple[float, float]:
    """[from, until) of a trace, by default from `begin_s` to its end. Raises ConfigError where it is empty."""
    begin = begin_s if from_s is None else from_s
    end = float(trace.submit_s[-1]) + 1.0 if until_s is None else until_s
    if begin >= end:
        raise ConfigError(f"{trace.source.path}: nothing to {doing} from {iso(begin)} until {iso(end)}; {why}")
    return begin, end


def evaluate_version(
    reference: tuple[str, Ref],
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    *,
    home: Path,
    allow_overlap: bool = False,
    progress: Step | None = None,
    wishes: Wishes | None = None,
) -> Evaluated:
    """Figures of a version on [from, until); by default from where its training ended to the end of the trace.

    Another trace without a calendar is scored whole by default, see `sources.apart_in_time`.

    Raises RegistryError, OverlapError for a version that cannot be used, TrainingError when nothing can be scored,
    ConfigError for wishes that cannot be granted.
    """
    check_known("evaluate", reference[0], SCORERS, (CURVES, JCT))
    registry = open_registry(home)
    version, trace = registry.resolve(*reference), gpu_jobs(trace)
    sha256 = trace.source.sha256
    other = apart_in_time(version, float(trace.submit_s[0]), sha256)
    default_s = float(trace.submit_s[0]) if other else version.train_until_s
    trained = f"{version.name} version {version.version} was trained until {iso(version.train_until_s)}"
    why = f"{trained}, --from must lie before --until"
    begin, end = stretch_of(trace, from_s, until_s, default_s, "score", why)
    overlap = refuse_overlap(version, begin, end, allow_overlap, sha256)
    check_tests(trace, begin, end)
    known = trace.between(None, end)
    pools = scored_pools(known, version.train_from_s, version.train_until_s)
    step_s = float(registry.parameters(version).get("step_s", STEP_S))
    data = Scoring(known, version, begin, end, pools, wishes or Wishes(), step_s, progress, registry)
    data.check()
    figures, curves = SCORERS[version.name](registry.load(version), data)
    return Evaluated(_told(figures, data, trace, overlap), version, curves)


def _told(figures: Mapping[str, Any], data: Scoring, trace: Trace, overlap: bool) -> dict[str, Any]:
    version = data.version
    return {
        **of_version(version),
        **figures,
        "algorithm": version.algorithm,
        "pools": list(data.pools),
        "window": {"from": iso(data.from_s), "until": iso(data.until_s)},
        "trained": {
            "from": iso(version.train_from_s),
            "until": iso(version.train_until_s),
            "trace": version.trace_name,
        },
        "bootstrap": {"draws": data.wishes.draws, "seed": data.wishes.seed, "confidence": CONFIDENCE, "block": "day"},
        "overlap_allowed": overlap,
        "simulated": False,
        **made_from(trace.source, trace.notes, trace.dropped),
    }
