"""An experiment: the jobs of a window, the cluster that they run on and what is known of them, whatever the policy."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.domain.settings import read_settings
from jobcast.pipelines.experiments.clusters import TASK_GPUS, cluster_of, named_cluster
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs
from jobcast.pipelines.experiments.energy.jobs import EnergyScene, energy_jobs
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, asks_for_locality, rigid_jobs
from jobcast.pipelines.experiments.scaling_jobs import read_scaling
from jobcast.pipelines.experiments.scenarios import ASSUMED, Bare, Scenario, check_recorded, cut_scenario, cut_window
from jobcast.pipelines.experiments.tasks.jobs import TaskScene, task_jobs
from jobcast.pipelines.experiments.training_jobs import read_tables
from jobcast.pipelines.experiments.worlds import SHARED_OUT, World, check_law
from jobcast.schedulers import policies as kinds
from jobcast.schedulers.policies import KINDS, POOL, POOLS, ROUNDS, PolicySpec
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences
from jobcast.traces.table import Trace

TABLES: Mapping[str, tuple[str, ...]] = {
    ROUNDS: ("throughputs", "regimes", "datasets"),
    kinds.GOODPUT: ("step_times", "training_curves"),
    kinds.ELASTIC: ("speedups",),
    kinds.TASKS: ("tasks", "curves"),
    kinds.ENERGY: ("profiles",),
}
"""Tables beside an enriched trace that jobs come from, by the kind of policy that schedules them."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    ROUNDS: ("weight",),
    kinds.TASKS: ("deadline", "weight"),
    kinds.ENERGY: ("deadline", "weight"),
}
"""Columns that an enrichment may draw and that a kind of policy, or its figures, go by; see `docs/traces.md`."""
REMEDIES: Mapping[str, str] = {
    kinds.TASKS: "schedulers of tasks need it; `jobcast trace generate mlfs` writes one with --{name}-out, `jobcast "
    "trace enrich --facts tasks` supplies it for any trace",
    kinds.ENERGY: "schedulers of energy need it; `jobcast trace generate andreas` writes one with --{name}-out, "
    "`jobcast trace enrich --facts epochs` supplies it for any trace",
}
BY_QUOTAS = (POOLS, ROUNDS)
"""Kinds of policies that go by pools' quotas; all others share all GPUs."""


BY_OPTIONS = ("pools", "cluster", "gpus")
"""Options of which one at most names the cluster."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """What is replayed, before anybody says by which policy.

    Attributes
    ----------
    trace : whole; jobs before the window are history
    cluster : what was named; None for what keeps the trace's jobs busy
    from_s, until_s, limit : the window, seconds from the epoch, and how many of its jobs
    given : tables and other facts that `--set` names; they go before those beside an enriched trace
    drop_wide, only_pools : whether jobs that are wider than their pool or their limits, or of pools without capacity,
        are left out
    max_think_s : after how much thought jobs follow others, None for an open loop
    recorded : whether runs begin with the jobs that the trace has running and waiting at `from_s`
    law : how jobs progress, whoever schedules them; None for what the trace says by itself, to each kind of policy
    named : the options of a command that named the cluster, and what they were given
    """

    trace: Trace
    cluster: Cluster | None = None
    from_s: float | None = None
    until_s: float | None = None
    limit: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    drop_wide: bool = False
    only_pools: bool = False
    max_think_s: float | None = None
    recorded: bool = False
    law: str | None = None
    named: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.from_s is not None and self.until_s is not None and self.from_s >= self.until_s:
            raise ConfigError("--from must lie before --until")
        check_law(self.law, self.given, self.max_think_s)
        if self.recorded:
            check_recorded(self.from_s, self.law, self.max_think_s, asks_for_locality(self.given))

    @classmethod
    def asked(cls, trace: Trace, options: Mapping[str, Any]) -> Self:
        """As options of a command name it: the cluster by `BY_OPTIONS`, all else by the names of its fields."""
        named = {name: options[name] for name in BY_OPTIONS}
        place = named_cluster(trace, **named, from_s=options["from_s"])
        return cls(trace=trace, cluster=place, named=named, **{name: options[name] for name in _asked_fields(options)})

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # scenarios are made anew elsewhere

    @cached_property
    def _assumed(self) -> Mapping[str, Any] | None:
        return assumptions_beside(self.trace.source.path)

    def assumptions(self, kind: str, needs: Collection[str] = ()) -> tuple[str, ...]:
        """What the jobs rest on that a policy of a kind, with its needs, meets; none where nothing was enriched."""
        limits = ("time_limit_s",) if kinds.TIME_LIMITS in needs else ()
        met = {*self._beside(kind), *COLUMNS.get(kind, ()), *limits}
        of_recorded = tuple(note for note in self.window.notes if note.startswith(ASSUMED)) if self.recorded else ()
        result = tuple(sentences(self._assumed, met)) if self._assumed is not None else ()
        return (*result, *of_recorded)

    @cached_property
    def _found(self) -> dict[str, dict[str, str]]:
        return {}

    def _beside(self, kind: str) -> dict[str, str]:
        if kind not in self._found:  # whose hashes are checked once
            # What the user names goes before what lies beside the trace.
            wanted = [name for name in TABLES.get(kind, ()) if name not in self.given]
            found = facts_beside(self.trace.source.path, wanted) if wanted else {}
            self._found[kind] = {name: str(path) for name, path in found.items()}
        return self._found[kind]

    def files(self, kind: str) -> dict[str, str]:
        """Facts that a kind of policy meets its jobs by, as `--set` would name them."""
        # Settings of other kinds are no facts of this one.
        known = {**KINDS[kind].files.model_fields, **KINDS[kind].site.model_fields}
        return {**self._beside(kind), **{name: value for name, value in self.given.items() if name in known}}

    def place(self, kind: str = POOLS) -> Cluster:
        """The cluster as policies of a kind meet it; where none was named, that of MLFS for tasks."""
        place = self.cluster
        if place is None:
            place = cluster_of(self.trace, from_s=self.from_s, otherwise=TASK_GPUS if kind == kinds.TASKS else None)
        return place if kind in BY_QUOTAS else place.shared

    @cached_property
    def window(self) -> Trace:
        """The jobs, before any are left out. Raises TraceError where there is none."""
        return cut_window(self.trace, **self.cut)

    @property
    def stretch_s(self) -> tuple[float, float]:
        """Beginning of the window and last submission, seconds from the epoch."""
        submit_s = self.window.submit_s
        return float(submit_s[0]) if self.from_s is None else self.from_s, float(submit_s[-1])

    @cached_property
    def _scenes(self) -> dict[tuple[object, ...], Scenario[Any, Any]]:
        return {}

    @cached_property
    def world(self) -> World | None:
        """Where all policies meet the same jobs; None where each kind meets its own, as without a law."""
        return World(self) if self.law in SHARED_OUT else None

    def law_of(self, rule: PolicySpec) -> str:
        """How jobs progress under a policy."""
        return self.law or rule.law

    def scenario(self, kind: str, scope: str = POOL) -> Scenario[Any, Any]:
        """Jobs and cluster as policies of a kind meet them, made once; in a world, by their scope.

        Raises TraceError and ConfigError for what is missing or does not fit.
        """
        if self.world is not None:
            return self.world.scenario(kind, scope)
        files, maker = self.files(kind), _MAKERS[kind]
        # Kinds that meet the same jobs on the same cluster share one scenario: it is dear to build.
        key = (maker, kind in BY_QUOTAS, *sorted(files.items()))
        if key not in self._scenes:
            self._scenes[key] = maker(cut_scenario(self.trace, self.place(kind), **self.cut), files, self)
        return self._scenes[key]

    @property
    def cut(self) -> dict[str, Any]:
        """From, until and limit, and whether jobs are there at the beginning, by these names."""
        return {name: getattr(self, name) for name in ("from_s", "until_s", "limit", "recorded")}

    def needed(self, kind: str) -> dict[str, Path]:
        """Files that a kind of policy cannot do without. Raises ConfigError for one that is not there."""
        files = self.files(kind)
        for name in TABLES[kind]:
            if name not in files:
                raise ConfigError(f"--set {name}=FILE is missing: {REMEDIES[kind].format(name=name)}")
        return {name: Path(files[name]) for name in TABLES[kind]}

    def priced(self, cut: Bare) -> Bare:
        """A window whose cluster has the prices that were set."""
        site, files = KINDS[kinds.ENERGY].site, self.files(kinds.ENERGY)
        prices = read_settings("the site", site, {name: files[name] for name in site.model_fields if name in files})
        return replace(cut, place=cut.place.priced(**dict(prices)))


def _asked_fields(options: Mapping[str, Any]) -> list[str]:
    """Fields that options tell; the trace is never one of them, but read of a file."""
    return [one.name for one in fields(Experiment) if one.name in options and one.name not in ("trace", *BY_OPTIONS)]


def beside_experiment(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a command was given that says how jobs are replayed, not which: all that is not for `Experiment.asked`."""
    return {name: value for name, value in options.items() if name not in (*BY_OPTIONS, *_asked_fields(options))}


def _whole(cut: Bare, files: Mapping[str, str], experiment: Experiment) -> RigidScenario:
    return rigid_jobs(
        cut,
        drop_wide=experiment.drop_wide,
        only_pools=experiment.only_pools,
        tables=read_tables(files),
        scaling=read_scaling(files),
        local=asks_for_locality(files),
        max_think_s=experiment.max_think_s,
    )


def _elastic(cut: Bare, files: Mapping[str, str], experiment: Experiment) -> ElasticScene:
    return elastic_jobs(cut, **read_settings("elastic jobs", KINDS[kinds.ELASTIC].files, files).given())


def _tasks(cut: Bare, files: Mapping[str, str], experiment: Experiment) -> TaskScene:
    needed = experiment.needed(kinds.TASKS)
    return task_jobs(cut, tasks=needed["tasks"], curves=needed["curves"], drop_wide=experiment.drop_wide)


def _energy(cut: Bare, files: Mapping[str, str], experiment: Experiment) -> EnergyScene:
    return energy_jobs(experiment.priced(cut), profiles=experiment.needed(kinds.ENERGY)["profiles"])


_MAKERS: Mapping[str, Callable[[Bare, Mapping[str, str], Experiment], Scenario[Any, Any]]] = {
    POOLS: _whole,
    ROUNDS: _whole,
    kinds.GOODPUT: _whole,
    kinds.ELASTIC: _elastic,
    kinds.TASKS: _tasks,
    kinds.ENERGY: _energy,
}
