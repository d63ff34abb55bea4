import pytest

from jobcast.domain.jobs import Job
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import Sia
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.forecast_sources import Oracle

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


def test_no_more_pools_are_asked_once_nobody_fits(workload):
    """b needs both idle GPUs: that q, or r, will want its own is enough, for either window."""
    rows = [("a", "p", 0, 30, 2), ("b", "p", 0, 30, 2), ("c", "q", 10, 1, 1), ("d", "r", 10, 1, 1)]
    made = workload(rows, {"p": 2, "q": 1, "r": 1})
    source = Asked(made)
    Simulation(made, Sia(source), source).run(60.0)
    assert [horizon_s for _, horizon_s in source.asked] == [3600.0, 43200.0]


def test_a_tick_asks_again_while_jobs_wait_and_gpus_idle(workload):
    jobs = [("a", "p", 0, 10, 1), ("b", "p", 0, 900, 1)]
    made = workload(jobs, {"p": 1, "q": 1})
    oracle = Oracle(made)
    plain = replay(made, make_policy("sia", oracle, {}), oracle)
    ticked = replay(made, make_policy("sia", oracle, {"tick_s": 120}), oracle)
    assert plain.end_s.tolist() == ticked.end_s.tolist()
    assert ticked.events == plain.events + 5  # at 2, 4, 6, 8 and 10 minutes
    assert plain.events == 4


def test_no_tick_asks_while_no_gpu_idles(workload):
    made = workload([("a", "p", 0, 10, 1), ("b", "p", 0, 900, 1)], {"p": 1})
    oracle = Oracle(made)
    assert replay(made, Sia(oracle, tick_s=120.0), oracle).events == replay(made, Sia(oracle), oracle).events == 4


@pytest.mark.parametrize(("minutes", "lane"), [(5, 0), (6, 1), (60, 1), (720, 2), (721, 3)])
def test_a_lane_is_the_bin_of_the_duration(workload, minutes, lane):
    made = workload([("a", "p", 0, minutes, 1)], {"p": 1})
    job = made.jobs[0]
    assert isinstance(job, Job)
    assert Sia(Oracle(made)).lane(job) == lane
