"""Scores by a learned network."""

import numpy as np

from jobcast.domain.errors import RegistryError
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES
from jobcast.schedulers.tasks.network import Layers, networks_of, scores_of
from tests.shared import refused

JOBS = len(JOB_FEATURES)


def arrays(seed=0, jobs=JOBS):
    rng = np.random.default_rng(seed)
    found = {}
    for head, features, hidden in (("jobs", jobs, 6), ("hosts", len(HOST_FEATURES), 4)):
        shapes = ((features, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden,))
        found |= {f"{head}.{name}": rng.normal(size=shape) for name, shape in zip(Layers._fields, shapes, strict=True)}
    return found


def test_scores_are_those_of_two_hidden_layers():
    layers = networks_of(arrays()).jobs
    rows = np.random.default_rng(1).normal(size=(7, len(JOB_FEATURES)))
    low = np.tanh(rows @ layers.first + layers.first_bias)
    expected = np.tanh(low @ layers.second + layers.second_bias) @ layers.last
    np.testing.assert_allclose(scores_of(layers, rows), expected, atol=1e-12)


def test_weights_of_other_features_are_refused():
    refused(RegistryError, r"weights of jobs: first is \(3, 6\), this version needs", networks_of, arrays(jobs=3))


def test_a_missing_array_is_named():
    left = {name: values for name, values in arrays().items() if name != "hosts.last"}
    refused(RegistryError, "weights of hosts: last is missing", networks_of, left)
