from jobcast.schedulers.round_rules import LeastAttained, ShortestRemaining
from tests.schedulers.rounds_driver import Known, active, seqs, state


def test_least_gpu_time_first():
    # 400, 300 and 360 GPU-seconds
    jobs = [active(0, 4, held_s=100.0), active(1, 1, held_s=300.0), active(2, 2, held_s=180.0)]
    assert seqs(LeastAttained().choose(state(jobs, 4))) == [1, 2]


def test_weight_divides_and_ties_go_to_the_running():
    jobs = [active(0, held_s=100.0), active(1, held_s=190.0, weight=2.0), active(2, held_s=95.0, running=True)]
    assert seqs(LeastAttained().choose(state(jobs, 2))) == [2, 1]


KNOWN = Known({0: 900.0, 1: 500.0, 2: 600.0, 3: 600.0})


def test_least_left_first_and_what_fits_behind():
    jobs = [active(0, 2), active(1, 2), active(2, 4), active(3, 1)]
    assert seqs(ShortestRemaining(KNOWN).choose(state(jobs, 4))) == [1, 3]
    assert seqs(ShortestRemaining(KNOWN).choose(state(jobs, 6))) == [1, 2]


def test_by_gpu_time_a_narrow_job_is_short():
    # 1800, 1000, 2400 and 600 GPU-seconds
    jobs = [active(0, 2), active(1, 2), active(2, 4), active(3, 1)]
    assert seqs(ShortestRemaining(KNOWN, gpu_time=True).choose(state(jobs, 3))) == [3, 1]


def test_run_time_counts_and_ties_go_to_the_running():
    jobs = [active(0, held_s=700.0), active(2), active(3, running=True)]
    assert seqs(ShortestRemaining(KNOWN).choose(state(jobs, 2))) == [0, 3]
