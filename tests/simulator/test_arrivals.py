from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job
from jobcast.simulator.forecast_sources import Arrivals

ROWS = st.lists(st.tuples(st.sampled_from("pq"), st.integers(0, 50), st.integers(1, 4)), max_size=20)


def jobs_of(rows):
    return [Job(i, str(i), pool, float(at), gpus) for i, (pool, at, gpus) in enumerate(rows)]


@given(ROWS, st.integers(-5, 60), st.integers(1, 10), st.integers(1, 6))
def test_the_sliding_maximum_equals_plain_windows(rows, now, window, windows):
    arrivals = Arrivals(jobs_of(rows))
    for pool in "pqx":
        loads = [
            sum(g for name, at, g in rows if name == pool and now - (i + 1) * window < at <= now - i * window)
            for i in range(windows)
        ]
        assert arrivals.largest_past_load(pool, now, window, windows) == max(loads)
