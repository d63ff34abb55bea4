"""`jobcast evaluate epoch-time`: a version on tables of profiles, of which it is told a few points."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.models.epoch_time.jobs import jobs_of
from jobcast.models.epoch_time.plans import MOST_POINTS
from jobcast.models.evaluation.epoch_times import score_epoch_times
from jobcast.models.registry import open_registry
from jobcast.models.registry.references import Ref
from jobcast.pipelines.model_tables import made_from, of_version
from jobcast.traces.profiles import ProfileTable

JOBS = ("model", "batch-size")
"""What is a job: a model, or a model at one batch size."""
SETTINGS = ("plan", "batch", "job", "draws")


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How a version is scored.

    Attributes
    ----------
    points : known of each job and GPU type
    plan : which; None: the version's own
    batch : what batch sizes mean (gpu, job); None: what the points make likelier
    job : one of `JOBS`
    draws : of points at random
    seed : of these
    """

    points: int = MOST_POINTS
    plan: str | None = None
    batch: str | None = None
    job: str = JOBS[0]
    draws: int = 0
    seed: int = 0

    @classmethod
    def read(cls, settings: Mapping[str, str], points: int | None, seed: int) -> "ScoreSettings":
        """From `--set` and other options. Raises ConfigError for what is not known."""
        for key in settings:
            if key not in SETTINGS:
                raise ConfigError(f"--set {key}: epoch-time knows {', '.join(SETTINGS)}")
        job, draws = settings.get("job", JOBS[0]), settings.get("draws", "0")
        if job not in JOBS:
            raise ConfigError(f"--set job={job}: must be {' or '.join(JOBS)}")
        if not draws.isdecimal():
            raise ConfigError(f"--set draws={draws}: must be a whole number of 0 or more")
        known = MOST_POINTS if points is None else points
        return cls(known, settings.get("plan"), settings.get("batch"), job, int(draws), seed)


def score_version(
    reference: tuple[str, Ref], table: ProfileTable, settings: ScoreSettings, *, home: Path, allow_overlap: bool = False
) -> dict[str, Any]:
    """Figures of a version that knows a few points of each job; see `models.evaluation.epoch_times`.

    An application that the version was trained on is forecast by a twin that is trained anew without it, unless that
    overlap is allowed.

    Raises RegistryError for a version that is not there, TrainingError where nothing is left to score.
    """
    registry = open_registry(home)
    version = registry.resolve(*reference)
    model = registry.load(version)
    seen = [name for name in table.models if name in model.models_]
    try:
        figures = score_epoch_times(
            jobs_of(table, settings.job != JOBS[0]),
            (lambda name: model) if allow_overlap else model.twin_without,
            settings.points,
            settings.plan,
            settings.batch,
            settings.draws,
            settings.seed,
        )
    except TrainingError as error:
        raise TrainingError(f"{table.path}: {error}") from error
    twins = f"trained on {', '.join(seen)}; each was forecast by a twin that was trained without it"
    return {
        **of_version(version),
        "known": settings.points,
        "job": settings.job,
        **figures,
        "algorithm": version.algorithm,
        "trained": {"trace": version.trace_name, "sha256": version.trace_sha256},
        "left_out": [] if allow_overlap else seen,
        "overlap_allowed": bool(seen and allow_overlap),
        "simulated": False,
        **made_from(table, (*table.notes, *([twins] if seen and not allow_overlap else []))),
    }


def evaluation_table(result: Mapping[str, Any]) -> str:
    """What `evaluate` says."""
    head = f"{result['predictor']} {result['version']}, {result['known']} points a {result['job']} and GPU type"
    lines = [
        f"{head} by {', '.join(result['plans'])}: {result['jobs']} jobs, {result['points']} points, "
        f"{result['configurations']} configurations left out",
        f"{'mape':<24}{result['mape']:>10.2%}",
        f"{'90 % of errors below':<24}{result['p90_ape']:>10.2%}",
        f"{'intervals of 90 % hold':<24}{result['coverage_90']:>10.2%}",
    ]
    lines += [f"{f'rule {name}':<24}{share:>10.2%}" for name, share in result["baselines"].items()]
    for title in ("mape_by_gpu_type", "mape_by_model"):
        lines += ["", title.replace("_", " ")]
        lines += [f"{name:<24}{share:>10.2%}" for name, share in result[title].items()]
    if drawn := result["random_points"]:
        ends = f"{drawn['mape_p5']:.2%} to {drawn['mape_p95']:.2%}"
        lines += ["", f"points drawn at random ({drawn['draws']} times): {drawn['mape']:.2%}, 90 % within {ends}"]
    if result["overlap_allowed"]:
        lines.append("warning: the version was trained on some of these models (--allow-overlap)")
    return "\n".join(lines)
