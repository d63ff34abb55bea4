"""`mechanism=gavel`: a scenario replayed by the published round mechanism instead of the engine."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import cast

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundPolicy, RoundState, SharePolicy
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.report.console import Step
from jobcast.simulator.gavel import StepRates, gavel_rounds
from jobcast.simulator.log import RunLog
from jobcast.simulator.workload import Workload


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
    told = {job_id: (steps, nominal_s, scale) for job_id, steps, nominal_s, scale in rows}
    rates = []
    for job in workload.jobs:
        if job.training is None:
            raise ConfigError(f"--set mechanism=gavel: job {job.job_id} is no training job; drop it from the trace")
        steps, nominal_s, scale = told[job.job_id]
        samples = training.tables.samples[job.training.model]
        whole = job.training.epochs * ceil(samples / job.training.batch_size)
        known = training.tables.throughputs.rates[job.training.model, job.gpus]
        steps_s = {size: rate / scale for size, rate in known.items()}
        rates.append(StepRates(int(steps or whole), samples, steps_s, nominal_s))
    return rates
