"""Simulations of configurations on samples: several at a time, none twice."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain.elastic import ElasticPolicy, Floats
from jobcast.pipelines.clusters import preempting
from jobcast.pipelines.console import Step
from jobcast.pipelines.engines import results
from jobcast.pipelines.search.journal import Journal
from jobcast.pipelines.search.objectives import Objective, needs_forecasts, values_of
from jobcast.pipelines.search.workload import Sample
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.registry import make_rule
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic

HASH_LENGTH = 16
Candidate = WfqConfig | str
"""A configuration of PCS, or another policy's name."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Where configurations are tried.

    Attributes
    ----------
    cluster, gpu_types : GPUs, and names of their types in its order
    whole, monotone : how PCS deals out, as of `WfqConfig.policy`
    preempt_s : progress that a change of a running job's GPUs costs, seconds
    """

    cluster: ElasticCluster
    gpu_types: tuple[str, ...] = ("",)
    whole: bool = False
    monotone: bool = False
    preempt_s: float = 0.0

    def policy(self, candidate: Candidate) -> ElasticPolicy:
        """The policy that a candidate is. Raises ConfigError for an unknown name."""
        if isinstance(candidate, str):
            rule: ElasticPolicy = make_rule(candidate, self.gpu_types)
            return rule
        return candidate.policy(self.gpu_types, whole=self.whole, monotone=self.monotone)


def config_hash(candidate: Candidate) -> str:
    """A name for a candidate that is the same wherever it is met."""
    if isinstance(candidate, str):
        return candidate
    return hashlib.sha256(json.dumps(candidate.to_json()).encode()).hexdigest()[:HASH_LENGTH]


def simulated(world: World, candidate: Candidate, sample: Sample, objectives: Sequence[Objective]) -> list[float]:
    """Objectives of one candidate on one sample, (n_objectives,)."""
    rule = world.policy(candidate)
    cluster = preempting(world.cluster, world.preempt_s, placed=rule.integral)
    log = replay_elastic(ElasticReplay(sample.jobs, sample.size_s, cluster, rule), predict=needs_forecasts(objectives))
    return values_of(log, objectives)


class Evaluator:
    """Evaluates candidates on samples; what the journal holds is not simulated again.

    Parameters
    ----------
    world, objectives : where, and what for
    samples : by a name that stays the same, such as train-0
    journal : of this run
    jobs : simulations at a time
    engine_name : key of `engines.ENGINES`
    """

    def __init__(
        self,
        world: World,
        objectives: Sequence[Objective],
        samples: dict[str, Sample],
        journal: Journal,
        *,
        jobs: int = 1,
        engine_name: str = "local",
    ) -> None:
        self._world, self._objectives, self._samples = world, tuple(objectives), samples
        self._journal, self._jobs, self._engine = journal, jobs, engine_name

    def evaluate(self, candidates: Sequence[Candidate], names: Sequence[str], progress: Step | None = None) -> Floats:
        """Values by candidate, sample and objective, (n, n_samples, n_objectives).

        `progress` is called with (simulations done, simulations) of this call. Raises DecisionError as a replay does.
        """
        keys = {f"{config_hash(one)} {name}": (one, name) for one in candidates for name in names}
        todo = [key for key in keys if self._journal.get(key) is None]
        for done, (key, values) in enumerate(self._simulate(todo, keys), 1):
            self._journal.add(key, values)
            if progress:
                progress(len(keys) - len(todo) + done, len(keys))
        found = [[self._journal.get(f"{config_hash(one)} {name}") for name in names] for one in candidates]
        return np.array(found, dtype=np.float64).reshape(len(candidates), len(names), len(self._objectives))

    def _simulate(
        self, todo: Sequence[str], keys: dict[str, tuple[Candidate, str]]
    ) -> Iterable[tuple[str, list[float]]]:
        from joblib import delayed

        from jobcast.schedulers.elastic import wfq  # noqa: F401  compiled and kept on disk before workers begin
        from jobcast.simulator.elastic import kernel  # noqa: F401

        if not todo:
            return
        tasks = (
            delayed(_task)(key, self._world, keys[key][0], self._samples[keys[key][1]], self._objectives)
            for key in todo
        )
        yield from results(tasks, jobs=self._jobs, engine_name=self._engine)


def _task(
    key: str, world: World, candidate: Candidate, sample: Sample, objectives: Sequence[Objective]
) -> tuple[str, list[float]]:
    return key, simulated(world, candidate, sample, objectives)
