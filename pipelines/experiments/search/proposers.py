"""Search algorithms that walk a unit cube by asking and telling: evolution by pymoo, Optuna's samplers by name.

Fronts: what nothing else beats, how far off it something lies, and the volume that a search has won.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError

FLOOR = 0.01
"""Added to both sides of a ratio of objectives, % or seconds: an error of 0.001 % is no worse than one of 0."""


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
