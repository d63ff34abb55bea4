"""Simulations by rounds: the forecasts of work that such policies ask, and the mechanism that carries out rounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import cast

from jobcast.domain.bad_answers import DURATIONS, REGIMES, BadAnswers
from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.domain.forecasts import ForecastSource, RegimeForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundPolicy, RoundState, SharePolicy
from jobcast.domain.training import Progress, Regime
from jobcast.pipelines.experiments.forecast_specs import REGIME, REGIME_KINDS
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.seen_data import refuse_overlap
from jobcast.pipelines.experiments.sources import Ask, Chosen, Sources, registered
from jobcast.pipelines.report.console import Step
from jobcast.schedulers.policies import RoundMechanism
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.gavel import StepRates, gavel_rounds
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload

MOST_NODES = 100_000
"""Each start looks at all nodes; more than that is a slip of the pen."""


class Declared:
    """Regimes by a rule; jobs that report no epochs run for as long as the trace declares.

    Parameters
    ----------
    workload : what is replayed; of its truth only the declared durations are read
    rule : forecasts regimes
    """

    def __init__(self, workload: Workload, rule: RegimeForecasts) -> None:
        # Only what jobs declare is asked of the oracle: run times of jobs without epochs.
        self._oracle, self._rule = Oracle(workload), rule

    def advance(self, now_s: float) -> None:
        """Nothing depends on the instant."""

    def duration_s(self, job: Job) -> float:
        """The declared run time, seconds."""
        return self._oracle.duration_s(job)

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What the rule says."""
        return self._rule.regimes(job, progress)

    def left_quantile_s(self, job: Job, progress: Progress, level: float) -> float | None:
        """What the rule says, where it tells a distribution."""
        ask: Callable[..., float | None] | None = getattr(self._rule, "left_quantile_s", None)
        return None if ask is None else ask(job, progress, level)


def has_training(scenario: RigidScenario) -> bool:
    """Whether any job reports epochs."""
    return any(job.training is not None for job in scenario.workload.jobs)


def work_forecasts(scenario: RigidScenario, ask: Ask) -> Chosen:
    """Forecasts of work; where a registered model answers what cannot be, the restatement rule does.

    It also does where there is no such model and that is allowed.

    Raises ConfigError for a source that says nothing of regimes, RegistryError and OverlapError as `Sources.make`.
    """
    spec = ask.source
    if spec.kind == "oracle":
        return Chosen(Oracle(scenario.workload))
    # Nobody reports epochs: what is left follows from run times, which usual sources tell.
    if not has_training(scenario):
        return Sources(scenario, ask).make(spec, (DURATIONS,))
    if spec.kind in REGIME_KINDS:
        from jobcast.models.regimes import REGIME_RULES

        return Chosen(Declared(scenario.workload, REGIME_RULES[spec.kind]()))
    if spec.kind == "registry":
        return _registered(scenario, ask)
    raise ConfigError(
        f"--forecasts {spec.label}: says nothing of regimes; choose from oracle, registry, {', '.join(REGIME_KINDS)}"
    )


def _registered(scenario: RigidScenario, ask: Ask) -> Chosen:
    from jobcast.models.regimes import Restatement
    from jobcast.models.regimes.guarded import GuardedRegimes

    result = BadAnswers()
    asked = registered(REGIME, ask.source, ask.home, result, REGIMES, ask.degrade)
    if asked is None:
        return Chosen(Declared(scenario.workload, Restatement()), tally=result)
    # Training traces may count from their own start: the hash tells one from another.
    past, window = scenario.earlier.source, (scenario.from_s, scenario.until_s)
    overlap = refuse_overlap(asked.version, *window, ask.allow_overlap, past.sha256)
    source = Declared(scenario.workload, GuardedRegimes(asked.model, result))
    return Chosen(source, models=asked.named, overlap=overlap, tally=result)


def round_workload(scenario: RigidScenario, mechanism: RoundMechanism) -> Workload:
    """The scenario's workload for rounds: starts cost time, and all jobs may be stopped unless the trace says which.

    Jobs lie on the nodes of the cluster file, but under the published mechanism, where that makes no difference.
    """
    # To Gavel's published rounds nodes make no difference.
    servers = () if mechanism.mechanism == "gavel" else node_sizes(scenario)
    workload = replace(scenario.workload, restart_s=mechanism.restart_s, servers=servers)
    # Who says which jobs may be stopped means it.
    if "preemptible" in scenario.trace.jobs.columns:
        return workload
    return replace(workload, jobs=[replace(job, preemptible=True) for job in workload.jobs])


def node_sizes(scenario: RigidScenario) -> list[int]:
    """GPUs of each node in the cluster file's order, empty for a flat cluster. Raises PoolsError for too many nodes."""
    count = sum(group.count for group in scenario.place.groups)
    if count > MOST_NODES:
        raise PoolsError(f"cluster file: {count} nodes, rounds place jobs on {MOST_NODES} at most; pass --gpus instead")
    return [int(gpus) for gpus in scenario.place.node_gpus]


def replay_gavel(
    scenario: RigidScenario,
    workload: Workload,
    name: str,
    rule: object,
    round_s: float,
    step: Step | None,
    source: ForecastSource | None = None,
) -> RunLog:
    """Replay a workload under the bare rule of a policy; see `gavel_rounds`. `source` is moved before it chooses.

    Raises ConfigError when the scenario's jobs are not counted in steps.
    """
    rates = step_rates(scenario, workload)
    # Rules that give out shares do not ask while they choose.
    asked = rule if source is None or not hasattr(rule, "choose") else _Moving(cast(RoundPolicy, rule), source)
    log = gavel_rounds(
        workload,
        cast(RoundPolicy | SharePolicy, asked),
        rates,
        round_s=round_s,
        restart_s=workload.restart_s,
        progress=step,
    )
    return replace(log, policy=name)


class _Moving:
    """A rule of rounds whose forecasts are moved to the instant first."""

    def __init__(self, rule: RoundPolicy, source: ForecastSource) -> None:
        self._rule, self._source = rule, source

    def choose(self, state: RoundState) -> Sequence[Job]:
        self._source.advance(state.now_s)
        return self._rule.choose(state)


def step_rates(scenario: RigidScenario, workload: Workload) -> list[StepRates]:
    """How the jobs of a workload are counted in steps, (n_jobs,), in its order.

    Steps are the trace's, else epochs x steps an epoch.

    Raises ConfigError for jobs that no table of throughputs tells of.
    """
    training, trace = scenario.facts.training, scenario.trace
    if training is None:
        raise ConfigError("--set mechanism=gavel counts steps; add --set throughputs=FILE")
    of = training.trainings
    rows = zip(trace.jobs["job_id"], of.steps, trace.duration_s.tolist(), of.scale, strict=True)
    result = {job_id: (steps, nominal_s, scale) for job_id, steps, nominal_s, scale in rows}
    rates = []
    for job in workload.jobs:
        if job.training is None:
            raise ConfigError(f"--set mechanism=gavel: job {job.job_id} is no training job; drop it from the trace")
        steps, nominal_s, scale = result[job.job_id]
        samples = training.tables.samples[job.training.model]
        # A last, smaller batch is a step too.
        whole = job.training.epochs * ceil(samples / job.training.batch_size)
        known = training.tables.throughputs.rates[job.training.model, job.gpus]
        # A bound duration stretches all of a job's steps alike.
        steps_s = {size: rate / scale for size, rate in known.items()}
        # The trace's own count goes before what follows from epochs.
        rates.append(StepRates(int(steps or whole), samples, steps_s, nominal_s))
    return rates
