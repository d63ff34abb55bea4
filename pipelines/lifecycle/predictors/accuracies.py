"""Life of the predictors of learning curves, and its tables for a terminal."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import score_curves
from jobcast.models.predictor import Known
from jobcast.pipelines.lifecycle.learning_curves import (
    apps_of,
    by_app,
    counts,
    fitted,
    held_out,
    number,
    refuse_trained,
    trained_on,
    unfinished,
    whole_epochs,
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
from jobcast.pipelines.lifecycle.predictors.tables import TableLife, of_file, told_of_table
from jobcast.pipelines.report.console import Step, part_of
from jobcast.pipelines.report.layout import aligned
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
    read = staticmethod(read_learning_curves)
    read_of_jobs = staticmethod(read_job_curves)
    says: ClassVar[Mapping[str, str]] = told_by("lifecycle.predictors.accuracies")
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
    def of_jobs(cls, jobs: Trace, table: JobCurves) -> CurveTable:
        """See `TableLife`."""
        return curves_of_jobs(jobs, table)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """On all curves; validated on applications that twins did not see."""
        table, seed = self.table_of(known), self.settings.seed

        def fit(curves: Sequence[LearningCurve], step: Step | None) -> AccuracyCurve:
            return fitted(self.algorithm, curves, seed, step, self.model)  # type: ignore[arg-type]

        with of_file(table.path):
            # Half of the progress is the model, half its twins.
            model = fit(table.curves, part_of(progress, 0, 2))
        # Curves alone have no calendar; only those of a trace say from when they are.
        model.trained_from_s_, model.trained_until_s_ = table.from_s, table.until_s
        twins = held_out(table.curves, fit, part_of(progress, 1, 2))
        apps, found, name = ", ".join(apps_of(table.curves)), counts(table.curves), Path(table.path).stem
        card = card_of_table(
            table,
            model,
            seed,
            algorithm=self.algorithm,
            parameters={**found, "apps": apps, "twins": twins.left_out},
            metrics={"validation": {f"prefix_{share}": figures for share, figures in twins.figures.items()}},
            description=(
                f"{self.algorithm}, trained on {found['curves']} curves of {name} ({apps}); metrics are {twins.said}"
            ),
        )
        result = {
            "training": {**found, "apps": apps_of(table.curves)},
            "validation": {"left_out": twins.left_out, "prefixes": twins.figures},
            **made_from(table, (*table.notes, *twins.notes)),
        }
        # Scoring must know which curves were learnt from: their fingerprints go with the model.
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
        overlap = refuse_trained(case.registry, version, table, case.allow_overlap)
        figures: Told = self.measured(table, case.wishes)
        # Curves that are flat or over have no error to tell; they are counted, not hidden.
        left = len(table.curves) - int(figures["curves"])
        flat = [FLAT.format(left)] if left else []
        scored = {**counts(table.curves), "apps": apps_of(table.curves)}
        result = told_of_table(version, table, (*unfinished(table), *flat), overlap, scored=scored)
        figures = {"prefix": prefix, **figures, "by_app": by_app(self.model_, table.curves, prefix)}
        return {**figures, **result}, CurvePoints()

    def predict(self, known: Known) -> pl.DataFrame:
        """Final values of the runs of a table with 90 % intervals, where it says how long they are."""
        table = self.table_of(known)
        # A frame is asked for without --epochs: the table must tell them.
        whole = [whole_epochs(curve, described) for curve, described in zip(table.curves, table.epochs, strict=True)]
        forecast = self.model_.forecast(table.curves, whole)
        keys = {"app": [curve.app for curve in table.curves], "seen": [curve.epochs for curve in table.curves]}
        return pl.DataFrame({**keys, "epochs": whole, **_finals(forecast)})

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Final values of running jobs, and where a target is given whether and when it is reached.

        Raises ConfigError where a run's epochs are not told, or are fewer than were seen.
        """
        table, target = self.table_of(case.known), asked["target"]
        pairs = zip(table.curves, table.epochs, strict=True)
        # What the table tells of a run goes before the option, which is for all others.
        whole = [whole_epochs(curve, described or asked["epochs"]) for curve, described in pairs]
        forecast = self.model_.forecast(table.curves, whole)
        answers: dict[str, Sequence[Any]] = _finals(forecast)
        if target is not None:
            # At any epoch up to the end, not at the end alone.
            answers["reach_probability"] = forecast.reach_probability(target)
            answers["reach_epoch"] = forecast.reach_epoch(target, MEDIAN)
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


def _finals(forecast: Any) -> dict[str, Any]:
    """Final values with their 90 % intervals."""
    return {"final": forecast.final_mean, "final_low": forecast.final_low, "final_high": forecast.final_high}


FIGURES = ("curves", "mae", "mae_last_value", "coverage_90", "width_90")


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says."""
    training, validation = result["training"], result["validation"]
    lines = [
        f"{result['predictor']} version {result['version']} ({', '.join(result['aliases'])}), {result['algorithm']}",
        f"trained on {training['curves']} curves of {', '.join(training['apps'])}, {training['epochs']} epochs",
    ]
    if validation["prefixes"]:
        lines.append(f"without the {validation['left_out']} that is scored, by share of the epochs seen:")
        lines += _rows("seen", validation["prefixes"])
    return "\n".join(lines)


def evaluation_table(result: Mapping[str, Any]) -> str:
    """What `evaluate` says."""
    head = f"{result['predictor']} {result['version']}, {result['prefix']:.0%} of the epochs seen"
    lines = [f"{head}; errors and widths as shares of a curve's range"]
    lines += _rows("app", {**result["by_app"], "all": result})
    # Families without a figure come last, for None does not compare.
    families = sorted(result["families"].items(), key=lambda item: (item[1] is None, item[1]))
    lines += ["", "mae of single families", *(f"{name:<24}{_figure(value):>10}" for name, value in families)]
    if result["overlap_allowed"]:
        lines.append("warning: the version was trained on some of these curves (--allow-overlap)")
    return "\n".join(lines)


def prediction_table(result: Mapping[str, Any]) -> str:
    """What `predict` says: a line a running job."""
    target = result["target"]
    lines = [f"{result['predictor']} {result['version']}"]
    head = ("app", "batch size", "seen", "of", "last", "final", "90 %")
    rows = [[*head, *(() if target is None else (f"reaches {target:g}", "at epoch"))]]
    for one in result["curves"]:
        cells = [one["app"], *(_figure(one[name]) for name in ("batch_size", "seen", "epochs", "last", "final"))]
        rows.append([*cells, f"{_figure(one['final_low'])} to {_figure(one['final_high'])}"])
        if target is not None:
            when = "-" if one["reach_epoch"] is None else f"{one['reach_epoch']:g}"
            rows[-1] += [f"{one['reach_probability']:.0%}", when]
    lines.append(aligned(rows, words=1))
    if result["overlap"]:
        lines.append("note: the version was trained on some of these curves")
    return "\n".join(lines)


def _rows(name: str, blocks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [[row, *(_figure(block[one]) for one in FIGURES)] for row, block in blocks.items()]
    return [aligned([[name, *FIGURES], *rows], words=1)]


def _figure(value: float | None) -> str:
    """Four digits; whole numbers as they are.

    >>> _figure(26), _figure(0.12345), _figure(None)
    ('26', '0.1235', '-')
    """
    if value is None:
        return "-"
    return f"{value}" if isinstance(value, int) else f"{value:.4g}"
