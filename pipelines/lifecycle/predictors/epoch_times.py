"""Life of the predictors of seconds an epoch, and its tables for a terminal."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.jobs import HALF, MOST, MOST_POINTS, ONE, PLANS, jobs_of
from jobcast.models.evaluation.epoch_times import score_epoch_times
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.predictors.life import (
    EVALUATE,
    PREDICT,
    TRAIN,
    Asked,
    Fitted,
    Told,
    VersionAndData,
    Wishes,
    told_by,
)
from jobcast.pipelines.lifecycle.predictors.tables import TableLife, of_file, told_of_table
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import card_of_table, made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.profiles import KEY, PROFILE_COLUMNS, PROFILE_SCHEMA, ProfileTable, read_profiles, write_profiles
from jobcast.traces.table import Trace

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
            f"profile by {result['plan']}, which is not chosen by these errors: {'; '.join(result['points'])}",
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
        # Strings still: what is no number is told with the text that was typed.
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
        # Not beyond what was profiled, unless that is asked for.
        most = self.most_gpus or int(table.frame["gpus"].max())  # type: ignore[arg-type]
        rows: list[tuple[str, int | None, str, int]] = []
        for model in self.models or table.models:
            # A model that the table does not know has no batch size here; forecasting it is refused.
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


NO_CALENDAR = "profiles have no calendar, a trace of jobs with profiles has one"


class EpochTimes(TableLife[EpochTime]):
    """How long does an epoch take on other GPUs?"""

    table: ClassVar[str] = "profiles"
    read = staticmethod(read_profiles)
    read_of_jobs = staticmethod(read_profiles)
    says: ClassVar[Mapping[str, str]] = told_by("lifecycle.predictors.epoch_times")
    beside_trace: ClassVar[Collection[str]] = (TRAIN,)
    reads: ClassVar[Mapping[str, Collection[str]]] = {
        TRAIN: ("seed",),
        EVALUATE: ("points", "pairs", "seed", "allow_overlap"),
        PREDICT: ("pairs", "out", "seed"),
    }
    why: ClassVar[Mapping[str, str]] = {"from_s": NO_CALENDAR, "until_s": NO_CALENDAR}

    @classmethod
    def of_jobs(cls, jobs: Trace, table: ProfileTable) -> ProfileTable:
        """See `TableLife`."""
        frame = table.of_jobs(jobs.values("model"), jobs.values("batch_size"))
        return replace(table, path=jobs.source.path, sha256=jobs.source.sha256, frame=frame, notes=jobs.notes)

    @classmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """See `TableLife`. Raises ConfigError for settings that are not known, before anything is read."""
        if command == EVALUATE:
            # For its errors alone: a mistake must cost no reading of large tables.
            ScoreSettings.read(asked.given, asked["points"], asked["seed"])
        if command == PREDICT:
            Question.read(asked.given)
        return super().known(command, asked)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """On all profiles; validated on models that were left out.

        A table of a window's jobs says so in what is registered: a run of jobs before its end is refused.
        """
        table, seed = self.table_of(known), self.settings.seed
        kind: Any = self.model
        # No algorithm is passed: there is one.
        model: EpochTime = kind().fit(table, tick=progress or (lambda done, total: None))
        card = card_of_table(
            table,
            model,
            seed,
            algorithm=model.algorithm,
            parameters={
                "models": ", ".join(table.models),
                "gpu_types": ", ".join(table.gpu_types),
                "plan": model.plan_,
            },
            metrics={"validation": {plan: {"mape": share} for plan, share in model.validation_.items()}},
            description=f"{model.algorithm}, trained on {len(table)} profiles of {Path(table.path).stem}; metrics are "
            "of models left out",
        )
        result = {
            "training": {"rows": len(table), "models": list(table.models), "gpu_types": list(table.gpu_types)},
            "plan": model.plan_,
            "points": [f"{size} batch size on {GPUS[gpus]}" for size, gpus in PLANS[model.plan_]],
            "batch_sizes": dict(model.counts_),
            "validation": {"left_out": "application", "mape_by_plan": dict(model.validation_)},
            **made_from(table, table.notes),
        }
        return Fitted(model, card, result)

    def measured(self, table: ProfileTable, wishes: Wishes) -> Told:
        """Errors where a few points of each job are known; applications that it learnt from are forecast by twins."""
        return self._figures(table, ScoreSettings.read(wishes.given, wishes.points, wishes.seed), False)

    def _figures(self, table: ProfileTable, how: ScoreSettings, overlapping: bool) -> Told:
        model, plans = self.model_, (how.points, how.plan, how.batch, how.draws, how.seed)
        with of_file(table.path):
            # With --allow-overlap the version itself forecasts what it has learnt.
            twin = (lambda name: model) if overlapping else model.twin_without
            return dict(score_epoch_times(jobs_of(table, how.job != JOBS[0]), twin, *plans))

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `Life`.

        An application that the version was trained on is forecast by a twin that is trained anew without it, unless
        that overlap is allowed. Raises TrainingError where nothing is left to score.
        """
        table, allowed = self.table_of(case.known), case.allow_overlap
        how = ScoreSettings.read(case.wishes.given, case.wishes.points, case.wishes.seed)
        # Applications, not rows: another batch size of a known model is known, too.
        seen = [name for name in table.models if name in self.model_.models_]
        twins = f"trained on {', '.join(seen)}; each was forecast by a twin that was trained without it"
        figures = {"known": how.points, "job": how.job, **self._figures(table, how, allowed)}
        notes, left_out = ([twins] if seen and not allowed else []), [] if allowed else seen
        result = told_of_table(case.version, table, notes, bool(seen and allowed), left_out=left_out)
        return {**figures, **result}, CurvePoints()

    def predict(self, known: Known) -> pl.DataFrame:
        """Seconds an epoch with 90 % intervals, of all that the table's models, sizes and types could be."""
        return self._completed(self.table_of(known), Question())

    def _completed(self, table: ProfileTable, question: Question) -> pl.DataFrame:
        asked = question.keys(table)
        forecast = self.model_.forecast(table, asked, question.batch)
        # Nulls are equal: profiles without a batch size have one key.
        known = asked.join(table.frame, on=KEY, how="left", nulls_equal=True, maintain_order="left")["epoch_s"]
        return asked.with_columns(
            pl.Series("epoch_s", forecast.epoch_s),
            pl.Series("low_s", forecast.low_s),
            pl.Series("high_s", forecast.high_s),
            known.alias("profiled_s"),
        )

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Forecasts of all that is asked for; `--out` is written with the known points and these.

        Raises TraceError for a model without a point.
        """
        table, out = self.table_of(case.known), asked["out"]
        rows = self._completed(table, Question.read(settings_of(asked["pairs"])))
        if out is not None:
            # What was measured is kept as it was measured.
            made = rows.filter(pl.col("profiled_s").is_null()).select(PROFILE_COLUMNS)
            write_profiles(pl.concat([table.frame, made]), out)
        return {
            "profiles": rows.to_dicts(),
            "overlap": any(name in self.model_.models_ for name in rows["model"].unique().to_list()),
            "out": None if out is None else str(out),
            **made_from(table, table.notes),
        }
