"""Worlds: an experiment under one law, in which every policy that can live there meets the same jobs, costs and meters.

Jobs come from the facts beside the trace, whoever schedules them. Policies that go by quotas meet those, for all others
the GPUs are one pool. Whoever names no nodes is placed by the law. `docs/worlds.md` has the rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.law import EPOCHS, GOODPUT, RUNTIME, SPEEDUP, TASKS
from jobcast.domain.policy import Policy
from jobcast.domain.settings import Count, Delay, Settings, read_settings
from jobcast.pipelines.experiments.energy.jobs import energy_jobs
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, asks_for_locality, rigid_jobs
from jobcast.pipelines.experiments.scenarios import Bare, Scenario, cut_scenario
from jobcast.pipelines.experiments.tasks.jobs import task_jobs
from jobcast.pipelines.experiments.training_jobs import read_tables
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import counted
from jobcast.schedulers import policies as kinds
from jobcast.schedulers.policies import CLUSTER, KINDS, POOL, POOLS, ROUNDS, PolicySpec, TaskMechanism
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.law import Law
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.laws.run_time import RunTime
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.log import RunLog
from jobcast.simulator.meters import EnergyMeter
from jobcast.simulator.workload import Workload

if TYPE_CHECKING:
    from jobcast.pipelines.experiments.experiment import Experiment

LAWS = (RUNTIME, SPEEDUP, EPOCHS, GOODPUT, TASKS)
"""Laws that `--law` names."""
LIVING: Mapping[str, tuple[str, ...]] = {
    RUNTIME: (POOLS, ROUNDS),
    SPEEDUP: (kinds.ELASTIC,),
    EPOCHS: (POOLS, ROUNDS, kinds.ELASTIC, kinds.GOODPUT, kinds.ENERGY),
    GOODPUT: (kinds.GOODPUT,),
    TASKS: (POOLS, ROUNDS, kinds.TASKS),
}
"""Kinds of policies that can live in a law, most of them completed."""
SHARED_OUT = (RUNTIME, EPOCHS, TASKS)
"""Laws in which jobs and costs are made here; in the others one kind lives, as it does without `--law`."""
CONCAVE = ("afs", "elastic_themis", "elastic_fair", "pollux")
"""Rules that go by what a job gains from each single GPU."""


class RunTimeCosts(Settings):
    """What a change costs jobs that run their time."""

    restart_s: Delay = 0.0


class EpochCosts(RunTimeCosts):
    """What a change costs jobs of epochs; without snapshots they save what they did whenever they are stopped."""

    snapshot_epochs: Count | None = None


COSTS: Mapping[str, type[Settings]] = {RUNTIME: RunTimeCosts, EPOCHS: EpochCosts, TASKS: TaskMechanism}
"""Settings that are the world's: what no policy chooses."""


def cost_names(law: str | None) -> tuple[str, ...]:
    """Settings that `--set` gives a law and no policy."""
    if law is None or law not in COSTS:
        return ()
    # Rounds are the policy's own: `round_s` is no cost of the world.
    return tuple(name for name in COSTS[law].model_fields if name != "round_s")


def law_apart(settings: Mapping[str, str], law: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Settings that are the world's, and all others."""
    names = cost_names(law)
    return (
        {name: value for name, value in settings.items() if name in names},
        {name: value for name, value in settings.items() if name not in names},
    )


@dataclass(frozen=True, eq=False)
class World:
    """The world of an experiment, whose law is one of `SHARED_OUT`.

    Raises ConfigError and TraceError for facts that are missing, or jobs that cannot run.
    """

    experiment: "Experiment"

    @property
    def law(self) -> str:
        """Name of its law."""
        return str(self.experiment.law)

    @cached_property
    def costs(self) -> dict[str, Any]:
        """Of changes, by the names of the settings."""
        given = {name: self.experiment.given[name] for name in cost_names(self.law) if name in self.experiment.given}
        read = dict(read_settings(f"law {self.law}", COSTS[self.law], given))
        return {name: read[name] for name in cost_names(self.law)}

    def scenario(self, kind: str, scope: str) -> Scenario[Any, Any]:
        """What policies of a kind and scope meet."""
        if kind in (POOLS, ROUNDS, kinds.GOODPUT):
            return self._by_quotas if scope == POOL else self._in_one_pool
        if kind == kinds.TASKS:
            return self._facts
        # Whoever goes by sizes or nodes meets the same gangs, and the facts beside them.
        return self._facts.of(self._laid(self._in_one_pool.workload), self._facts.facts)

    @cached_property
    def _by_quotas(self) -> RigidScenario:
        """Jobs in their pools; who is left out, is left out for all."""
        experiment = self.experiment
        # Quotas decide who is left out, also for policies that ignore them.
        cut = cut_scenario(experiment.trace, experiment.place(), **experiment.cut)
        return self._gangs(cut, experiment.drop_wide, experiment.only_pools)

    @cached_property
    def _in_one_pool(self) -> RigidScenario:
        return self._by_quotas if self.experiment.place().flat else self._gangs(self._cut)

    @property
    def _cut(self) -> Bare:
        """The window's jobs that are not left out, where all share all GPUs."""
        cut = cut_scenario(self.experiment.trace, self.experiment.place(kinds.ENERGY), **self.experiment.cut)
        # The same jobs for all, or they could not be compared.
        jobs = cut.trace.jobs.filter(pl.col("job_id").is_in(self._by_quotas.job_ids))
        return replace(cut, trace=replace(cut.trace, jobs=jobs), listed=jobs, dropped=self._by_quotas.dropped)

    def _gangs(self, cut: Bare, drop_wide: bool = False, only_pools: bool = False) -> RigidScenario:
        """Whole jobs that tell all that is known of them; where the trace says nothing they may be stopped."""
        tables = read_tables(self.experiment.files(ROUNDS))
        scenario = rigid_jobs(cut, drop_wide=drop_wide, only_pools=only_pools, tables=tables)
        window, result = cut.trace, "preemptible" in cut.trace.jobs.columns
        due_s = dict(zip(window.jobs["job_id"], window.due_s.tolist(), strict=True))
        least = dict(zip(window.jobs["job_id"], window.values("min_gpus"), strict=True))
        jobs = [
            replace(
                job,
                preemptible=job.preemptible or not result,
                due_s=due_s[job.job_id],
                min_gpus=int(least[job.job_id] or 0),
            )
            for job in scenario.workload.jobs
        ]
        return replace(scenario, workload=replace(scenario.workload, jobs=jobs))

    @cached_property
    def _facts(self) -> Scenario[Any, Any]:
        """What the law knows of the jobs, in the order of the workloads."""
        if self.law == TASKS:
            files = self.experiment.needed(kinds.TASKS)
            return task_jobs(self._cut, tasks=files["tasks"], curves=files["curves"])
        profiles, widest = self.experiment.needed(kinds.ENERGY)["profiles"], int(self._widths.max())
        scenario = energy_jobs(self.experiment.priced(self._cut), profiles=profiles, widest=widest)
        epochs, epoch_s, _ = scenario.facts.times
        cluster = scenario.facts.cluster
        # GPUs of each kind in all: a gang may lie on several nodes of one kind.
        there = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus)) * cluster.kind_gpus
        # Profiled at its width on some kind that has so many GPUs.
        able = np.isfinite(epoch_s[np.arange(len(epochs)), :, self._widths - 1]) & (self._widths[:, None] <= there)
        if not able.any(axis=1).all():
            row = int(np.argmin(able.any(axis=1)))
            raise TraceError(
                f"{scenario.trace.source.path}: job {scenario.job_ids[row]} asks for {self._widths[row]} GPUs, "
                "on which it can run on nodes of no one type; add nodes, or profile it there"
            )
        return scenario

    @property
    def _widths(self) -> Any:
        """(n_jobs,) GPUs that jobs ask for."""
        return np.array([job.gpus for job in self._in_one_pool.workload.jobs])

    def _law(self) -> tuple[Law, Sequence[Meter]]:
        """Law and meters of one run."""
        if self.law == RUNTIME:
            # Laws and meters keep state: each run gets its own.
            return RunTime(**self.costs), ()
        if self.law == TASKS:
            return Tasks(self._facts.workload, **self.costs), ()
        facts = self._facts.facts
        return Epochs(facts.times, facts.cluster, **self.costs), (EnergyMeter(facts.cluster),)

    def replay(
        self,
        workload: Workload,
        policy: Policy,
        source: ForecastSource | None = None,
        history: RunHistory | None = None,
        progress: Step | None = None,
        meters: Sequence[Meter] = (),
    ) -> RunLog:
        """A workload of its scenarios, run under a policy."""
        law, counting = self._law()
        return replay(self._laid(workload), policy, source, history, progress, law, (*counting, *meters))

    def _laid(self, workload: Workload) -> Workload:
        return replace(workload, servers=self._facts.workload.servers) if self.law == EPOCHS else workload


def check_law(law: str | None, settings: Mapping[str, str], max_think_s: float | None) -> None:
    """Refuse what no world has, before anything is read. Raises ConfigError."""
    if law is None:
        return
    if law not in LAWS:
        raise ConfigError(f"--law {law}: there is no such law; choose from {', '.join(LAWS)}")
    if max_think_s is not None:
        raise ConfigError(f"--law {law} --closed-loop: a closed loop is replayed as the trace says by itself; drop one")
    if asks_for_locality(settings):
        raise ConfigError(f"--law {law} --set locality=true: where jobs lie the law says; leave one out")


def lives(rule: PolicySpec, law: str) -> bool:
    """Whether policies of its kind can live in a law."""
    return rule.kind in LIVING[law]


def check_living(experiment: "Experiment", rule: PolicySpec) -> None:
    """Refuse a policy that cannot live in the experiment's world, even completed. Raises ConfigError that says why."""
    law, world, who = experiment.law, experiment.world, KINDS[rule.kind].title
    if experiment.recorded and rule.kind != POOLS:
        raise ConfigError(f"policy {rule.name}: policies {who} begin with an empty cluster; leave it out, or --begin")
    if law is not None and not lives(rule, law):
        raise ConfigError(f"policy {rule.name}: law {law} has no place for policies {who}; leave it out, or --law")
    # These take jobs as they are.
    if rule.kind in (POOLS, ROUNDS):
        return
    if rule.preempts and "preemptible" in experiment.trace.jobs.columns:
        stuck = experiment.scenario(rule.kind, CLUSTER).trace.jobs.filter(~pl.col("preemptible").fill_null(False))
        if len(stuck):
            raise ConfigError(
                f"policy {rule.name}: stops jobs, and {counted(len(stuck), 'job')} may not be stopped, "
                f"{stuck['job_id'][0]} first"
            )
    if world is None or rule.kind == kinds.TASKS:
        return
    jobs = world.scenario(rule.kind, CLUSTER).workload.jobs
    rigid = [job.job_id for job in jobs if not job.min_gpus and job.gpus > 1]
    if rigid and rule.name in CONCAVE:
        raise ConfigError(
            f"policy {rule.name}: goes by what each GPU brings, and {len(rigid)} jobs cannot shrink, {rigid[0]} first"
        )
    # These put each job on a single node, which no gang of the law has to do.
    if rule.kind == kinds.ENERGY:
        facts = world.scenario(rule.kind, CLUSTER).facts
        fits = np.arange(1, facts.times.epoch_s.shape[2] + 1) <= facts.cluster.kind_gpus[:, None]
        homeless = ~(np.isfinite(facts.times.epoch_s) & fits).any(axis=(1, 2))
        if homeless.any():
            raise ConfigError(
                f"policy {rule.name}: puts a job on one node, and {int(homeless.sum())} run on none, "
                f"{jobs[int(np.argmax(homeless))].job_id} first"
            )
