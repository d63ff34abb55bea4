"""Draws by (seed, job id)."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.traces.enrich.columns import Draws

NAMES = st.lists(st.text(max_size=8), min_size=1, max_size=20, unique=True)


@settings(max_examples=20)
@given(NAMES, st.integers(0, 2**31))
def test_a_job_is_drawn_the_same_whoever_else_is_there(names, seed):
    counts = np.arange(len(names)) % 4
    among = Draws(seed, names)
    alone = Draws(seed, names[-1:])
    assert among.uniform("x", 2.0, 3.0)[-1] == alone.uniform("x", 2.0, 3.0)[0]
    assert among.choice("x", 7)[-1] == alone.choice("x", 7)[0]
    last = int(counts[-1])
    assert among.normal("x", counts)[int(counts[:-1].sum()) :].tolist() == (
        alone.normal("x", np.array([last])).tolist()
    )


def test_quantities_and_seeds_are_streams_of_their_own():
    names = [str(number) for number in range(20_000)]
    draws = Draws(1, names)
    one, two, other = draws.uniform("one"), draws.uniform("two"), Draws(2, names).uniform("one")
    for left, right in ((one, two), (one, other), (one[:-1], one[1:])):
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.03
    assert 0.0 <= one.min() <= one.max() < 1.0
    shares = np.histogram(one, 10, (0, 1))[0] / 20_000
    assert ((shares > 0.09) & (shares < 0.11)).all()


def test_normal_draws_are_standard_normal():
    drawn = Draws(0, ["a", "b"]).normal("x", np.array([20_000, 20_000]))
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1.0) < 0.02
    assert abs(np.corrcoef(drawn[:20_000], drawn[20_000:])[0, 1]) < 0.03
    assert np.isfinite(drawn).all()
