from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.forecast_sources import Oracle, UpcomingLoads
from jobcast.simulator.workload import Workload

INSTANTS = st.lists(st.integers(-5, 60).map(lambda quarter: quarter / 4), min_size=1, max_size=12)
ROWS = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 50), st.integers(1, 4)), max_size=15)


def jobs_of(rows):
    ordered = sorted(rows, key=lambda row: row[1])
    return [Job(seq, f"{seq:02}", pool, at / 4, gpus) for seq, (pool, at, gpus) in enumerate(ordered)]


def plain(jobs, now_s, window_s):
    loads = {}
    for job in jobs:
        if now_s < job.submit_s <= now_s + window_s:
            loads[job.pool] = loads.get(job.pool, 0) + job.gpus
    return loads


@given(ROWS, INSTANTS, st.sampled_from([0.25, 1.0, 5.0, 100.0]))
def test_loads_at_any_instants_in_any_order(rows, instants, window_s):
    jobs = jobs_of(rows)
    loads = UpcomingLoads(jobs, window_s)
    for now_s in instants:
        assert loads.at(now_s) == plain(jobs, now_s, window_s)


@given(ROWS, INSTANTS)
def test_the_oracle_answers_by_them_for_several_horizons_at_once(rows, instants):
    jobs = jobs_of(rows)
    oracle = Oracle(Workload(jobs, [Outcome(1.0)] * len(jobs), [Pool(name, 4) for name in "pqr"]))
    for now_s in instants:
        oracle.advance(now_s)
        for horizon_s in (1.0, 5.0):
            expected = plain(jobs, now_s, horizon_s)
            for pool in ("p", "q", "r", "elsewhere"):
                assert oracle.new_load(pool, horizon_s) == expected.get(pool, 0)
                assert oracle.will_jobs_arrive(pool, horizon_s) is (pool in expected)
