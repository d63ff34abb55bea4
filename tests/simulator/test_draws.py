import numpy as np

from jobcast.simulator.draws import draw_key, uniform


def test_draws_are_the_same_on_every_machine():
    assert uniform(draw_key(0, "arrival", "p", 300.0), 0.0) == 0.07415964959763954
    assert uniform(draw_key(0, "bin", "j1")) == 0.8718516733809674


def test_draws_are_uniform_and_unrelated():
    by_instant = np.array([uniform(b"k", float(t)) for t in range(20_000)])
    by_key = np.array([uniform(draw_key(0, i)) for i in range(20_000)])
    for draws in (by_instant, by_key):
        assert draws.min() >= 0
        assert draws.max() < 1
        counts = np.histogram(draws, bins=20, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-squared, 19 degrees of freedom, p = 0.001
    assert abs(np.corrcoef(by_instant[:-1], by_instant[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(by_instant, by_key)[0, 1]) < 0.03
