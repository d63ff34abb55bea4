from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.packing import first_fit, most_valuable
from tests.schedulers.rounds_driver import job, seqs


def test_first_fit_skips_what_is_too_wide():
    jobs = [job(0, 4), job(1, 8), job(2, 2), job(3, 4), job(4, 2)]
    assert seqs(first_fit(jobs, 8)) == [0, 2, 4]
    assert first_fit(jobs, 1) == []


@given(
    items=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=9),
    free=st.integers(0, 20),
)
def test_the_knapsack_is_exact(items, free):
    chosen = most_valuable([float(value) for value, _ in items], [width for _, width in items], free)
    assert chosen == sorted(set(chosen))
    assert sum(items[index][1] for index in chosen) <= free
    best = max(
        sum(value for value, _ in subset)
        for size in range(len(items) + 1)
        for subset in combinations(items, size)
        if sum(width for _, width in subset) <= free
    )
    assert sum(items[index][0] for index in chosen) == best
