import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.sia_vc import EMPTY, ResourceTimePlan, add, first_above, virtual_starts_s
from tests.schedulers.events_driver import starts, workloads


@given(workloads(max_jobs=30, durations=(1e-8, 1, 2, 3, 5, 9, 20, 40)))
def test_virtual_starts_are_those_of_fcfs(workload):
    durations_s = [outcome.duration_s for outcome in workload.outcomes]
    found = virtual_starts_s(workload.jobs, durations_s, workload.quotas())
    assert found.tolist() == starts(workload, lambda _: Fcfs())


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_tree_is_an_array(count, seed):
    rng = np.random.default_rng(seed)
    size = 1 << (count - 1).bit_length()
    peak, added = np.full(2 * size, EMPTY), np.zeros(2 * size, dtype=np.int64)
    add(peak, added, 0, count, -EMPTY)  # zeros where jobs are
    plain = np.zeros(count, dtype=np.int64)
    for _ in range(12):
        begin, end = sorted(rng.integers(0, count + 1, 2).tolist())
        gpus = int(rng.integers(-5, 6))
        add(peak, added, begin, end, gpus)
        plain[begin:end] += gpus
        for begin in range(count + 1):
            most = int(rng.integers(-8, 9))
            above = np.flatnonzero(plain[begin:] > most)
            assert first_above(peak, added, begin, most) == (begin + above[0] if len(above) else size)


def test_a_plan_starts_what_leaves_all_reservations_their_gpus():
    # 4 GPUs; jobs by seq: (virtual start, run time, GPUs)
    rows = [(0.0, 10.0, 2), (10.0, 5.0, 2), (15.0, 3.0, 1), (4.0, 1.0, 2)]
    begin_s, duration_s, gpus = (np.array(column) for column in zip(*rows, strict=True))
    plan = ResourceTimePlan(begin_s, duration_s, gpus, 4)
    assert plan.start(range(0, 1), 0.0, 4) == [0]
    # job 3 is to come at 4 and needs 2 GPUs then: job 1 would run into that, job 2 is over
    assert plan.start(range(1, 3), 1.0, 2) == [2]
    assert plan.start(range(3, 4), 4.0, 2) == [3]
    assert plan.start(range(4, 4), 5.0, 2) == [1]
