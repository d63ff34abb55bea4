from jobcast.schedulers.las import LeastAttained
from tests.schedulers.rounds_driver import active, seqs, state


def test_least_gpu_time_first():
    # 400, 300 and 360 GPU-seconds
    jobs = [active(0, 4, held_s=100.0), active(1, 1, held_s=300.0), active(2, 2, held_s=180.0)]
    assert seqs(LeastAttained().choose(state(jobs, 4))) == [1, 2]


def test_weight_divides_and_ties_go_to_the_running():
    jobs = [active(0, held_s=100.0), active(1, held_s=190.0, weight=2.0), active(2, held_s=95.0, running=True)]
    assert seqs(LeastAttained().choose(state(jobs, 2))) == [2, 1]
