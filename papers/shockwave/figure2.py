"""Shockwave, Figure 2 (section 2.2): a job whose deadline is estimated too late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundState
from jobcast.domain.training import Progress, Regime
from jobcast.pipelines.experiments.forecast_specs import ORACLE, RESTATEMENT, ForecastSpec
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.rounds import Declared, round_workload, work_forecasts
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.report.look import WIDE, legend_beside, styles
from jobcast.schedulers.policies import RoundMechanism
from jobcast.schedulers.registry import make_rule
from jobcast.schedulers.rounds import RESTART_S, Rounds
from jobcast.schedulers.run_times import RunTimes
from jobcast.simulator.engine import replay
from papers.plotting import save
from papers.results import HOUR_S, Page, in_parallel, lines, number
from papers.shockwave.runs import GREEDY, NO_HOME
from papers.shockwave.workloads import TACC, published

JOBS, GPUS = 120, 32
CONTENTION = JOBS / GPUS
DOUBLINGS = (32, 64, 128, 256)
"""The paper's job doubles its batch size three times, from 32 to 256."""
AGNOSTIC = ForecastSpec("agnostic")
TOLD = {"shockwave": (ORACLE, RESTATEMENT, GREEDY, AGNOSTIC), "themis_filter": (RESTATEMENT, GREEDY, AGNOSTIC)}
RUNS = tuple((policy, spec) for policy, specs in TOLD.items() for spec in specs)


class Agnostic:
    """The batch size that a job began with stays, whatever it runs at."""

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """All that is left, at the first batch size; see `domain.forecasts.RegimeForecasts`."""
        if job.training is None:
            raise ValueError(f"job {job.job_id} is no training job")
        return (Regime(job.training.batch_size, job.training.epochs - progress.epochs),)


@dataclass(frozen=True, slots=True)
class Watched:
    """One job in one run: what its total run time was estimated to be at each round's begin, and when it ended."""

    policy: str
    forecasts: str
    at_s: Sequence[float]
    total_s: Sequence[float]
    jct_s: float
    exclusive_s: float

    @property
    def name(self) -> str:
        """Policy and forecasts."""
        return f"{self.policy}, {self.forecasts}"

    @property
    def ftf(self) -> float:
        """By the contention of the whole trace."""
        return self.jct_s / (self.exclusive_s * CONTENTION)


class Watch:
    """A policy of rounds that notes how long one job is thought to take.

    Parameters
    ----------
    rule : the policy
    run_times : what it is told
    seq : of the job
    """

    def __init__(self, rule: Any, run_times: RunTimes, seq: int) -> None:
        self.at_s: list[float] = []
        self.total_s: list[float] = []
        self._rule, self._run_times, self._seq = rule, run_times, seq

    def choose(self, state: RoundState) -> Sequence[Job]:
        """What the policy chooses."""
        for active in state.active:
            if active.job.seq == self._seq:
                self.at_s.append(state.now_s - active.job.submit_s)
                self.total_s.append(self._run_times.total_s(active))
        chosen: Sequence[Job] = self._rule.choose(state)
        return chosen


def doubling_job(scenario: RigidScenario) -> int:
    """The first job that runs through `DOUBLINGS`. Raises LookupError where none does."""
    for job, outcome in zip(scenario.workload.jobs, scenario.workload.outcomes, strict=True):
        if tuple(regime.batch_size for regime in outcome.regimes) == DOUBLINGS:
            return job.seq
    raise LookupError(f"no job runs through {DOUBLINGS}")


def watch(scenario: RigidScenario, seq: int, policy: str, spec: ForecastSpec) -> Watched:
    """Replay a scenario and watch one job."""
    workload = round_workload(scenario, RoundMechanism(restart_s=RESTART_S))
    # No source of the package stays at the first batch size for ever.
    if spec == AGNOSTIC:
        forecasts: Any = Declared(workload, Agnostic())
    else:
        forecasts = work_forecasts(scenario, Ask(policy=policy, spec=spec, home=NO_HOME)).source
    watched = Watch(make_rule(policy, forecasts), RunTimes(forecasts), seq)
    log = replay(workload, Rounds(watched, policy))
    return Watched(policy, spec.label, watched.at_s, watched.total_s, float(log.jct_s[seq]), float(log.duration_s[seq]))


def figure2(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenario = published(data, JOBS, GPUS, TACC)
    seq = doubling_job(scenario)
    watched = list(in_parallel(lambda run: watch(scenario, seq, *run), RUNS, lambda one: one.name))
    title = "Deadline of a job that doubles its batch size, as estimated while it runs"
    save(page, title, _paint, WIDE, watched)
    rows = [
        (one.name, f"{at_s:.6g}", f"{s:.6g}") for one in watched for at_s, s in zip(one.at_s, one.total_s, strict=True)
    ]
    page.csv(("run", "seconds_since_submission", "estimated_run_time_s"), rows)
    job, outcome = scenario.workload.jobs[seq], scenario.workload.outcomes[seq]
    epoch_s: Mapping[int, float] = job.training.epoch_s if job.training else {}
    page.write(
        job=job.job_id,
        course=", ".join(f"{regime.epochs:g} epochs at {regime.batch_size}" for regime in outcome.regimes),
        faster=epoch_s[DOUBLINGS[0]] / epoch_s[DOUBLINGS[-1]],
        true_h=watched[0].exclusive_s * CONTENTION / HOUR_S,
        lines=lines(map(_line, watched)),
    )


def _line(one: Watched) -> tuple[str, ...]:
    deadline_h, off_pct = one.total_s[0] * CONTENTION / HOUR_S, 100 * (one.total_s[0] / one.exclusive_s - 1)
    return (one.name, number(deadline_h), f"{off_pct:+.1f} %", number(one.jct_s / HOUR_S), number(one.ftf))


def _paint(figure: Figure, watched: Sequence[Watched]) -> None:
    axes = figure.subplots()
    for one, style in zip(watched, styles([one.name for one in watched]).values(), strict=True):
        at = [at_s / HOUR_S for at_s in one.at_s]
        axes.plot(at, [s * CONTENTION / HOUR_S for s in one.total_s], label=one.name, **style.line)
        axes.axvline(one.jct_s / HOUR_S, ymax=0.06, color=style.color)
    axes.set(xlabel="hours since submission (short marks: when the job ended)", ylabel="estimated deadline, h")
    legend_beside(axes)
