from hypothesis import given

from jobcast.schedulers.hived import HiveD
from jobcast.schedulers.mmfs import MaxMinFair
from jobcast.simulator.engine import replay
from tests.schedulers.events_driver import reference, starts, workloads


def hived(cluster):
    """The rule with lists alone."""
    for dedicated in (True, False):
        started = True
        while started:
            started = False
            for pool in cluster.by_share():
                unused = cluster.quotas[pool] - cluster.held(pool, dedicated_only=True)
                for job in cluster.queue(pool)[:1]:
                    if job.gpus <= cluster.idle() and (job.gpus <= unused or not dedicated):
                        cluster.start(job, dedicated)
                        started = True
                if started:
                    break


@given(workloads(max_jobs=20))
def test_hived(workload):
    assert starts(workload, lambda _: HiveD()) == reference(workload, hived)


JOBS = [
    ("a", "p", 0, 10, 2),
    ("b", "p", 1, 10, 2),  # on q's GPUs
    ("c", "q", 2, 3, 4),  # would find q's quota whole if b could be preempted
    ("d", "p", 3, 5, 2),
]


def test_lent_gpus_are_not_taken_back(workload):
    made = workload(JOBS, {"p": 2, "q": 4})
    log = replay(made, HiveD())
    # 2 GPUs idle at 3, and p's head takes them though q, whose own they are, waits for 4, until a's come free at 10
    assert (log.start_s / 60).tolist() == [0, 1, 10, 3]
    assert log.dedicated.tolist() == [True, False, True, False]


def test_a_job_within_its_quota_goes_before_one_of_a_smaller_share(workload):
    # p holds 3 of 6, q 3 of 4. p1 is wider than the rest of p's quota, q1 is not; after q1 p1 does not fit any more.
    jobs = [("w", "p", 0, 9, 3), ("y", "q", 0, 90, 3), ("p1", "p", 1, 5, 4), ("q1", "q", 1, 5, 1)]
    made = workload(jobs, {"p": 6, "q": 4})

    def by_id(policy):
        return {job.job_id: at / 60 for job, at in zip(made.jobs, starts(made, lambda _: policy), strict=True)}

    assert by_id(HiveD()) == {"w": 0, "y": 0, "q1": 1, "p1": 6}
    assert by_id(MaxMinFair()) == {"w": 0, "y": 0, "p1": 1, "q1": 6}


def test_without_quotas_that_bind_it_is_max_min_fair(workload):
    made = workload([(name, "p", 0, 2, 1) for name in "abcd"], {"p": 4})
    assert starts(made, lambda _: HiveD()) == starts(made, lambda _: MaxMinFair()) == [0.0] * 4
