"""The campus generator: every parameter is measured in the trace that it makes."""

import numpy as np
import polars as pl
import pytest

from benchmarks.campus_measures import (
    base_rate,
    burst_frame,
    closed_loop_lift,
    fcfs_waits_s,
    figures,
    job_frame,
    loads,
)
from jobcast.traces.generators import GENERATORS, generate
from jobcast.traces.generators.campus import zone_of
from jobcast.traces.generators.campus_config import CampusConfig

DAY_S = 86400.0
SMALL = {"weeks": 2, "jobs": 4000, "pools": 6}
ALWAYS_AT_WORK = {"office_hours": 24, "office_jitter_h": 0, "attendance": 1, "weekend_attendance": 1}
UNCENSORED = {**ALWAYS_AT_WORK, "wait_all_share": 1, "patience_h": 1000}  # no think time is cut by a session's end


def measured(seed=0, **settings):
    chosen = {**SMALL, **settings}
    return figures(*generate("campus", seed, chosen), GENERATORS["campus"].parse(chosen))


def jobs_of(seed=0, **settings):
    return job_frame(generate("campus", seed, {**SMALL, **settings})[0])


@pytest.fixture(scope="module")
def full():
    return generate("campus", 0, {})


@pytest.fixture(scope="module")
def full_jobs(full):
    return job_frame(full[0])


MEASURED = [
    ({"burst_mean": 12}, "burst_mean", 12, 0.25),
    ({"launch_gap_s": 8}, "launch_gap_s", 8, 0.05),
    ({"bursts_per_tag": 6}, "bursts_per_tag", 6, 0.25),
    ({"think_median_min": 60, **UNCENSORED}, "think_median_min", 60, 0.2),
    ({"think_sigma": 1.2, **UNCENSORED}, "think_sigma", 1.2, 0.1),
    ({"duration_median_min": 10}, "duration_median_min", 10, 0.4),
    ({"duration_sigma": 1.2}, "duration_sigma", 1.2, 0.15),
    ({"tag_correlation": 0.9}, "tag_correlation", 0.9, 0.05),
    ({"failure_share": 0.35}, "failure_share", 0.35, 0.07),
    ({"odd_width_share": 0.3}, "odd_width_share", 0.3, 0.15),
    ({"bot_share": 0.3, "bot_period_min": 5}, "bot_share", 0.3, 0.15),
    ({"bot_period_min": 30}, "bot_period_min", 30, 0.01),
    ({"bot_skip_share": 0.3, "bot_period_min": 30}, "bot_skip_share", 0.3, 0.2),
]


@pytest.mark.parametrize(("settings", "figure", "expected", "within"), MEASURED)
def test_a_parameter_is_seen_in_the_trace(settings, figure, expected, within):
    assert measured(**settings)[figure] == pytest.approx(expected, rel=within)


def test_loads_lie_between_their_bounds():
    seen = measured(load_low=0.7, load_high=0.72, jobs=20_000)
    assert (seen["load_min"], seen["load_max"]) == pytest.approx((0.7, 0.7), rel=0.12)


@pytest.mark.parametrize(("weeks", "jobs", "pools"), [(1, 800, 3), (2, 4000, 6), (1, 5000, 13), (3, 2000, 1)])
@pytest.mark.parametrize("seed", [0, 1])
def test_weeks_jobs_and_pools_are_met(weeks, jobs, pools, seed):
    trace, made = generate("campus", seed, {"weeks": weeks, "jobs": jobs, "pools": pools, "start": "2023-05-01"})
    assert len(trace) == pytest.approx(jobs, rel=0.1)
    assert len(made) == pools
    assert trace.pools == [pool.name for pool in made] == sorted(pool.name for pool in made)
    start_s = 1682899200  # 2023-05-01T00:00:00Z, a Monday
    assert start_s <= trace.submit_s.min() < start_s + DAY_S
    assert start_s + (7 * weeks - 3) * DAY_S < trace.submit_s.max() < start_s + 7 * weeks * DAY_S


def test_zones_and_home_share():
    homes = jobs_of(zones="-5,3.5", home_share=1)
    assert set(map(zone_of, homes["user"].unique())) == {-5, 3.5}
    assert homes.select("pool", pl.col("user").map_elements(zone_of, return_dtype=float)).n_unique() == 6
    spread = jobs_of(zones="-5,3.5", home_share=0, jobs=10_000)
    at_west = np.mean([zone_of(user) == -5 for user in spread.filter(~pl.col("bot"))["user"].unique()])
    assert 0.3 < at_west < 0.7


def test_office_hours_are_the_users_own():
    jobs = jobs_of(office_start_h=6, office_hours=5, office_jitter_h=0, zones="-8,1,8", home_share=0.5)
    hours = jobs.filter(~pl.col("bot"))["local_hour"]
    assert hours.min() >= 6
    assert hours.max() < 11.1  # a burst may be launched at the last moment
    assert hours.quantile(0.9) > 9.5


def test_users_who_do_not_wait_launch_after_a_third():
    bursts = burst_frame(jobs_of(wait_all_share=0, patience_h=1000)).drop_nulls("next_s").filter(pl.col("size") >= 3)
    assert (bursts["next_s"] >= bursts["third_s"]).all()
    assert (bursts["next_s"] < bursts["all_s"]).mean() > 0.3


@pytest.mark.slow
def test_the_default_trace(full, full_jobs):
    seen = figures(*full, CampusConfig())
    assert seen["jobs"] == pytest.approx(60_000, rel=0.01)
    assert len(full[1]) == 12
    assert 0.59 < seen["load_min"] < seen["load_max"] <= 0.85
    assert seen["think_median_min"] == pytest.approx(20, rel=0.15)
    assert seen["tag_correlation"] == pytest.approx(0.6, abs=0.05)
    assert seen["bot_period_min"] == pytest.approx(10, abs=0.1)
    widths = full_jobs["gpus"].value_counts().sort("gpus")
    assert set(widths["gpus"]) >= {1, 2, 4, 8, 16, 32, 64}
    assert widths["gpus"].max() == 64


@pytest.mark.slow
def test_default_base_rates_range_from_rare_to_every_other_window(full):
    start_s, trace = CampusConfig().start.timestamp(), full[0]
    names, until_s = trace.jobs["pool"].to_numpy(), start_s + CampusConfig().span_s
    rates = {
        k: [base_rate(trace.submit_s[names == pool], start_s, until_s, 60.0 * k) for pool in trace.pools]
        for k in (5, 720)
    }
    assert 0.01 < min(rates[5]) < 0.05
    assert 0.4 < max(rates[5]) < 0.55
    assert sum(rate < 0.95 for rate in rates[720]) >= 8  # nights and weekends are idle in most pools


@pytest.mark.slow
def test_new_bursts_follow_completions(full_jobs):
    for pool in full_jobs["pool"].unique():
        assert closed_loop_lift(full_jobs, pool) > 1.5


@pytest.mark.slow
def test_quotas_bind_in_most_pools_and_leave_gpus_idle(full):
    trace, pools = full
    names = trace.jobs["pool"].to_numpy()
    waiting = []
    for pool in pools:
        own = names == pool.name
        waited_s = fcfs_waits_s(trace.submit_s[own], trace.duration_s[own], trace.gpus[own], pool.quota)
        waiting.append(np.mean(waited_s > 300))
    assert np.median(waiting) > 0.5
    assert max(loads(trace, pools, CampusConfig().span_s).values()) < 0.9
