"""UpdateParetoFront of PCS: configurations searched on some samples of a workload, judged on others. Section 3.3.

Search algorithms that walk a unit cube by asking and telling: evolution by pymoo, Optuna's samplers by name.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jobcast import __version__
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.search.evaluation import Evaluator, Journal, Objective, World, config_hash
from jobcast.pipelines.experiments.search.front import Front, Row
from jobcast.pipelines.experiments.search.workload_samples import Sample, Sampling, Workload, described, draw
from jobcast.pipelines.report.console import Step
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.schedulers.elastic.parameters import SPACES, SizeTable, Space

LEAST_JOBS = 50
"""With fewer jobs there is too little history to draw from, and the default serves. PCS, section 3.2."""
MOST_CHOICES = 40
"""Configurations of the training front that are tried on test samples; more do not help who chooses."""
MOST_ASKED = 5
"""A search ends when it proposed so many times its budget: what it proposes now, it proposed before."""
REFERENCES = ("elastic_fifo", "srsf")
"""Policies shown beside a front: the most predictable one, which is the default too, and Tiresias."""
TRAIN, TEST = 0, 1
"""First numbers of the seeds of samples to search on and to judge on."""


def pareto_mask(values: Floats) -> NDArray[np.bool_]:
    """(n,) rows of (n, n_objectives) that no other dominates; of equal rows the first.

    >>> pareto_mask(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0], [2.0, 2.0]])).tolist()
    [True, True, False, False]
    """
    no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    better = no_worse & (values[:, None, :] < values[None, :, :]).any(axis=2)
    same = no_worse & no_worse.T
    # Of equal rows the later ones count as beaten, or none of them would be left.
    earlier = np.triu(same, 1)
    beaten = (better | earlier).any(axis=0)
    return ~np.asarray(beaten, dtype=np.bool_)


def thinned(values: Floats, rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many rows, evenly along the first objective, its ends included."""
    ordered = rows[np.argsort(values[rows, 0], kind="stable")]
    if len(ordered) <= most:
        return ordered
    # Rounded places may coincide.
    return ordered[np.unique(np.linspace(0, len(ordered) - 1, most).round().astype(np.int64))]


POPULATION = 32
"""Configurations of a generation."""


class Proposer(Protocol):
    """A search for points of the unit cube whose objectives are small."""

    def ask(self) -> Floats:
        """Points to be evaluated next, (n, dimensions); none when the search has come to its end."""
        ...

    def tell(self, values: Floats) -> None:
        """Their values, (n, n_objectives)."""
        ...


class PymooProposer:
    """SPEA2 or NSGA-II of pymoo.

    Parameters
    ----------
    name : key of `EVOLUTIONS`
    first : (n, dimensions) the first generation
    objectives : how many
    seed : of all draws

    Raises ConfigError when pymoo is not installed.
    """

    def __init__(self, name: str, first: Floats, objectives: int, seed: int) -> None:
        try:
            from pymoo.core.problem import Problem
            from pymoo.core.termination import NoTermination
        except ImportError as error:
            raise ConfigError(f"--algorithm {name}: pymoo is not installed; pip install 'jobcast[search]'") from error
        # With a single objective it is given twice: SPEA2 measures distances between at least two.
        self._twice = objectives == 1
        shape = {"n_var": first.shape[1], "n_obj": max(objectives, 2), "xl": 0.0, "xu": 1.0}
        self._algorithm = EVOLUTIONS[name](first)
        self._algorithm.setup(Problem(**shape), termination=NoTermination(), seed=seed, verbose=False)
        self._asked: Any = None

    def ask(self) -> Floats:
        """The next generation."""
        self._asked = self._algorithm.ask()
        if self._asked is None or not len(self._asked):
            return np.zeros((0, self._algorithm.problem.n_var))
        return np.asarray(self._asked.get("X"), dtype=np.float64)

    def tell(self, values: Floats) -> None:
        """Values of the generation."""
        self._asked.set("F", np.repeat(values, 2, axis=1) if self._twice else values)
        for one in self._asked:
            # Else pymoo would evaluate them itself, by a problem that has no function.
            one.evaluated.update({"F", "G", "H"})
        self._algorithm.tell(infills=self._asked)


def _spea2(first: Floats) -> Any:
    from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

    # The survival that pymoo would take is one for the whole process and remembers the searches before.
    return SPEA2(pop_size=len(first), sampling=first, survival=SPEA2Survival(normalize=True))


def _nsga2(first: Floats) -> Any:
    from pymoo.algorithms.moo.nsga2 import NSGA2

    return NSGA2(pop_size=len(first), sampling=first)


EVOLUTIONS: Mapping[str, Callable[[Floats], Any]] = MappingProxyType({"spea2": _spea2, "nsga2": _nsga2})
OPTUNA = "optuna-"
ALGORITHMS = (*EVOLUTIONS, "optuna-nsga2", "optuna-tpe")
"""Names that `--algorithm` takes."""


def proposer(name: str, dimensions: int, objectives: int, seed: int, start: Floats, population: int) -> Proposer:
    """A search algorithm at its beginning; its first points are `start` and a latin hypercube.

    Parameters
    ----------
    start : (dimensions,) the point that is tried first
    population : points of a generation

    Raises ConfigError for an unknown name.
    """
    if name not in ALGORITHMS:
        raise ConfigError(f"--algorithm {name}: is unknown; choose from {', '.join(ALGORITHMS)}")
    first = _first_points(dimensions, population, seed, start)
    if name in EVOLUTIONS:
        return PymooProposer(name, first, objectives, seed)
    from jobcast.models.setting_search import OptunaProposer

    return OptunaProposer(name.removeprefix(OPTUNA), first, objectives, seed)


def _first_points(dimensions: int, count: int, seed: int, start: Floats) -> Floats:
    from scipy.stats.qmc import LatinHypercube

    # Evenly spread, whatever the number of dimensions.
    drawn = LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(max(count - 1, 1))
    return np.vstack([start, drawn])[:count]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched for, and how.

    Attributes
    ----------
    objectives : at least one
    algorithm : of `ALGORITHMS`
    evaluations : simulations of training samples at most; a configuration takes one a sample
    samples, test_samples : random samples to search on, and fresh ones to judge on
    sampling : how they are drawn
    space : key of `parameters.SPACES`
    seed : of all draws
    """

    objectives: tuple[Objective, ...]
    algorithm: str = "spea2"
    evaluations: int = 1000
    samples: int = 3
    test_samples: int = 5
    sampling: Sampling = field(default_factory=Sampling)
    space: str = "raw"
    seed: int = 0

    @property
    def configurations(self) -> int:
        """Configurations that the budget allows, at least one."""
        return max(self.evaluations // self.samples, 1)

    def to_json(self) -> dict[str, Any]:
        """Everything, as a front's file holds it."""
        return {
            "objectives": [one.label for one in self.objectives],
            "algorithm": self.algorithm,
            "evaluations": self.evaluations,
            "samples": self.samples,
            "test_samples": self.test_samples,
            "sample_jobs": self.sampling.jobs,
            "load": self.sampling.load,
            "gaps": self.sampling.gaps,
            "space": self.space,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A configuration that was searched: its parameters by name, and its values in the mean over training samples."""

    config: WfqConfig
    parameters: dict[str, Any]
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A finished search.

    Attributes
    ----------
    front : to choose from
    history : all configurations in the order of their evaluation
    resumed : simulations that the journal held already
    """

    front: Front
    history: tuple[Tried, ...]
    resumed: int

    @property
    def values(self) -> Floats:
        """(n_configurations, n_objectives) on training samples, in the order of evaluation."""
        return np.array([one.values for one in self.history])


def search_front(
    workload: Workload,
    world: World,
    request: SearchRequest,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    engine_name: str = "local",
    progress: Step | None = None,
) -> Searched:
    """Search for configurations that nothing beats, and judge them on samples that the search did not see.

    With less than `LEAST_JOBS` of history the front is the default alone, FIFO, untested.

    Parameters
    ----------
    workload : what was collected
    world : GPUs
    journal : file of what was simulated already, to go on after an interruption; None keeps nothing
    jobs, engine_name : simulations at a time, and where
    progress : called with (simulations done, simulations expected)

    Raises ConfigError for a request that cannot be carried out, DecisionError as a replay does.
    """
    if request.space not in SPACES:
        raise ConfigError(f"--space {request.space}: is unknown; choose from {', '.join(SPACES)}")
    # Too few jobs to draw from: any front would fit their accidents.
    if len(workload.size_s) < LEAST_JOBS:
        return Searched(default_front(workload, request), (), 0)
    space = SPACES[request.space](SizeTable(workload.jobs.size_s), world.gpu_types)
    samples = draw_samples(workload, request)
    kept = Journal(journal, run_hash(workload, world, request))
    evaluator = Evaluator(world, request.objectives, samples, kept, jobs, engine_name)
    history = _explore(space, evaluator, request, progress)
    front = _judged(history, evaluator, workload, request)
    return Searched(front, tuple(history), kept.resumed)


def draw_samples(workload: Workload, request: SearchRequest) -> dict[str, Sample]:
    """The samples of a request, training apart from testing, each from a seed of its own."""
    kinds = ((TRAIN, "train", request.samples), (TEST, "test", request.test_samples))
    return {
        f"{name}-{number}": draw(workload, request.sampling, (request.seed, kind, number))
        for kind, name, count in kinds
        for number in range(count)
    }


def run_hash(workload: Workload, world: World, request: SearchRequest) -> str:
    """Hash of all that a simulation's values depend on besides configuration and sample; not of the algorithm."""
    result = request.to_json()
    # What samples and values hang on; the algorithm only chooses what is tried.
    read = {key: result[key] for key in ("objectives", "sample_jobs", "load", "gaps", "seed")}
    cluster = world.cluster
    arrays = [one.tolist() for one in (cluster.capacity, cluster.node_type, cluster.node_gpus)]
    rules = [list(world.gpu_types), world.whole, world.monotone, world.preempt_s]
    # With the version: another engine may give other values for the same run.
    text = json.dumps([workload.fingerprint, read, arrays, rules, __version__])
    return hashlib.sha256(text.encode()).hexdigest()


def _explore(space: Space, evaluator: Evaluator, request: SearchRequest, progress: Step | None) -> list[Tried]:
    """Generation after generation until the budget is spent; configurations met again cost nothing."""
    budget = request.configurations
    names = [f"train-{number}" for number in range(request.samples)]
    # A generation larger than the budget could never be told whole.
    population = min(POPULATION, budget)
    walk = proposer(request.algorithm, space.dimensions, len(request.objectives), request.seed, space.fifo, population)
    found: dict[str, Tried] = {}
    asked = 0
    # Late generations repeat themselves: proposals are bounded too, or it would never end.
    while len(found) < budget and asked < MOST_ASKED * budget:
        points = walk.ask()
        if not len(points):
            break
        asked += len(points)
        configs = [space.config(point) for point in points]
        keys = [config_hash(config) for config in configs]
        # First of its kind in this generation and not met before.
        fresh = [at for at, key in enumerate(keys) if key not in found and key not in keys[:at]]
        fresh = fresh[: budget - len(found)]
        step = _shifted(progress, len(found) * request.samples, request)
        values = evaluator.evaluate([configs[at] for at in fresh], names, step).mean(axis=1)
        for at, value in zip(fresh, values, strict=True):
            found[keys[at]] = Tried(configs[at], space.report(points[at]), value)
        if any(key not in found for key in keys):
            break  # the budget did not reach for all of this generation
        walk.tell(np.array([found[key].values for key in keys]))
    return list(found.values())


def _shifted(progress: Step | None, done: int, request: SearchRequest) -> Step | None:
    if progress is None:
        return None
    return lambda one, _: progress(done + one, request.configurations * request.samples)


def _judged(history: Sequence[Tried], evaluator: Evaluator, workload: Workload, request: SearchRequest) -> Front:
    """The best on training samples, on test samples; those that fall behind there are marked."""
    values = np.array([one.values for one in history])
    # Judged are those that won on training samples: choosing on the test samples would flatter them.
    chosen = thinned(values, np.flatnonzero(pareto_mask(values)), MOST_CHOICES)
    names = [f"test-{number}" for number in range(request.test_samples)]
    tests = evaluator.evaluate([history[at].config for at in chosen], names).mean(axis=1)
    references = evaluator.evaluate(REFERENCES, names).mean(axis=1)
    # By the first objective, the last one breaking ties: lexsort takes its main key last.
    order = np.lexsort((tests[:, -1], tests[:, 0]))
    best = pareto_mask(tests)
    rows = [
        Row(
            pick,
            history[chosen[at]].config,
            history[chosen[at]].parameters,
            tuple(history[chosen[at]].values.tolist()),
            tuple(tests[at].tolist()),
            bool(best[at]),
        )
        for pick, at in enumerate(order)
    ]
    shown = {name: tuple(one.tolist()) for name, one in zip(REFERENCES, references, strict=True)}
    about = {"search": request.to_json(), "configurations": len(history), "workload": described(workload)}
    return Front(request.objectives, tuple(rows), shown, about)


def default_front(workload: Workload, request: SearchRequest) -> Front:
    """FIFO alone, as long as there is too little history. PCS, section 3.2."""
    config = WfqConfig()
    result = {"T": None, "W": None, "zeta_min": config.clip_demand_factor, "delta": config.delta}
    about = {"search": request.to_json(), "configurations": 0, "workload": described(workload)}
    return Front(request.objectives, (Row(0, config, result, None, None, True),), {}, about)
