from jobcast.schedulers.las import ShortestRemaining
from tests.schedulers.rounds_driver import Known, active, seqs, state

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
