"""What SIA's figures replay."""

from math import ceil
from pathlib import Path

from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.readers import read_trace
from papers.sia.bench import THREE_WEEKS, TWO_WEEKS, PoolDraw, PoolWork, Synthetic, WholePhilly, pool_work

NOWHERE = Path("nowhere")


def quotas(scenario):
    return {pool.name: pool.quota for pool in scenario.workload.pools}


def test_submissions_and_durations_are_rounded_up_to_the_grid():
    raw = Synthetic(days=0.5).scenario(1, NOWHERE).workload
    on_grid = Synthetic(grid_s=600.0, days=0.5).scenario(1, NOWHERE).workload
    outcome = {job.job_id: (job, one.duration_s) for job, one in zip(on_grid.jobs, on_grid.outcomes, strict=True)}
    assert len(outcome) == len(raw.jobs) > 20
    for job, one in zip(raw.jobs, raw.outcomes, strict=True):
        rounded, duration_s = outcome[job.job_id]
        assert rounded.submit_s == 600.0 * ceil(job.submit_s / 600.0)
        assert duration_s == 600.0 * ceil(one.duration_s / 600.0)
        assert (rounded.gpus, rounded.pool) == (job.gpus, job.pool)
    assert any(job.submit_s % 600.0 for job in raw.jobs)


def test_synthetic_draws_differ_by_seed_alone():
    first, again, other = (Synthetic("less_queues", days=0.3).scenario(seed, NOWHERE).workload for seed in (3, 3, 4))
    assert first == again
    assert first.jobs != other.jobs
    assert len(first.pools) == 2


def test_work_of_pools_by_hand(philly):
    trace = read_trace(philly / "philly" / "philly_jobs.csv", format="philly")
    work = pool_work(trace, *map(parse_time, TWO_WEEKS))
    assert list(work.values()) == [PoolWork("a", 2.0, 1), PoolWork("b", 10.0, 2), PoolWork("c", 1.0, 8)]
    assert list(pool_work(trace, *map(parse_time, THREE_WEEKS))) == ["a", "b", "c", "few"]  # 100 jobs by then


def test_a_pool_at_a_load_by_hand():
    work = PoolWork("a", 9.0, 4)
    assert work.pool(0.8).quota == 12  # 11.25
    assert work.pool(1.1).quota == 9  # 8.18
    assert work.pool(0.8, 0.9).quota == 11  # 10.8
    assert PoolWork("a", 8.0, 1).pool(0.8, 1.1).quota == 11  # 1.1 x 10, where floats give 11.000000000000002
    assert work.pool(0.8, 0.1).quota == 4  # its widest job
    assert work.idle_gpus == 3.0


def test_a_draw_of_pools_by_hand(philly):
    seen = set()
    for seed in range(12):
        scenario = PoolDraw(2).scenario(seed, philly)
        found = quotas(scenario)
        assert len(found) == 2
        assert all({"a": 2 <= q <= 4, "b": 10 <= q <= 17, "c": q == 8}[name] for name, q in found.items())
        assert len(scenario.workload.jobs) == 200
        assert scenario.dropped["of pools without capacity"] == 199
        seen.add(tuple(found.items()))
    assert {name for one in seen for name, _ in one} == {"a", "b", "c"}
    assert len(seen) > 4
    assert scenario.from_s == parse_time("2017-11-06")
    assert len(scenario.earlier) == 5
    assert {outcome.duration_s for outcome in scenario.workload.outcomes} <= {24192.0, 60480.0, 12096.0, 1512.0}


def test_with_locality_jobs_fit_cells_of_their_pools(philly):
    # section 6.4: servers of eight; jobs of 1, 2, 4 GPUs or whole servers
    for seed in range(8):
        scenario = PoolDraw(3, locality=True).scenario(seed, philly)
        found = quotas(scenario)
        assert found["a"] in (2, 4)
        assert found["b"] in (16, 24)
        assert found["c"] == 8
        assert scenario.workload.servers == (8,) * ceil(sum(found.values()) / 8)
        assert scenario.facts.cells["b"] == (8,) * (found["b"] // 8)
    weeks = ("2017-10-02", "2017-11-20")
    loose, tight = (PoolDraw(3, locality, weeks).scenario(0, philly) for locality in (False, True))
    assert {job.gpus for job in loose.workload.jobs} == {1, 2, 3, 8}
    assert {job.gpus for job in tight.workload.jobs} == {1, 2, 8}


def test_all_pools_by_hand(philly):
    # GPUs in the mean over three weeks: a 4/3, b 20/3, c 2/3; at load 0.8: 1.67, 8.33, 0.83 and c's widest job 8
    assert quotas(WholePhilly().scenario(0, philly)) == {"a": 2, "b": 9, "c": 8, "few": 1}
    assert quotas(WholePhilly(0.8).scenario(0, philly)) == {"a": 2, "b": 8, "c": 8, "few": 1}
    assert quotas(WholePhilly(1.1).scenario(0, philly)) == {"a": 3, "b": 10, "c": 8, "few": 2}
    assert len(WholePhilly().scenario(0, philly).workload.jobs) == 400
    assert WholePhilly().scenario(0, philly).workload == WholePhilly().scenario(1, philly).workload


def test_donors_are_those_with_most_idle_gpus(philly):
    # idle: c 8 - 0.67, b 9 - 6.67, few 1 - 0.2, a 2 - 1.33
    assert quotas(WholePhilly(without_donors=1).scenario(0, philly)) == {"a": 2, "b": 9, "few": 1}
    assert quotas(WholePhilly(without_donors=2).scenario(0, philly)) == {"a": 2, "few": 1}
    assert quotas(WholePhilly(without_donors=3).scenario(0, philly)) == {"a": 2}
