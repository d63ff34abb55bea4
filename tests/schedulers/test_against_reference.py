"""Each policy against the same rule written as plainly as can be, on random small clusters.

The reference knows lists and loops alone: no queue, no view, no draft, no laziness. It follows SIA, section 4.1 and
Figures 7 and 8, line by line.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle, Random
from tests.schedulers.events_driver import in_minutes, reference

HORIZONS_MIN = (5, 10, 20)


def fcfs(cluster):
    for pool, quota in cluster.quotas.items():
        for job in cluster.queue(pool):
            if cluster.held(pool) + job.gpus > quota:
                break
            cluster.start(job)


def ssf(source, backfill):
    return in_own_pool(lambda job: job.gpus * source.duration_s(job), backfill)


def sjf(source, backfill):
    return in_own_pool(source.duration_s, backfill)


def in_own_pool(key, backfill):
    def rule(cluster):
        for pool, quota in cluster.quotas.items():
            for job in sorted(cluster.queue(pool), key=key):
                if cluster.held(pool) + job.gpus <= quota:
                    cluster.start(job)
                elif not backfill:
                    break

    return rule


def gssf(source, backfill):
    def rule(cluster):
        for job in sorted(cluster.pending, key=lambda job: (job.gpus * source.duration_s(job), job.seq)):
            if job.gpus <= cluster.idle():
                cluster.start(job)
            elif not backfill:
                break

    return rule


def mmfs(strict):
    def rule(cluster):
        started = True
        while started:
            started = False
            for pool in cluster.by_share():
                queue = cluster.queue(pool)
                if queue and queue[0].gpus <= cluster.idle():
                    cluster.start(queue[0])
                    started = True
                    break
                if queue and strict:
                    break

    return rule


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


def sia(source):
    def allocate_dedicated(cluster):
        next_job = True
        while next_job:
            next_job = None
            for pool in cluster.by_share():
                unused = cluster.quotas[pool] - cluster.held(pool, dedicated_only=True)
                head = cluster.queue(pool)[:1]
                if head and head[0].gpus <= unused and head[0].gpus <= cluster.idle():
                    next_job = head[0]
                    cluster.start(next_job, dedicated=True)
                    break

    def reserve(cluster, pool, horizon_s):
        pending_load = sum(job.gpus for job in cluster.queue(pool))
        future_load = source.new_load(pool, horizon_s) if source.will_jobs_arrive(pool, horizon_s) else 0
        return min(pending_load + future_load, cluster.quotas[pool] - cluster.held(pool, dedicated_only=True))

    def allocate_spare(cluster):
        for window, horizon_min in enumerate(HORIZONS_MIN):
            next_job = True
            while next_job:
                next_job = None
                reserved = sum(reserve(cluster, pool, 60.0 * horizon_min) for pool in cluster.quotas)
                usable = cluster.idle() - reserved
                for pool in cluster.by_share():
                    short = [job for job in cluster.queue(pool) if source.duration_bin(job) <= window]
                    fitting = [job for job in short if job.gpus <= usable]
                    if fitting:
                        next_job = fitting[0]
                        cluster.start(next_job, dedicated=False)
                        break

    def rule(cluster):
        allocate_dedicated(cluster)
        allocate_spare(cluster)

    return rule


def starts(workload, policy, source=None):
    return replay(workload, policy, source).start_s.tolist()


@given(in_minutes(14, (60.0, 60.25)))
def test_fcfs(workload):
    assert starts(workload, make_policy("fcfs", None, {})) == reference(workload, fcfs)


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize(("name", "rule"), [("ssf", ssf), ("gssf", gssf), ("sjf", sjf)])
def test_shortest_service_first(name, rule, backfill):
    @given(in_minutes(14, (60.0, 60.25)), st.booleans())
    def check(workload, drawn):
        source = Random(workload, 1) if drawn else Oracle(workload)
        policy = make_policy(name, source, {"backfill": backfill})
        assert starts(workload, policy, source) == reference(workload, rule(source, backfill), source)

    check()


@pytest.mark.parametrize("strict", [False, True])
def test_mmfs(strict):
    @given(in_minutes(14, (60.0, 60.25)))
    def check(workload):
        assert starts(workload, make_policy("mmfs", None, {"strict": strict})) == reference(workload, mmfs(strict))

    check()


SOURCES = {
    "oracle": lambda workload: Oracle(workload, HORIZONS_MIN),
    "conservative": lambda workload: Conservative(workload, HORIZONS_MIN),
    "random": lambda workload: Random(workload, 7, horizons_min=HORIZONS_MIN),
    "noisy": lambda workload: Noisy(workload, 0.3, 7, horizons_min=HORIZONS_MIN),
}


@given(in_minutes(20))
def test_hived(workload):
    assert starts(workload, make_policy("hived", None, {})) == reference(workload, hived)


@pytest.mark.parametrize("kind", SOURCES)
def test_sia(kind):
    @given(in_minutes(14, (60.0, 60.25)))
    def check(workload):
        lazy, plain = SOURCES[kind](workload), SOURCES[kind](workload)
        assert starts(workload, Sia(lazy), lazy) == reference(workload, sia(plain), plain)

    check()
