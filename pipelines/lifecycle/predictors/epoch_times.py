"""Life of the predictors of seconds an epoch, and its tables for a terminal."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl

from jobcast.domain.pairs import settings_of
from jobcast.domain.settings import Count, Counts, Settings, Text, Whole, Words, read_settings
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.jobs import HALF, MOST, MOST_POINTS, ONE, PLANS, jobs_of
from jobcast.models.evaluation.epoch_times import score_epoch_times
from jobcast.models.predictor import Known
from jobcast.pipelines.experiments.forecast_specs import EPOCH_TIME
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
from jobcast.pipelines.report.layout import aligned
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


class ScoreSettings(Settings):
    """How a version is scored.

    Attributes
    ----------
    plan : which points are known; None: the version's own
    batch : what batch sizes mean (gpu, job); None: what the points make likelier
    job : what is a job: a model, or a model at one batch size
    draws : of points at random
    """

    plan: Text | None = None
    batch: Text | None = None
    job: Literal["model", "batch-size"] = "model"
    draws: Whole = 0


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


class Question(Settings):
    """Configurations that are asked about: all combinations; None: those of the table.

    Attributes
    ----------
    gpus : the widest; None: as wide as any that was profiled
    batch : see `ScoreSettings`
    """

    model: Words | None = None
    batch_size: Counts | None = None
    gpu_type: Words | None = None
    gpus: Count | None = None
    batch: Text | None = None

    def keys(self, table: ProfileTable) -> pl.DataFrame:
        """(n,) model, batch_size, gpu_type, gpus, one a combination."""
        # Not beyond what was profiled, unless that is asked for.
        most = self.gpus or int(table.frame["gpus"].max())  # type: ignore[arg-type]
        rows: list[tuple[str, int | None, str, int]] = []
        for model in self.model or table.models:
            # A model that the table does not know has no batch size here; forecasting it is refused.
            its = table.frame.filter(pl.col("model") == model)["batch_size"].unique().sort().to_list()
            sizes: Sequence[int | None] = self.batch_size or its or (None,)
            for size in sizes:
                for kind in self.gpu_type or table.gpu_types:
                    rows += [(model, size, kind, gpus) for gpus in range(1, most + 1)]
        return pl.DataFrame(rows, schema={name: PROFILE_SCHEMA[name] for name in KEY}, orient="row").unique(
            maintain_order=True
        )


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a configuration."""
    rows = [("model", "batch size", "GPU type", "GPUs", "profiled", "forecast", "90 %")]
    for row in result["profiles"]:
        size = "any" if row["batch_size"] is None else str(row["batch_size"])
        profiled = "-" if row["profiled_s"] is None else f"{row['profiled_s']:.4g}"
        between = f"{row['low_s']:.4g} to {row['high_s']:.4g}"
        rows.append((row["model"], size, row["gpu_type"], str(row["gpus"]), profiled, f"{row['epoch_s']:.4g}", between))
    lines = [f"{result['predictor']} {result['version']}, seconds an epoch", aligned(rows, words=3)]
    if result["overlap"]:
        lines.append("note: the version was trained on some of these models")
    return "\n".join(lines)


SETTINGS: Mapping[str, type[Settings]] = {EVALUATE: ScoreSettings, PREDICT: Question}
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
        if command in SETTINGS:
            # For its errors alone: a mistake must cost no reading of large tables.
            read_settings(EPOCH_TIME, SETTINGS[command], asked.given)
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
        return self._figures(table, wishes, False)

    def _figures(self, table: ProfileTable, wishes: Wishes, overlapping: bool) -> Told:
        model, how = self.model_, read_settings(EPOCH_TIME, ScoreSettings, wishes.given)
        known = MOST_POINTS if wishes.points is None else wishes.points
        with of_file(table.path):
            # With --allow-overlap the version itself forecasts what it has learnt.
            twin = (lambda name: model) if overlapping else model.twin_without
            jobs = jobs_of(table, how.job == "batch-size")
            scores = score_epoch_times(jobs, twin, known, how.plan, how.batch, how.draws, wishes.seed)
        return {"known": known, "job": how.job, **scores}

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `Life`.

        An application that the version was trained on is forecast by a twin that is trained anew without it, unless
        that overlap is allowed. Raises TrainingError where nothing is left to score.
        """
        table, allowed = self.table_of(case.known), case.allow_overlap
        # Applications, not rows: another batch size of a known model is known, too.
        seen = [name for name in table.models if name in self.model_.models_]
        twins = f"trained on {', '.join(seen)}; each was forecast by a twin that was trained without it"
        figures = self._figures(table, case.wishes, allowed)
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
        rows = self._completed(table, read_settings(EPOCH_TIME, Question, settings_of(asked["pairs"])))
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
