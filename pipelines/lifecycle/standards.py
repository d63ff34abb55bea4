"""What the life of each predictor's versions goes by: rows to compare and watch, judges, limits; one table of all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from jobcast.domain.forecasts import Question
from jobcast.models.predictors import answers_of
from jobcast.pipelines.experiments.forecast_specs import check_answers
from jobcast.pipelines.lifecycle import drift_rules, job_rows
from jobcast.pipelines.lifecycle import forecast_rows as rows
from jobcast.pipelines.lifecycle.comparison import SPEEDUP, Bound
from jobcast.pipelines.lifecycle.drift_rules import COVERAGE, LEVEL, Columns, Limit, above, plain, size
from jobcast.pipelines.lifecycle.drift_verdict import Ratio
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Sample, known_of_both
from jobcast.pipelines.lifecycle.replay_judges import Judge
from jobcast.pipelines.report.formatting import percent, share
from jobcast.schedulers.policies import KINDS
from jobcast.traces.goodput_tables import read_step_table
from jobcast.traces.learning_curves import read_job_curves, read_learning_curves
from jobcast.traces.profiles import read_profiles
from jobcast.traces.splits import gpu_jobs
from jobcast.traces.table import Trace

Metrics = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a predictor learns from: of a trace's jobs, or a file of its own that has no calendar.

    Attributes
    ----------
    name : of the facts beside an enriched trace, and of `--set NAME=FILE`
    one : what a row is of, in words
    read, read_alone : of a trace's jobs; a file
    rows : (model, file) -> forecasts of a file
    """

    name: str
    one: str
    read: Callable[[Path], Any]
    read_alone: Callable[[Path], Any]
    rows: Callable[[Any, Any], Blocks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standards:
    """What a predictor's versions are compared, promoted and watched by.

    Attributes
    ----------
    rows : forecasts beside what came; None: what its policy gained in a replay over its judge's baseline
    judges : policies that ask for it
    bounds : of what a candidate's other figures of rows may lose
    limits : of drift
    nominal : (model, figures of its training) -> what a version promises, by figure
    measured : figures that it promises by what was measured in its training, where that told how sure it is
    columns : figures that a comparison shows
    drawn : figures that a drift report shows, and titles of their plots
    inputs : what it looks at; None where only its figures are watched
    every_job : whether jobs without GPUs count, too
    by_pools : whether it learns from pools, so that those with few training jobs do not count
    table : where it learns from one
    """

    rows: Callable[[Any, Sample], Blocks] | None
    judges: tuple[Judge, ...]
    limits: tuple[Limit, ...]
    columns: tuple[str, ...]
    drawn: Mapping[str, str]
    nominal: Callable[[Any, Metrics], dict[str, float]] = field(default=lambda model, metrics: {})
    measured: tuple[str, ...] = ()
    inputs: Callable[[Any, Sample], Columns] | None = None
    every_job: bool = False
    by_pools: bool = False
    table: Table | None = None
    bounds: tuple[Bound, ...] = ()

    @property
    def settings(self) -> frozenset[str]:
        """Tables and prices that `--set` may name: those that its judges meet their jobs by."""
        # A setting counts wherever a replay would read it.
        kinds = [KINDS[judge.rule.kind] for judge in self.judges]
        return frozenset(name for kind in kinds for part in (kind.files, kind.site) for name in part.model_fields)

    def jobs(self, trace: Trace) -> Trace:
        """Those of a trace that count. Raises TrainingError where there is none."""
        return trace if self.every_job else gpu_jobs(trace)

    def promises(self, metrics: Metrics) -> dict[str, Ratio]:
        """Figures of `measured`; versions of before that was told have none."""
        told = {one: f"validation/promise/{one}" for one in self.measured}
        parts = [part.name for part in fields(Ratio)]
        return {
            one: Ratio(*(metrics[f"{place}/{part}"] for part in parts))
            for one, place in told.items()
            if f"{place}/error" in metrics
        }

    def promised(self, model: Any, metrics: Metrics) -> dict[str, float]:
        """What is nominal of a version, by figure."""
        return {**self.nominal(model, metrics), **{name: one.value for name, one in self.promises(metrics).items()}}

    def forecasts(self, model: Any, sample: Sample) -> Blocks:
        """Rows whose truth was known in time, or decided. Raises RegistryError for a model that cannot be asked."""
        if self.rows is None:
            # Never a user's mistake: callers look at `rows` first.
            raise ValueError("what a learned policy gained is replayed, not forecast")
        return {name: block.known_by(sample.known_s) for name, block in self.rows(model, sample).items()}

    def forecasts_of_both(self, models: tuple[Any, Any], sample: Sample) -> tuple[Blocks, Blocks]:
        """The same rows of two models, see `known_of_both`; to be compared. Raises as `forecasts`."""
        if self.rows is None:
            raise ValueError("what a learned policy gained is replayed, not forecast")
        ours, theirs = (self.rows(model, sample) for model in models)
        return known_of_both(ours, theirs, sample.known_s)


def standards_of(command: str, name: str) -> Standards:
    """Of a predictor. Raises ConfigError for a name that is none, which the line lists."""
    check_answers(command, name, LIVES)
    return judged(name)


def judged(name: str) -> Standards:
    """What a predictor is judged by: what all that answer its question are."""
    return LIVES[answers_of(name)]


def _validated(**names: str) -> Callable[[Any, Metrics], dict[str, float]]:
    """Figures of a version's own training, by the name that they have there."""
    # Versions of before a figure was told promise nothing of it.
    return lambda model, metrics: {one: metrics[place] for one, place in names.items() if place in metrics}


def _held(**names: str) -> Callable[[Any, Metrics], dict[str, float]]:
    """The same beside what intervals promise."""
    return lambda model, metrics: {"coverage_90": LEVEL, **_validated(**names)(model, metrics)}


def _epoch_nominal(model: Any, metrics: Metrics) -> dict[str, float]:
    return {"coverage_90": LEVEL, "mape": model.validation_[model.plan_]} if model.validation_ else {}


def _times_nominal(model: Any, metrics: Metrics) -> dict[str, float]:
    promised = _held(mae_log10="validation/mae_log10")(model, metrics)
    # Trained anew, what never saved anything would save as little: that is nothing to be told every week.
    skill = metrics.get("validation/skill", 1.0) - SKILL_DOUBT
    return promised if skill >= 0.0 else {**promised, "skill": skill}


VALIDATED = 1.0
"""Granted of a limit where a version promises by a few days of validation, or what is forecast wanders by itself."""


def worse(figure: str, watch: float, drifted: float, sign: float = 1.0) -> Limit:
    """Limits of a figure that is held against the version's own validation; of which less is worse with sign -1."""
    return Limit(figure, above(figure, sign), watch, drifted, VALIDATED)


SKILL = Limit("skill", lambda figures, nominal: above("skill", -1.0)(figures, {"skill": 0.0, **nominal}), 0.0, 0.10)
"""Worse than the rule that learns nothing, or than a version's validation where that was hardly better; by a tenth."""
SKILL_DOUBT = 0.05
"""By how much skill may be below that of a few days of validation."""
GAIN = Limit("speedup", above("speedup", -1.0), 0.02, 0.05)
"""Slower than the policy whose place it takes."""
UNFAIR = Bound(
    "unfair_pct_105", "jobs treated unfairly (%)", "treats {} of the jobs unfairly against {}", points=0.5, show=percent
)
MAKESPAN = Bound("makespan_s", "makespan (s)", "makespan {} s against {}", share=0.05)
JCT = Bound("mean_jct_s", "mean completion time (s)", "mean completion time {} s against {}", share=0.05)
HELD = Bound(
    "coverage_90",
    "run times within the 90 % interval (share)",
    "90 % intervals hold {} of the run times against {}",
    points=0.03,
    more_is_worse=False,
    show=share,
)
COST = Bound("total_eur", "energy and tardiness (EUR)", "costs {} EUR against {}", share=0.05)
DEADLINES = Bound(
    "deadline_ratio",
    "deadlines kept (share)",
    "keeps {} of the deadlines against {}",
    points=0.005,
    more_is_worse=False,
    show=share,
)
ACCURACIES = Bound(
    "accuracy_ratio",
    "accuracies reached (share)",
    "reaches {} of the accuracies asked for against {}",
    points=0.005,
    more_is_worse=False,
    show=share,
)
# Learned policies are measured against the heuristic whose picks they began with, not against fcfs.
MLF_H = "mlf_h"
CURVES = Table("curves", "curve", read_job_curves, read_learning_curves, job_rows.curve_table_rows)
STEPS = Table("step_times", "application", read_step_table, read_step_table, job_rows.step_table_rows)
PROFILES = Table("profiles", "application", read_profiles, read_profiles, job_rows.epoch_table_rows)
LEARNED: Mapping[str, Any] = {
    "rows": None,
    "limits": (GAIN,),
    # As fast as the heuristic.
    "nominal": lambda model, metrics: {"speedup": 1.0},
    "columns": ("speedup", "slowed", "mean_jct_s", "baseline_jct_s"),
    "drawn": {
        "speedup": "Speedup over the heuristic by week",
        "slowed": "Jobs that end later than under the heuristic by week",
    },
}
WAIT_ERROR = worse("mae_log10", 0.2, 0.4)
"""How far off a wait is hangs on how long the queue is, which no week of validation tells of the next ones."""
TIMES: Mapping[str, Any] = {
    "limits": (COVERAGE, SKILL, worse("mae_log10", 0.1, 0.2)),
    "nominal": _times_nominal,
    "columns": ("mae_log10", "rule_mae_log10", "skill", "coverage_90"),
    "drawn": {
        "mae_log10": "Distance of the median from the truth by week (powers of ten)",
        "skill": "Error saved against the median of all jobs by week",
        "coverage_90": "Jobs within the 90 % interval by week",
    },
    "inputs": drift_rules.job_inputs("gpus"),
}
"""Of forecasts that span powers of ten."""
LIVES: Mapping[Question, Standards] = {
    Question.ARRIVALS: Standards(
        rows=rows.arrival_rows,
        judges=(Judge("sia"),),
        limits=(
            Limit("bias", size("bias"), 0.05, 0.10, VALIDATED),
            Limit("surprise", plain("surprise"), 0.05, 0.10),
            Limit("miss_rate", above("miss_rate"), 0.025, 0.05),
        ),
        nominal=lambda model, metrics: {"miss_rate": model.miss_share},
        columns=("pr_auc", "f1", "ece", "miss_rate"),
        drawn={
            "base_rate": "Share of windows with arrivals by week",
            "bias": "Mean forecast less share with arrivals by week",
            "ece": "Calibration error by week",
            "miss_rate": "Windows with arrivals that the gate missed by week",
        },
        inputs=drift_rules.arrival_inputs,
        by_pools=True,
    ),
    Question.LOADS: Standards(
        rows=rows.load_rows,
        judges=(Judge("sia"),),
        limits=(Limit("coverage", above("coverage", -1.0), 0.02, 0.05),),
        nominal=lambda model, metrics: {"coverage": model.coverage},
        columns=("coverage", "coverage_nonzero", "over", "pinball"),
        drawn={
            "coverage": "Windows whose load the estimate reached by week",
            "coverage_nonzero": "The same where load came, by week",
            "mean_load": "Mean load of a window by week",
            "over": "Estimates over loads by week",
        },
        inputs=drift_rules.load_inputs,
        by_pools=True,
    ),
    Question.DURATIONS: Standards(
        rows=rows.duration_rows,
        judges=(Judge("sia"), Judge("ssf")),
        limits=(
            worse("accuracy", 0.05, 0.10, -1.0),
            worse("log_loss", 0.10, 0.25),
            Limit("bias", size("bias"), 0.3, 0.6, granted=0.25),
            Limit("surprise", plain("surprise"), 0.10, 0.25),
        ),
        nominal=_validated(accuracy="validation/accuracy", log_loss="validation/log_loss"),
        measured=("accuracy", "log_loss"),
        columns=("accuracy", "macro_f1", "log_loss", "ece"),
        drawn={
            "accuracy": "Jobs whose likeliest bin was right by week",
            "log_loss": "Log loss by week",
            "ece": "Calibration error by week",
            "chosen_under": "Jobs told a bin that is too short by week",
        },
        inputs=drift_rules.duration_inputs,
        by_pools=True,
    ),
    Question.REGIMES: Standards(
        rows=job_rows.regime_rows,
        judges=(Judge("shockwave", (UNFAIR, MAKESPAN, SPEEDUP)),),
        limits=(COVERAGE, SKILL, worse("regime_error", 3.0, 6.0)),
        nominal=_held(regime_error="validation/regimes/all/rules/prior/regime_error"),
        columns=("crps", "skill", "coverage_90", "regime_error", "time_error"),
        drawn={
            "crps": "Score of the time left by week (CRPS)",
            "skill": "Score saved against the restatement rule by week",
            "coverage_90": "90 % intervals of the time left that held it by week",
            "regime_error": "Error of batch sizes to come by week",
        },
        inputs=drift_rules.job_inputs("epochs", "batch_size", "gpus"),
    ),
    Question.ACCURACIES: Standards(
        rows=job_rows.curve_rows,
        judges=(Judge("mlfs", (DEADLINES, ACCURACIES, SPEEDUP)),),
        limits=(COVERAGE, SKILL, worse("mae", 0.05, 0.10)),
        nominal=_held(mae="validation/prefix_0.2/mae"),
        columns=("mae", "mae_last_value", "skill", "coverage_90"),
        drawn={
            "mae": "Error of the last value by week",
            "skill": "Error saved against the last value seen by week",
            "coverage_90": "Later epochs within the 90 % interval by week",
        },
        inputs=drift_rules.job_inputs("epochs", "batch_size"),
        table=CURVES,
    ),
    Question.EPOCH_TIMES: Standards(
        rows=job_rows.epoch_rows,
        judges=(Judge("andreas", (COST,)),),
        limits=(COVERAGE, SKILL, worse("mape", 0.03, 0.06)),
        nominal=_epoch_nominal,
        columns=("mape", "rule_mape", "skill", "coverage_90"),
        drawn={
            "mape": "Error of seconds an epoch by week",
            "skill": "Error saved against a rule without a model by week",
            "coverage_90": "Configurations within the 90 % interval by week",
        },
        inputs=drift_rules.job_inputs("epochs", "batch_size", "gpus"),
        table=PROFILES,
    ),
    Question.COMPLETIONS: Standards(
        rows=job_rows.run_time_rows, judges=(), bounds=(HELD,), **{**TIMES, "columns": ("pinball", *TIMES["columns"])}
    ),
    Question.SIZES: Standards(rows=job_rows.size_rows, judges=(Judge("srsf"),), **TIMES),
    Question.WAITS: Standards(
        rows=job_rows.wait_rows,
        judges=(),
        bounds=(HELD,),
        every_job=True,
        **{**TIMES, "limits": (COVERAGE, SKILL, WAIT_ERROR)},
    ),
    Question.GOODPUT: Standards(
        rows=job_rows.step_rows,
        judges=(Judge("pollux", (JCT,)),),
        limits=(COVERAGE, SKILL, worse("mape", 0.03, 0.06)),
        nominal=_held(mape="validation/mape"),
        columns=("mape", "rule_mape", "skill", "coverage_90"),
        drawn={
            "mape": "Error of step times by week",
            "skill": "Error saved against the time of one GPU by week",
            "coverage_90": "Step times within the 90 % interval by week",
        },
        inputs=drift_rules.job_inputs("gpus", "batch_size"),
        table=STEPS,
    ),
    Question.TASK_ORDER: Standards(judges=(Judge("mlf_rl", (DEADLINES, ACCURACIES, SPEEDUP), MLF_H),), **LEARNED),
    Question.DEVICE_ORDER: Standards(judges=(Judge("device_rl", (SPEEDUP,), MLF_H),), **LEARNED),
}
"""By the question that predictors answer."""
