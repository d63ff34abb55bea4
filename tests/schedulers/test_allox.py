from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.allox import AlloX, attained_share, queue_places
from tests.schedulers.rounds_driver import Known, active, seqs, state


@given(times=st.lists(st.integers(1, 50), min_size=1, max_size=6), gpus=st.integers(1, 3))
def test_the_matching_has_the_least_sum_of_completion_times(times, gpus):
    places = queue_places(np.array(times, dtype=float), gpus)
    assert all((places == place).sum() <= gpus for place in places)

    def total(assigned):
        queues = [sorted(t for t, queue in zip(times, assigned, strict=True) if queue == gpu) for gpu in range(gpus)]
        return sum(sum(np.cumsum(queue)) for queue in queues)

    assert places @ np.array(times) == min(total(assigned) for assigned in product(range(gpus), repeat=len(times)))


def test_heads_of_queues_first_and_gangs_by_gpu_time():
    # GPU-seconds with the restart of 20 s: 4 x 120, 320, 220, 2 x 520
    known = Known({0: 100.0, 1: 300.0, 2: 200.0, 3: 500.0})
    jobs = [active(0, 4), active(1), active(2), active(3, 2)]
    assert seqs(AlloX(known).choose(state(jobs, 2))) == [2, 1]
    assert seqs(AlloX(known).choose(state(jobs, 6))) == [2, 1, 0]


def test_a_running_job_saves_its_restart():
    known = Known({0: 100.0, 1: 115.0})
    assert seqs(AlloX(known).choose(state([active(0), active(1)], 1))) == [0]
    chosen = AlloX(Known({0: 100.0, 1: 235.0})).choose(state([active(0), active(1, held_s=120.0, running=True)], 1))
    assert seqs(chosen) == [1]
    # 81 + 20 s to go, and 100.5 without a restart
    chosen = AlloX(Known({0: 81.0, 1: 220.5})).choose(state([active(0), active(1, held_s=120.0, running=True)], 1))
    assert seqs(chosen) == [1]


def test_what_a_job_might_have_had_counts_from_its_submission_by_its_weight():
    assert attained_share(active(0, held_s=60.0, submit_s=300.0, weight=2.0), 600.0) == 60.0 / 600.0
    assert attained_share(active(0, held_s=0.25, submit_s=599.5), 600.0) == 0.5
    assert attained_share(active(0, submit_s=600.0), 600.0) == 0.0


def test_the_filter_keeps_those_that_had_least():
    known = Known({0: 700.0, 1: 900.0, 2: 800.0})
    jobs = [active(0, held_s=600.0), active(1, held_s=60.0), active(2, held_s=300.0)]
    now = state(jobs, 1, now_s=600.0)
    assert [attained_share(one, 600.0) for one in jobs] == [1.0, 0.1, 0.5]
    assert seqs(AlloX(known).choose(now)) == [0]
    assert seqs(AlloX(known, filter=2 / 3).choose(now)) == [2]
    assert seqs(AlloX(known, filter=1 / 3).choose(now)) == [1]
