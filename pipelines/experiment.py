"""An experiment: the jobs of a window, the cluster that they run on and what is known of them, whatever the policy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import FLAT_POOL, Cluster
from jobcast.domain.jobs import Pool
from jobcast.pipelines.cells import asks_for_locality, placed
from jobcast.pipelines.clusters import TASK_GPUS, cluster_of
from jobcast.pipelines.elastic.scene import ElasticScene, elastic_scene
from jobcast.pipelines.energy.scene import EnergyScene, energy_scene
from jobcast.pipelines.goodput_runs import scaling_scene
from jobcast.pipelines.scaling_jobs import read_scaling
from jobcast.pipelines.scenes import Scene, build_scene, cut_window
from jobcast.pipelines.tasks.scene import TaskScene, task_scene
from jobcast.pipelines.training_jobs import read_tables
from jobcast.schedulers.policies import ELASTIC, ENERGY, GOODPUT, KINDS, POOLS, ROUNDS, TASKS
from jobcast.schedulers.settings import read_settings
from jobcast.traces.facts import assumptions_beside, facts_beside, sentences
from jobcast.traces.table import Trace

TABLES: Mapping[str, tuple[str, ...]] = {
    ROUNDS: ("throughputs", "regimes", "datasets"),
    GOODPUT: ("step_times", "training_curves"),
    ELASTIC: ("speedups",),
    TASKS: ("tasks", "curves"),
    ENERGY: ("profiles",),
}
"""Tables beside an enriched trace that jobs come from, by the kind of policy that schedules them."""
REMEDIES: Mapping[str, str] = {
    TASKS: "schedulers of tasks need it; `jobcast trace generate mlfs` writes one with --{name}-out, `jobcast trace "
    "enrich --facts tasks` supplies it for any trace",
    ENERGY: "schedulers of energy need it; `jobcast trace generate andreas` writes one with --{name}-out, `jobcast "
    "trace enrich --facts epochs` supplies it for any trace",
}
NEEDED: Mapping[str, tuple[str, ...]] = {TASKS: ("tasks", "curves"), ENERGY: ("profiles",)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """What is replayed, before anybody says by which policy.

    Attributes
    ----------
    trace : whole; jobs before the window are history
    cluster : what was named; None for what keeps the trace's jobs busy
    from_s, until_s, limit : the window, seconds from the epoch, and how many of its jobs
    given : tables and other facts that `--set` names; they go before those beside an enriched trace
    drop_wide, only_pools : whether jobs that are wider than their pool, or of pools without capacity, are left out
    max_think_s : after how much thought jobs follow others, None for an open loop
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

    def __post_init__(self) -> None:
        if self.from_s is not None and self.until_s is not None and self.from_s >= self.until_s:
            raise ConfigError("--from must lie before --until")

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # scenes are made anew elsewhere

    @cached_property
    def _assumed(self) -> Mapping[str, Any] | None:
        return assumptions_beside(self.trace.source.path)

    def assumptions(self, kind: str) -> tuple[str, ...]:
        """What the jobs that a kind of policy meets rest on, in sentences; none where nothing was enriched."""
        beside = self._beside(kind)
        return tuple(sentences(self._assumed, set(beside))) if self._assumed is not None and beside else ()

    @cached_property
    def _found(self) -> dict[str, dict[str, str]]:
        return {}

    def _beside(self, kind: str) -> dict[str, str]:
        if kind not in self._found:  # whose hashes are checked once
            wanted = [name for name in TABLES.get(kind, ()) if name not in self.given]
            found = facts_beside(self.trace.source.path, wanted) if wanted else {}
            self._found[kind] = {name: str(path) for name, path in found.items()}
        return self._found[kind]

    def files(self, kind: str) -> dict[str, str]:
        """Facts that a kind of policy meets its jobs by, as `--set` would name them."""
        known = {**KINDS[kind].files.model_fields, **KINDS[kind].site.model_fields}
        return {**self._beside(kind), **{name: value for name, value in self.given.items() if name in known}}

    def place(self, kind: str = POOLS) -> Cluster:
        """The cluster; where none was named, that of MLFS for tasks."""
        if self.cluster is not None:
            return self.cluster
        return cluster_of(self.trace, from_s=self.from_s, otherwise=TASK_GPUS if kind == TASKS else None)

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
    def _scenes(self) -> dict[tuple[object, ...], Any]:
        return {}

    def scene(self, kind: str) -> Any:
        """Jobs and cluster as policies of a kind meet them, made once: a `Scene`, or that of its kind.

        Raises TraceError and ConfigError for what is missing or does not fit.
        """
        files, maker = self.files(kind), _MAKERS[kind]
        key = (maker, *sorted(files.items()))
        if key not in self._scenes:
            self._scenes[key] = maker(self, files)
        return self._scenes[key]

    @property
    def cut(self) -> dict[str, Any]:
        """From, until and limit, by these names."""
        return {"from_s": self.from_s, "until_s": self.until_s, "limit": self.limit}


def whole_jobs(experiment: Experiment, files: Mapping[str, str], shared: bool = False) -> Scene:
    """Whole jobs from pools' quotas; `shared`: quotas ignored, all GPUs in one pool."""
    place, scaling = experiment.place(), read_scaling(files)
    scene = build_scene(
        experiment.trace,
        [Pool(FLAT_POOL, place.gpus)] if shared else place.pools,
        origin=place.together if shared else place.origin,
        flat=place.flat or shared,
        **experiment.cut,
        drop_wide=experiment.drop_wide,
        only_pools=experiment.only_pools,
        tables=read_tables(files),
        nodes=place.nodes,
        max_think_s=experiment.max_think_s,
    )
    if asks_for_locality(files):
        scene = placed(scene, place.cells)
    return scene if scaling is None else scaling_scene(scene, experiment.trace, scaling)


def jobs_that_scale(experiment: Experiment, files: Mapping[str, str]) -> Scene:
    """Whole jobs on one cluster, with what tables tell of how they scale."""
    return whole_jobs(experiment, files, shared=True)


def elastic_jobs(experiment: Experiment, files: Mapping[str, str]) -> ElasticScene:
    """Jobs as policies of elastic ones meet them."""
    read = read_settings("elastic jobs", KINDS[ELASTIC].files, files)
    return elastic_scene(experiment.trace, experiment.place(), **experiment.cut, **read.given())


def task_jobs(experiment: Experiment, files: Mapping[str, str] | None = None) -> TaskScene:
    """Jobs of tasks on servers."""
    tasks, curves = _needed(TASKS, experiment.files(TASKS) if files is None else files)
    return task_scene(experiment.trace, experiment.place(TASKS), **experiment.cut, tasks=tasks, curves=curves)


def energy_jobs(experiment: Experiment, files: Mapping[str, str]) -> EnergyScene:
    """Jobs with due dates on nodes of unlike GPUs."""
    (profiles,) = _needed(ENERGY, files)
    site = KINDS[ENERGY].site
    prices = read_settings("the site", site, {name: files[name] for name in site.model_fields if name in files})
    return energy_scene(
        experiment.trace, experiment.place().priced(**dict(prices)), **experiment.cut, profiles=profiles
    )


def _needed(kind: str, files: Mapping[str, str]) -> list[Path]:
    for name in NEEDED[kind]:
        if name not in files:
            raise ConfigError(f"--set {name}=FILE is missing: {REMEDIES[kind].format(name=name)}")
    return [Path(files[name]) for name in NEEDED[kind]]


_MAKERS: Mapping[str, Callable[[Experiment, Mapping[str, str]], Any]] = {
    POOLS: whole_jobs,
    ROUNDS: whole_jobs,
    GOODPUT: jobs_that_scale,
    ELASTIC: elastic_jobs,
    TASKS: task_jobs,
    ENERGY: energy_jobs,
}
