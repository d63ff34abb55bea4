"""What is asked of `epoch-time` beside a table of profiles, and what it says to a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.models.epoch_time.jobs import HALF, MOST, MOST_POINTS, ONE
from jobcast.traces.profiles import KEY, PROFILE_SCHEMA, ProfileTable

GPUS = {ONE: "the fewest GPUs", HALF: "the middle number of GPUs", MOST: "the most GPUs"}
"""What a plan's words mean."""


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says."""
    training, spreads = result["training"], result["batch_sizes"]
    by_plan = ", ".join(f"{plan} {share:.1%}" for plan, share in result["validation"]["mape_by_plan"].items())
    return "\n".join(
        [
            f"{result['predictor']} version {result['version']} ({', '.join(result['aliases'])})",
            f"trained on {training['rows']} profiles of {', '.join(training['models'])}",
            f"batch sizes are a GPU's in {spreads['gpu']} models, the job's in {spreads['job']}",
            f"mean error of models left out, by the three points that are profiled: {by_plan}",
            f"profile by {result['plan']}: {'; '.join(result['points'])}",
        ]
    )


JOBS = ("model", "batch-size")
"""What is a job: a model, or a model at one batch size."""
SCORE_SETTINGS = ("plan", "batch", "job", "draws")


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
            if key not in SCORE_SETTINGS:
                raise ConfigError(f"--set {key}: epoch-time knows {', '.join(SCORE_SETTINGS)}")
        job, draws = settings.get("job", JOBS[0]), settings.get("draws", "0")
        if job not in JOBS:
            raise ConfigError(f"--set job={job}: must be {' or '.join(JOBS)}")
        if not draws.isdecimal():
            raise ConfigError(f"--set draws={draws}: must be a whole number of 0 or more")
        known = MOST_POINTS if points is None else points
        return cls(known, settings.get("plan"), settings.get("batch"), job, int(draws), seed)


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


QUESTION_SETTINGS = ("model", "batch_size", "gpu_type", "gpus", "batch")


@dataclass(frozen=True, slots=True)
class Question:
    """Configurations that are asked about: all combinations; empty: those of the table.

    Attributes
    ----------
    models, batch_sizes, gpu_types : names and sizes
    most_gpus : 1, 2, ... up to these; None: up to the table's largest number
    batch : what batch sizes mean (gpu, job); None: what the points make likelier
    """

    models: tuple[str, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    gpu_types: tuple[str, ...] = ()
    most_gpus: int | None = None
    batch: str | None = None

    @classmethod
    def read(cls, settings: Mapping[str, str]) -> "Question":
        """From `--set`, several values between commas. Raises ConfigError for what is not known."""
        for key in settings:
            if key not in QUESTION_SETTINGS:
                raise ConfigError(f"--set {key}: epoch-time knows {', '.join(QUESTION_SETTINGS)}")
        parts = {key: tuple(one.strip() for one in value.split(",")) for key, value in settings.items()}
        sizes = tuple(_whole("batch_size", one) for one in parts.get("batch_size", ()))
        most = _whole("gpus", settings["gpus"]) if "gpus" in settings else None
        return cls(parts.get("model", ()), sizes, parts.get("gpu_type", ()), most, settings.get("batch"))

    def keys(self, table: ProfileTable) -> pl.DataFrame:
        """(n,) model, batch_size, gpu_type, gpus, one a combination."""
        most = self.most_gpus or int(table.frame["gpus"].max())  # type: ignore[arg-type]
        rows: list[tuple[str, int | None, str, int]] = []
        for model in self.models or table.models:
            its = table.frame.filter(pl.col("model") == model)["batch_size"].unique().sort().to_list()
            sizes: Sequence[int | None] = self.batch_sizes or its or (None,)
            for size in sizes:
                for kind in self.gpu_types or table.gpu_types:
                    rows += [(model, size, kind, gpus) for gpus in range(1, most + 1)]
        return pl.DataFrame(rows, schema={name: PROFILE_SCHEMA[name] for name in KEY}, orient="row").unique(
            maintain_order=True
        )


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a configuration."""
    lines = [
        f"{result['predictor']} {result['version']}, seconds an epoch",
        f"{'model':<20}{'batch size':>11}  {'GPU type':<12}{'GPUs':>5}{'profiled':>11}{'forecast':>11}  90 %",
    ]
    for row in result["profiles"]:
        size = "any" if row["batch_size"] is None else row["batch_size"]
        profiled = "-" if row["profiled_s"] is None else f"{row['profiled_s']:.4g}"
        lines.append(
            f"{row['model']:<20}{size:>11}  {row['gpu_type']:<12}{row['gpus']:>5}{profiled:>11}"
            f"{row['epoch_s']:>11.4g}  {row['low_s']:.4g} to {row['high_s']:.4g}"
        )
    if result["overlap"]:
        lines.append("note: the version was trained on some of these models")
    return "\n".join(lines)


def _whole(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--set {key}={text}: must be a whole number of 1 or more")
    return int(text)
