import pytest

from jobcast.domain.jobs import Job
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle

# After SIA, figure 1: green's queue is long while orange idles; j2 runs long, j3 to j5 short, orange bursts at 7.
FIGURE_1 = [
    ("j0", "green", 0, 10, 4),
    ("j1", "orange", 0, 1, 4),
    ("j2", "green", 1, 1000, 4),
    ("j3", "green", 1, 3, 2),
    ("j4", "green", 1, 4, 2),
    ("j5", "green", 2, 2, 4),
    ("j6", "orange", 7, 2, 4),
    ("j7", "orange", 8, 2, 2),
]
QUOTAS = {"green": 4, "orange": 4}


def test_figure_1(workload, starts_of):
    made = workload(FIGURE_1, QUOTAS)
    fcfs = {"j0": 0, "j1": 0, "j2": 10, "j3": 1010, "j4": 1010, "j5": 1014, "j6": 7, "j7": 9}
    assert starts_of(made, "fcfs") == fcfs
    # instantaneous fairness gives orange's GPUs away for 1000 minutes, and j6 and j7 wait
    assert starts_of(made, "mmfs") == {
        "j0": 0, "j1": 0, "j2": 1, "j6": 10, "j7": 12, "j3": 12, "j4": 14, "j5": 18,
    }  # fmt: skip
    # anticipation lends them to j3 and j4, which are over before j6 comes; j5 runs on GPUs that are idle after that
    assert starts_of(made, "sia") == {**fcfs, "j3": 1, "j4": 1, "j5": 11}


def test_dedicated_and_spare_show_in_the_log(workload):
    made = workload(FIGURE_1, QUOTAS)
    oracle = Oracle(made)
    log = replay(made, Sia(oracle), oracle)
    assert dict(zip((job.job_id for job in made.jobs), log.dedicated.tolist(), strict=True)) == {
        "j0": True, "j1": True, "j2": True, "j3": False, "j4": False, "j5": False, "j6": True, "j7": True,
    }  # fmt: skip


def test_conservative_forecasts_give_fcfs(workload, starts_of):
    made = workload(FIGURE_1, QUOTAS)
    assert starts_of(made, "sia", source=Conservative(made)) == starts_of(made, "fcfs")


def test_jobs_of_the_last_bin_never_run_on_spare_gpus(workload, starts_of):
    jobs = [("a", "p", 0, 30, 2), ("b", "p", 1, 720, 2), ("c", "p", 2, 721, 2)]
    pools = {"p": 2, "q": 8}
    assert starts_of(workload(jobs, pools), "sia") == {"a": 0, "b": 1, "c": 30}


def test_a_smaller_bin_is_eligible_in_a_larger_window(workload, starts_of):
    # q's job at 3 forbids nothing within 5 minutes that leaves its 2 GPUs; both windows reserve them
    jobs = [("a", "p", 0, 900, 2), ("b", "p", 0, 4, 2), ("c", "p", 0, 50, 2), ("d", "q", 100, 1, 2)]
    assert starts_of(workload(jobs, {"p": 2, "q": 4}), "sia") == {"a": 0, "b": 0, "c": 0, "d": 100}


def test_quota_is_counted_without_spare_jobs(workload, starts_of):
    # b runs on q's idle GPUs; c is p's head and takes p's quota at 20 although p holds 4 GPUs of 2 until then
    jobs = [("a", "p", 0, 20, 2), ("b", "p", 1, 40, 2), ("c", "p", 2, 900, 2)]
    assert starts_of(workload(jobs, {"p": 2, "q": 2}), "sia") == {"a": 0, "b": 1, "c": 20}


def test_pending_jobs_of_a_pool_reserve_its_unused_quota(workload, starts_of):
    # q's head needs 4 of 4 GPUs while 2 run until 10: the 2 idle ones are q's, and stay idle for p's short job
    jobs = [("a", "q", 0, 10, 2), ("b", "q", 1, 1, 4), ("c", "p", 1, 900, 1), ("d", "p", 1, 2, 1)]
    assert starts_of(workload(jobs, {"p": 1, "q": 4}), "sia") == {"a": 0, "b": 10, "c": 1, "d": 11}


def test_spare_gpus_go_to_the_pool_with_the_smallest_share_of_all_that_it_holds(workload, starts_of):
    # p holds 1 dedicated and 2 spare GPUs of 2, q holds 2 of 2: the one GPU left to lend at 1 goes to q
    jobs = [
        ("a", "p", 0, 1000, 1),
        ("b", "p", 0, 900, 2),  # p's head: reserves p's idle GPU, and is too long for spare ones
        ("c", "p", 0, 30, 2),
        ("d", "p", 1, 30, 1),
        ("e", "q", 0, 1000, 2),
        ("f", "q", 1, 30, 1),
    ]
    expected = {"a": 0, "b": 1000, "c": 0, "d": 30, "e": 0, "f": 1}
    assert starts_of(workload(jobs, {"p": 2, "q": 2, "r": 3}), "sia") == expected


class Asked:
    """The oracle, with a record of what it was asked."""

    def __init__(self, workload):
        self._oracle, self.asked = Oracle(workload), []

    def advance(self, now_s):
        self._oracle.advance(now_s)

    def will_jobs_arrive(self, pool, horizon_s):
        self.asked.append((pool, horizon_s))
        return self._oracle.will_jobs_arrive(pool, horizon_s)

    def __getattr__(self, name):
        return getattr(self._oracle, name)


def test_forecasts_are_not_asked_where_they_cannot_matter(workload):
    without_queue = workload([("a", "p", 0, 5, 1), ("b", "q", 3, 5, 1)], {"p": 1, "q": 1})
    source = Asked(without_queue)
    replay(without_queue, Sia(source), source)
    assert source.asked == []
    long_queue = workload([("a", "p", 0, 800, 1), ("b", "p", 0, 800, 1)], {"p": 1, "q": 1})
    source = Asked(long_queue)
    replay(long_queue, Sia(source), source)
    assert source.asked == []
    short_queue = workload([("a", "p", 0, 30, 1), ("b", "p", 0, 30, 1)], {"p": 1, "q": 1})
    source = Asked(short_queue)
    replay(short_queue, Sia(source), source)
    assert source.asked == [("q", 3600.0)]  # p's quota is in use, and no job is short enough for the first window


def test_a_tick_asks_again_while_jobs_wait_and_gpus_idle(workload):
    jobs = [("a", "p", 0, 10, 1), ("b", "p", 0, 900, 1)]
    made = workload(jobs, {"p": 1, "q": 1})
    oracle = Oracle(made)
    plain = replay(made, make_policy("sia", oracle, {}), oracle)
    ticked = replay(made, make_policy("sia", oracle, {"tick_s": 120}), oracle)
    assert plain.end_s.tolist() == ticked.end_s.tolist()
    assert ticked.events == plain.events + 5  # at 2, 4, 6, 8 and 10 minutes
    assert plain.events == 4


@pytest.mark.parametrize(("minutes", "lane"), [(5, 0), (6, 1), (60, 1), (720, 2), (721, 3)])
def test_a_lane_is_the_bin_of_the_duration(workload, minutes, lane):
    made = workload([("a", "p", 0, minutes, 1)], {"p": 1})
    job = made.jobs[0]
    assert isinstance(job, Job)
    assert Sia(Oracle(made)).lane(job) == lane
