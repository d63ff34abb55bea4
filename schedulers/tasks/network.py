"""The networks of a learned scheduler of tasks: one scores waiting jobs, one scores servers for a task.

Wang, Liu, Shen: Job Scheduling for Large-Scale Machine Learning Clusters, CoNEXT 2020 (MLFS), section 3.4 and Figure 3.
Weights come from `models.scheduling`; here they are numbers, and a forward pass is compiled code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, njit, types
from jobcast.domain.errors import RegistryError
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES

# Scores that count as equal: hyperbolic tangents differ from library to library.
SAME_SCORE = 1e-7


class Layers(NamedTuple):
    """Two hidden layers with tanh and a linear score; without a last bias, which a softmax would not see.

    Attributes
    ----------
    first, first_bias : (n_features, n_hidden), (n_hidden,)
    second, second_bias : (n_hidden, n_hidden), (n_hidden,)
    last : (n_hidden,)
    """

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    last: Floats


LAYERS = types.NamedTuple([F2, F1, F2, F1, F1], Layers)


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """What a learned scheduler decides with.

    Attributes
    ----------
    jobs : scores a row of `features.JOB_FEATURES`; the highest is placed first
    hosts : scores a row of `features.HOST_FEATURES`; the highest server takes the task
    """

    jobs: Layers
    hosts: Layers


def networks_of(arrays: Mapping[str, Floats]) -> Networks:
    """Networks from arrays by name, `jobs.first` to `hosts.last`.

    Raises
    ------
    RegistryError
        An array is missing, or has another shape than this version's features need.
    """
    return Networks(
        _layers(arrays, "jobs", len(JOB_FEATURES)),
        _layers(arrays, "hosts", len(HOST_FEATURES)),
    )


def _layers(arrays: Mapping[str, Floats], head: str, features: int) -> Layers:
    missing = [name for name in Layers._fields if f"{head}.{name}" not in arrays]
    if missing:
        raise RegistryError(f"weights of {head}: {missing[0]} is missing; train the policy again")
    layers = Layers(*(np.ascontiguousarray(arrays[f"{head}.{name}"], np.float64) for name in Layers._fields))
    hidden = layers.last.size
    shapes = ((features, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden,))
    for name, values, shape in zip(Layers._fields, layers, shapes, strict=True):
        if values.shape != shape:
            raise RegistryError(
                f"weights of {head}: {name} is {values.shape}, this version needs {shape}; train the policy again"
            )
    return layers


@njit(types.void(LAYERS, F2, types.int64, F1), cache=True)
def score_rows(layers: Any, rows: Any, count: int, scores: Any) -> None:
    """Scores of the first `count` rows (n, n_features) into scores (n,)."""
    features, hidden = layers.first.shape
    low, high = np.empty(hidden), np.empty(hidden)
    for row in range(count):
        low[:] = layers.first_bias
        for feature in range(features):
            value = rows[row, feature]
            # Most columns of a row are 0.
            if value != 0.0:
                for unit in range(hidden):
                    low[unit] += value * layers.first[feature, unit]
        high[:] = layers.second_bias
        for unit in range(hidden):
            value = np.tanh(low[unit])
            for other in range(hidden):
                high[other] += value * layers.second[unit, other]
        total = 0.0
        for unit in range(hidden):
            total += np.tanh(high[unit]) * layers.last[unit]
        scores[row] = total


def scores_of(layers: Layers, rows: Floats) -> Floats:
    """Score of each row, (n,)."""
    scores = np.empty(len(rows))
    score_rows(layers, np.ascontiguousarray(rows), len(rows), scores)
    return scores
