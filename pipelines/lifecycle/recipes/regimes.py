"""How RegimePrior is trained, and the training jobs that it learns from and is scored on."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.domain.jobs import Job
from jobcast.domain.settings import AtLeastZero, Count, Settings, Text, read_settings
from jobcast.domain.training import Regime
from jobcast.models.evaluation.regimes import compare_rules, jittered
from jobcast.models.regimes import REGIME_RULES, RegimePrior
from jobcast.models.regimes.learning import STEPS
from jobcast.pipelines.experiments.training_jobs import TABLE_SETTINGS, read_tables
from jobcast.pipelines.lifecycle.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.pipelines.report.console import Step
from jobcast.traces.facts import facts_beside
from jobcast.traces.table import Trace
from jobcast.traces.trainings import STATIC, TrainingTables, trainings_of

ALGORITHMS = (RegimePrior.algorithm,)
FEATURES = ("model", "batch_size", "adaptation", "epochs")
Jobs = tuple[tuple[Job, ...], tuple[tuple[Regime, ...], ...]]
"""Training jobs and the regimes that they run through."""


class RegimeSettings(Settings):
    """What `--set` may tell: the tables that make jobs training jobs, and how the prior is fitted.

    Attributes
    ----------
    jitter : how far lengths of regimes are off at random; see `evaluation.regimes.jittered`
    calibration : which forecasts intervals are calibrated on
    steps : of the fit
    """

    throughputs: Text | None = None
    regimes: Text | None = None
    datasets: Text | None = None
    gpu_type: Text | None = None
    planned: Text | None = None
    jitter: AtLeastZero = 0.0
    calibration: Literal["open", "all"] = "all"
    steps: Count = STEPS

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "RegimeSettings":
        """From `--set`. Raises ConfigError for what is not known or cannot be."""
        return read_settings(RegimePrior.name, cls, given)


def train_regimes(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[RegimePrior] = RegimePrior,
    tables: TrainingTables | None = None,
) -> Trained:
    """RegimePrior. After Shockwave, section 5.

    A twin learns from the jobs that were submitted before the last part of the training time, and is scored on those
    that were submitted in it, for the run's figures.

    Raises
    ------
    ConfigError
        A setting is missing or none of the predictor's.
    TrainingError
        No job could have changed its batch size.
    """
    how = RegimeSettings.of(settings.given)
    result: dict[str, Any] = {"steps": how.steps, "calibration": how.calibration}
    jobs, truth = training_jobs(data.trace, settings.given, settings.seed, tables)
    model = _fitted(partial(kind, settings.seed, **result), jobs, truth, data.from_s, data.until_s)
    parameters = {
        **result,
        "jobs": model.jobs_,
        "jitter": how.jitter,
        "keys": len(model.numbers_),
    }
    return Trained(model, algorithm, _validation(partial(kind, settings.seed, **result), jobs, truth), parameters)


def training_jobs(
    trace: Trace,
    given: Mapping[str, str],
    seed: int,
    tables: TrainingTables | None = None,
    needed: bool = True,
) -> Jobs:
    """The training jobs of a trace whose batch size may change, and their regimes, jittered where that is set.

    Tables that are not given, by name or as `tables`, are taken from beside an enriched trace. `needed`: whether there
    must be any such job.

    Raises ConfigError for settings that are missing or not known, TraceError as `traces.trainings.trainings_of`.
    """
    sigma = RegimeSettings.of(given).jitter
    if tables is None:
        # What `--set` names goes before what lies beside the trace.
        beside = {name: str(path) for name, path in facts_beside(trace.source.path, TABLE_SETTINGS).items()}
        tables = read_tables({**beside, **{name: value for name, value in given.items() if name in TABLE_SETTINGS}})
    if tables is None or tables.courses is None:
        raise ConfigError("regime: needs --set throughputs=FILE and --set regimes=FILE (the batch sizes of the jobs)")
    # One generator for all jobs in their order: the sample hangs on the seed and the trace alone.
    rng = np.random.default_rng(seed)
    found, submit_s = trainings_of(trace, tables), trace.submit_s
    jobs: list[Job] = []
    truth: list[tuple[Regime, ...]] = []
    for seq, (training, regimes) in enumerate(zip(found.trainings, found.regimes, strict=True)):
        # Those that never change would only teach that nobody does.
        if training is not None and training.mode != STATIC:
            job_id, gpus = str(trace.jobs["job_id"][seq]), int(trace.jobs["gpus"][seq])
            submitted_s = float(submit_s[seq])
            jobs.append(Job(seq, job_id, str(trace.jobs["pool"][seq]), submitted_s, gpus, training=training))
            truth.append(jittered(regimes, sigma, rng) if sigma else regimes)
    if not jobs and needed:
        raise TrainingError(f"{trace.name}: no job could change its batch size; give one with accordion or gns jobs")
    return tuple(jobs), tuple(truth)


def compared(model: RegimePrior, jobs: Sequence[Job], truth: Sequence[tuple[Regime, ...]]) -> dict[str, Any]:
    """The closed rules and the prior, on all jobs and on those that change."""
    rules: dict[str, Any] = {name: rule() for name, rule in REGIME_RULES.items()}
    return compare_rules({**rules, "prior": model}, jobs, truth)


def _fitted(
    make: Callable[[], RegimePrior],
    jobs: Sequence[Job],
    truth: Sequence[tuple[Regime, ...]],
    from_s: float,
    until_s: float,
) -> RegimePrior:
    finished = [(job.training, regimes) for job, regimes in zip(jobs, truth, strict=True) if job.training is not None]
    return make().fit(finished, from_s, until_s)


def _validation(
    make: Callable[[], RegimePrior], jobs: Sequence[Job], truth: Sequence[tuple[Regime, ...]]
) -> dict[str, Any]:
    """Figures of a twin on the jobs submitted last, a fifth of them; nothing where there are too few."""
    # By submission, as a version meets its jobs; the calendar of so few tells nothing.
    cut = len(jobs) - len(jobs) // 5
    if cut == len(jobs):
        return {}
    try:
        twin = _fitted(make, jobs[:cut], truth[:cut], 0.0, 0.0)
    except TrainingError:
        return {}
    return {"regimes": without_progress(compared(twin, jobs[cut:], truth[cut:]))}


def without_progress(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Figures without their curves over progress."""
    return {
        group: {
            "jobs": block["jobs"],
            "rules": {
                # Curves have hundreds of points; the registry keeps scalars.
                name: {figure: value for figure, value in one.items() if figure != "by_progress"}
                for name, one in block["rules"].items()
            },
        }
        for group, block in groups.items()
    }
