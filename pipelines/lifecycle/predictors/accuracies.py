"""Life of the predictors of learning curves."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import score_curves
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.learning_curves.evaluation import (
    by_app,
    number,
    refuse_trained,
    trained_on,
    unfinished,
    whole_epochs,
)
from jobcast.pipelines.lifecycle.learning_curves.training import (
    apps_of,
    counts,
    fitted,
    held_out,
    part_of,
    write_trained,
)
from jobcast.pipelines.lifecycle.predictors.life import (
    EVALUATE,
    PREDICT,
    TRAIN,
    Fitted,
    Told,
    VersionAndData,
    Wishes,
    told_by,
)
from jobcast.pipelines.lifecycle.predictors.tables import TableLife, of_file
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.model_tables import card_of_table, made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.learning_curves import (
    CurveTable,
    JobCurves,
    LearningCurve,
    curves_of_jobs,
    read_job_curves,
    read_learning_curves,
)
from jobcast.traces.table import Trace

MEDIAN = 0.5
FLAT = "{} curves were not scored: they do not vary, or end with what is seen"
NO_CALENDAR = "curves have no calendar"


class Accuracies(TableLife[AccuracyCurve]):
    """How far will a run's metric get? Domhan et al., IJCAI 2015."""

    table: ClassVar[str] = "curves"
    says: ClassVar[Mapping[str, str]] = told_by("lifecycle.learning_curves.tables")
    beside_trace: ClassVar[Collection[str]] = (TRAIN, EVALUATE)
    reads: ClassVar[Mapping[str, Collection[str]]] = {
        TRAIN: ("algorithm", "seed"),
        EVALUATE: ("prefix", "allow_overlap", "seed"),
        PREDICT: ("epochs", "target", "seed"),
    }
    why: ClassVar[Mapping[str, str]] = {
        "pools": "nothing is replayed",
        "from_s": NO_CALENDAR,
        "until_s": NO_CALENDAR,
        "at_s": f"{NO_CALENDAR}, a running job's file holds what was seen of it",
        "tune": "it has no settings to search",
        "retrain": "it does not walk through a trace",
        "pairs": "it reads no settings",
        "out": "use --json FILE",
        "log": "use --json FILE",
    }

    @classmethod
    def read(cls, path: Path) -> CurveTable:
        """See `TableLife`."""
        return read_learning_curves(path)

    @classmethod
    def read_of_jobs(cls, path: Path) -> JobCurves:
        """See `TableLife`."""
        return read_job_curves(path)

    @classmethod
    def of_jobs(cls, jobs: Trace, table: JobCurves) -> CurveTable:
        """See `TableLife`."""
        return curves_of_jobs(jobs, table)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """On all curves; validated on applications that twins did not see."""
        table, seed = self.table_of(known), self.settings.seed

        def fit(curves: Sequence[LearningCurve], step: Step | None) -> AccuracyCurve:
            return fitted(self.algorithm, curves, seed, step, self.model)  # type: ignore[arg-type]

        with of_file(table.path):
            model = fit(table.curves, part_of(progress, 0, 2))
        model.trained_from_s_, model.trained_until_s_ = table.from_s, table.until_s
        twins = held_out(table.curves, fit, part_of(progress, 1, 2))
        apps, told, name = ", ".join(apps_of(table.curves)), counts(table.curves), Path(table.path).stem
        card = card_of_table(
            table,
            model,
            seed,
            algorithm=self.algorithm,
            parameters={**told, "apps": apps, "twins": twins.left_out},
            metrics={"validation": {f"prefix_{share}": figures for share, figures in twins.figures.items()}},
            description=(
                f"{self.algorithm}, trained on {told['curves']} curves of {name} ({apps}); metrics are {twins.said}"
            ),
        )
        result = {
            "training": {**told, "apps": apps_of(table.curves)},
            "validation": {"left_out": twins.left_out, "prefixes": twins.figures},
            **made_from(table, (*table.notes, *twins.notes)),
        }
        return Fitted(model, card, result, beside=lambda folder: write_trained(folder, table.curves))

    def measured(self, table: CurveTable, wishes: Wishes) -> Told:
        """Errors and intervals where the first share of each curve is seen."""
        with of_file(table.path):
            return dict(score_curves(self.model_, table.curves, wishes.prefix))

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """See `Life`.

        Raises OverlapError where it was trained on curves of the file, TrainingError where no curve goes on after its
        prefix.
        """
        version, table, prefix = case.version, self.table_of(case.known), case.wishes.prefix
        assert case.registry is not None
        overlap = refuse_trained(case.registry, version, table, case.allow_overlap)
        figures = self.measured(table, case.wishes)
        left = len(table.curves) - int(figures["curves"])
        flat = [FLAT.format(left)] if left else []
        told = {
            "prefix": prefix,
            **figures,
            "by_app": by_app(self.model_, table.curves, prefix),
            "algorithm": version.algorithm,
            "trained": {"trace": version.trace_name, "sha256": version.trace_sha256},
            "scored": {**counts(table.curves), "apps": apps_of(table.curves)},
            "overlap_allowed": overlap,
            "simulated": False,
            **made_from(table, (*table.notes, *unfinished(table), *flat)),
        }
        return told, CurvePoints()

    def predict(self, known: Known) -> pl.DataFrame:
        """Final values of the runs of a table with 90 % intervals, where it says how long they are."""
        table = self.table_of(known)
        whole = [whole_epochs(curve, told) for curve, told in zip(table.curves, table.epochs, strict=True)]
        forecast = self.model_.forecast(table.curves, whole)
        keys = {"app": [curve.app for curve in table.curves], "seen": [curve.epochs for curve in table.curves]}
        final = {"final": forecast.final_mean, "final_low": forecast.final_low, "final_high": forecast.final_high}
        return pl.DataFrame({**keys, "epochs": whole, **final})

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Final values of running jobs, and where a target is given whether and when it is reached.

        Raises ConfigError where a run's epochs are not told, or are fewer than were seen.
        """
        table, target = self.table_of(case.known), asked["target"]
        pairs = zip(table.curves, table.epochs, strict=True)
        whole = [whole_epochs(curve, told or asked["epochs"]) for curve, told in pairs]
        forecast = self.model_.forecast(table.curves, whole)
        answers: dict[str, Sequence[Any]] = {
            "final": forecast.final_mean,
            "final_low": forecast.final_low,
            "final_high": forecast.final_high,
        }
        if target is not None:
            answers["reach_probability"] = forecast.reach_probability(target)
            answers["reach_epoch"] = forecast.reach_epoch(target, MEDIAN)
        assert case.registry is not None
        return {
            "target": target,
            "curves": [
                {
                    "app": curve.app,
                    "batch_size": curve.batch_size,
                    "seen": curve.epochs,
                    "epochs": whole[i],
                    "last": float(curve.metric[-1]),
                    **{name: number(values[i]) for name, values in answers.items()},
                }
                for i, curve in enumerate(table.curves)
            ],
            "overlap": trained_on(case.registry, case.version, table.curves) > 0,
            **made_from(table, table.notes),
        }
