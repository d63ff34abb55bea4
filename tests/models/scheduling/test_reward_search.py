"""Weights of the reward by Bayesian optimisation, then small changes. MLFS, section 3.4."""

import numpy as np

from jobcast.models.scheduling.learner import BETAS, HIGHEST, LOWEST, VARIATION, search_betas


def near(goal):
    return lambda betas: -float(np.square(np.subtract(betas, goal)).sum())


def test_the_search_begins_with_the_papers_weights_and_ends_no_worse():
    value_of = near((0.9, 0.2, 0.3, 0.5, 0.1))
    tried = search_betas(value_of, 10, seed=1)
    assert tried[0].betas == BETAS
    assert len(tried) == 10 + len(BETAS)
    assert all(LOWEST <= beta <= HIGHEST for each in tried for beta in each.betas)
    assert max(each.value for each in tried) > tried[0].value


def test_small_changes_vary_one_weight_of_the_best_by_a_tenth():
    tried = search_betas(near(BETAS), 3, seed=0)
    for number, each in enumerate(tried[3:]):
        changed = np.flatnonzero(~np.isclose(each.betas, BETAS))
        assert changed.tolist() == [number]
        assert np.isclose(abs(each.betas[number] / BETAS[number] - 1.0), VARIATION)


def test_equal_seeds_try_the_same():
    first, second = (search_betas(near((0.3,) * 5), 4, seed=2) for _ in range(2))
    assert first == second
