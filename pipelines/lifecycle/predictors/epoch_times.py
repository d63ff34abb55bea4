"""Life of the predictors of seconds an epoch."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from jobcast.domain.pairs import settings_of
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.jobs import PLANS, jobs_of
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
from jobcast.pipelines.lifecycle.predictors.tables import TableLife, of_file
from jobcast.pipelines.lifecycle.profiles.epoch_time import GPUS, JOBS, Question, ScoreSettings
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import card_of_table, made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.profiles import KEY, PROFILE_COLUMNS, ProfileTable, read_profiles, write_profiles
from jobcast.traces.table import Trace

NO_CALENDAR = "profiles have no calendar, a trace of jobs with profiles has one"


class EpochTimes(TableLife[EpochTime]):
    """How long does an epoch take on other GPUs?"""

    table: ClassVar[str] = "profiles"
    says: ClassVar[Mapping[str, str]] = told_by("lifecycle.profiles.epoch_time")
    beside_trace: ClassVar[Collection[str]] = (TRAIN,)
    reads: ClassVar[Mapping[str, Collection[str]]] = {
        TRAIN: ("seed",),
        EVALUATE: ("points", "pairs", "seed", "allow_overlap"),
        PREDICT: ("pairs", "out", "seed"),
    }
    why: ClassVar[Mapping[str, str]] = {"from_s": NO_CALENDAR, "until_s": NO_CALENDAR}

    @classmethod
    def read(cls, path: Path) -> ProfileTable:
        """See `TableLife`."""
        return read_profiles(path)

    @classmethod
    def read_of_jobs(cls, path: Path) -> ProfileTable:
        """See `TableLife`."""
        return read_profiles(path)

    @classmethod
    def of_jobs(cls, jobs: Trace, table: ProfileTable) -> ProfileTable:
        """See `TableLife`."""
        frame = table.of_jobs(jobs.values("model"), jobs.values("batch_size"))
        return replace(table, path=jobs.source.path, sha256=jobs.source.sha256, frame=frame, notes=jobs.notes)

    @classmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """See `TableLife`. Raises ConfigError for settings that are not known, before anything is read."""
        if command == EVALUATE:
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
        told = {
            "training": {"rows": len(table), "models": list(table.models), "gpu_types": list(table.gpu_types)},
            "plan": model.plan_,
            "points": [f"{size} batch size on {GPUS[gpus]}" for size, gpus in PLANS[model.plan_]],
            "batch_sizes": dict(model.counts_),
            "validation": {"left_out": "application", "mape_by_plan": dict(model.validation_)},
            **made_from(table, table.notes),
        }
        return Fitted(model, card, told)

    def measured(self, table: ProfileTable, wishes: Wishes) -> Told:
        """Errors where a few points of each job are known; applications that it learnt from are forecast by twins."""
        return self._figures(table, ScoreSettings.read(wishes.given, wishes.points, wishes.seed), False)

    def _figures(self, table: ProfileTable, how: ScoreSettings, overlapping: bool) -> Told:
        model, plans = self.model_, (how.points, how.plan, how.batch, how.draws, how.seed)
        with of_file(table.path):
            twin = (lambda name: model) if overlapping else model.twin_without
            return dict(score_epoch_times(jobs_of(table, how.job != JOBS[0]), twin, *plans))

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `Life`.

        An application that the version was trained on is forecast by a twin that is trained anew without it, unless
        that overlap is allowed. Raises TrainingError where nothing is left to score.
        """
        version, table, allowed = case.version, self.table_of(case.known), case.allow_overlap
        how = ScoreSettings.read(case.wishes.given, case.wishes.points, case.wishes.seed)
        seen = [name for name in table.models if name in self.model_.models_]
        twins = f"trained on {', '.join(seen)}; each was forecast by a twin that was trained without it"
        told = {
            "known": how.points,
            "job": how.job,
            **self._figures(table, how, allowed),
            "algorithm": version.algorithm,
            "trained": {"trace": version.trace_name, "sha256": version.trace_sha256},
            "left_out": [] if allowed else seen,
            "overlap_allowed": bool(seen and allowed),
            "simulated": False,
            **made_from(table, (*table.notes, *([twins] if seen and not allowed else []))),
        }
        return told, CurvePoints()

    def predict(self, known: Known) -> pl.DataFrame:
        """Seconds an epoch with 90 % intervals, of all that the table's models, sizes and types could be."""
        return self._completed(self.table_of(known), Question())

    def _completed(self, table: ProfileTable, question: Question) -> pl.DataFrame:
        asked = question.keys(table)
        forecast = self.model_.forecast(table, asked, question.batch)
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
            made = rows.filter(pl.col("profiled_s").is_null()).select(PROFILE_COLUMNS)
            write_profiles(pl.concat([table.frame, made]), out)
        return {
            "profiles": rows.to_dicts(),
            "overlap": any(name in self.model_.models_ for name in rows["model"].unique().to_list()),
            "out": None if out is None else str(out),
            **made_from(table, table.notes),
        }
