import pytest
from hypothesis import given

from jobcast.schedulers.ssf import ShortestJobFirst
from jobcast.simulator.forecast_sources import Conservative, Oracle
from tests.schedulers.events_driver import reference, starts, workloads


def shortest_first(durations_s, backfill):
    """The rule with lists alone."""

    def rule(cluster):
        for pool, quota in cluster.quotas.items():
            for job in sorted(cluster.queue(pool), key=lambda job: durations_s[job.seq]):
                if cluster.held(pool) + job.gpus <= quota:
                    cluster.start(job)
                elif not backfill:
                    break

    return rule


@pytest.mark.parametrize("backfill", [False, True])
def test_sjf(backfill):
    @given(workloads())
    def check(workload):
        rule = shortest_first([outcome.duration_s for outcome in workload.outcomes], backfill)
        assert starts(workload, lambda source: ShortestJobFirst(source, backfill)) == reference(workload, rule)

    check()


def run_by_id(made, policy, source):
    return {job.job_id: at / 60 for job, at in zip(made.jobs, starts(made, policy, source), strict=True)}


def test_durations_count_and_widths_do_not(workload):
    jobs = [("a", "p", 0, 10, 3), ("b", "p", 1, 4, 3), ("c", "p", 2, 9, 1), ("d", "p", 3, 3, 3)]
    made = workload(jobs, {"p": 3})  # services 12, 9 and 9 would start c first
    assert run_by_id(made, ShortestJobFirst, Oracle(made)) == {"a": 0, "d": 10, "b": 13, "c": 17}


def test_it_ranks_by_what_the_source_says(workload):
    jobs = [("a", "p", 0, 10, 3), ("b", "p", 1, 4, 3), ("c", "p", 2, 3, 1)]
    made = workload(jobs, {"p": 3})  # a source to which all jobs are alike: by submission
    assert run_by_id(made, ShortestJobFirst, Conservative(made)) == {"a": 0, "b": 10, "c": 14}
