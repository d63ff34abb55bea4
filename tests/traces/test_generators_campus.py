"""The campus generator: every parameter is measured in the trace that it makes."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.campus_measures import (
    base_rate,
    bot_gaps_s,
    burst_frame,
    closed_loop_lift,
    fcfs_waits_s,
    figures,
    job_frame,
    loads,
)
from jobcast.domain.errors import ConfigError
from jobcast.traces.generators import generate
from jobcast.traces.generators.campus import parse_campus, zone_of
from jobcast.traces.generators.campus_config import CHARACTERS, CampusConfig
from jobcast.traces.generators.settings import known_settings
from jobcast.traces.generators.sia import SiaConfig

DAY_S = 86400.0
HOUR_S = 3600.0
SMALL = {"weeks": 2, "jobs": 4000, "pools": 6}
ALWAYS_AT_WORK = {"office_hours": 24, "office_jitter_h": 0, "attendance": 1, "weekend_attendance": 1}
UNCENSORED = {**ALWAYS_AT_WORK, "wait_all_share": 1, "patience_h": 1000}  # no think time is cut by a session's end
DOCS = Path(__file__).resolve().parents[2] / "docs" / "generators.md"


def measured(seed=0, **settings):
    chosen = {**SMALL, **settings}
    return figures(*generate("campus", seed, chosen), parse_campus(chosen))


def jobs_of(seed=0, **settings):
    return job_frame(generate("campus", seed, {**SMALL, **settings})[0])


@pytest.fixture(scope="module")
def full():
    return generate("campus", 0, {})


@pytest.fixture(scope="module")
def full_jobs(full):
    return job_frame(full[0])


MEASURED = [
    ({"burst_mean": 3}, "burst_mean", 3, 0.15),
    ({"burst_mean": 12}, "burst_mean", 12, 0.25),
    ({"launch_gap_s": 1}, "launch_gap_s", 1, 0.05),
    ({"launch_gap_s": 8}, "launch_gap_s", 8, 0.05),
    ({"bursts_per_tag": 1}, "bursts_per_tag", 1, 0.001),
    ({"bursts_per_tag": 6}, "bursts_per_tag", 6, 0.25),
    ({"think_median_min": 5, **UNCENSORED}, "think_median_min", 5, 0.15),
    ({"think_median_min": 60, **UNCENSORED}, "think_median_min", 60, 0.2),
    ({"think_sigma": 0.3, **UNCENSORED}, "think_sigma", 0.3, 0.1),
    ({"think_sigma": 1.2, **UNCENSORED}, "think_sigma", 1.2, 0.1),
    ({"duration_median_min": 10}, "duration_median_min", 10, 0.4),
    ({"duration_median_min": 90}, "duration_median_min", 90, 0.4),
    ({"duration_sigma": 0.5}, "duration_sigma", 0.5, 0.15),
    ({"duration_sigma": 1.2}, "duration_sigma", 1.2, 0.15),
    ({"tag_correlation": 0.9}, "tag_correlation", 0.9, 0.05),
    ({"tag_correlation": 0.3}, "tag_correlation", 0.3, 0.2),
    ({"failure_share": 0.35}, "failure_share", 0.35, 0.07),
    ({"odd_width_share": 0.3}, "odd_width_share", 0.3, 0.15),
    ({"bot_share": 0.3, "bot_period_min": 5}, "bot_share", 0.3, 0.15),
    ({"bot_period_min": 30}, "bot_period_min", 30, 0.01),
    ({"bot_skip_share": 0.3, "bot_period_min": 30}, "bot_skip_share", 0.3, 0.2),
    ({"load_low": 0.7, "load_high": 0.72, "jobs": 20_000}, "load_min", 0.7, 0.12),
    ({"load_low": 0.7, "load_high": 0.72, "jobs": 20_000}, "load_max", 0.7, 0.12),
]


@pytest.mark.parametrize(("settings", "figure", "expected", "within"), MEASURED)
def test_a_parameter_is_seen_in_the_trace(settings, figure, expected, within):
    assert measured(**settings)[figure] == pytest.approx(expected, rel=within)


@pytest.mark.parametrize(("weeks", "jobs", "pools"), [(1, 800, 3), (2, 4000, 6), (1, 5000, 13), (3, 2000, 1)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weeks_jobs_and_pools_are_met(weeks, jobs, pools, seed):
    trace, made = generate("campus", seed, {"weeks": weeks, "jobs": jobs, "pools": pools, "start": "2023-05-01"})
    assert len(trace) == pytest.approx(jobs, rel=0.1)
    assert len(made) == pools
    assert trace.pools == [pool.name for pool in made] == sorted(pool.name for pool in made)
    start_s = 1682899200  # 2023-05-01T00:00:00Z, a Monday
    assert start_s <= trace.submit_s.min() < start_s + DAY_S
    assert start_s + (7 * weeks - 3) * DAY_S < trace.submit_s.max() < start_s + 7 * weeks * DAY_S


def test_later_pools_of_a_character_are_smaller():
    counts = dict(jobs_of(pools=12, jobs=6000, pool_ratio=0.4)["pool"].value_counts().iter_rows())
    for character in CHARACTERS:
        assert counts[f"{character.name}-2"] == pytest.approx(0.4 * counts[f"{character.name}-1"], rel=0.15)


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


def test_office_jitter_spreads_the_day():
    shares = [measured(office_jitter_h=jitter)["office_hours_job_share"] for jitter in (0, 0.75, 2.5)]
    assert shares[0] > 0.995
    assert shares[0] > shares[1] > shares[2]


def test_attendance_is_the_share_of_days_at_work():
    def days_at_work(attendance):
        own = jobs_of(attendance=attendance, wait_all_share=0, patience_h=0.5, weekend_attendance=0).filter(
            ~pl.col("bot")
        )
        days = own.with_columns(day=pl.col("submit_time").dt.date()).group_by("user").agg(pl.col("day").n_unique())
        return days["day"].quantile(0.75) / 10

    assert days_at_work(0.4) == pytest.approx(0.4, abs=0.2)
    assert days_at_work(1.0) == pytest.approx(1.0, abs=0.15)


def test_weekends():
    assert measured(weekend_attendance=0)["weekend_job_share"] == 0
    assert measured(weekend_attendance=0.85, jobs=8000)["weekend_job_share"] == pytest.approx(2 / 7, abs=0.06)
    assert 0 < measured(jobs=8000)["weekend_job_share"] < 0.1


def test_users_who_wait_for_all_launch_after_the_last_completion():
    bursts = burst_frame(jobs_of(wait_all_share=1, patience_h=1000)).drop_nulls("next_s")
    assert len(bursts) > 100
    assert (bursts["next_s"] >= bursts["all_s"]).all()


def test_users_who_do_not_wait_launch_after_a_third():
    bursts = burst_frame(jobs_of(wait_all_share=0, patience_h=1000)).drop_nulls("next_s").filter(pl.col("size") >= 3)
    assert (bursts["next_s"] >= bursts["third_s"]).all()
    assert (bursts["next_s"] < bursts["all_s"]).mean() > 0.3


def test_patience_ends():
    settings = {"duration_median_min": 1200, "wait_all_share": 1, "think_median_min": 1, "think_sigma": 0.1}
    bursts = burst_frame(jobs_of(patience_h=3, **settings, **ALWAYS_AT_WORK)).drop_nulls("next_s")
    waited_h = ((bursts["next_s"] - bursts["last_s"]) / HOUR_S).to_numpy()
    assert waited_h.max() < 3 + 2 / 60
    assert np.median(waited_h) > 3


def test_longest_and_crashes():
    jobs = jobs_of(longest_h=2, crash_longest_s=30, duration_median_min=60)
    crashed, whole = (jobs.filter(pl.col("state") == state)["duration"] for state in ("failed", "completed"))
    assert 29 < crashed.max() <= 30
    assert whole.max() == 2 * HOUR_S
    assert jobs_of(failure_share=0)["state"].unique().to_list() == ["completed"]


def test_widths_stay_within_widest():
    assert jobs_of(widest=4, jobs=30_000)["gpus"].max() == 4
    assert jobs_of(widest=40, jobs=30_000)["gpus"].max() == 32


def test_widest_quota_share_bounds_the_widest_job():
    for share, most in ((0.1, 0.2), (0.5, 1.0)):
        trace, pools = generate("campus", 0, {**SMALL, "jobs": 12_000, "widest_quota_share": share})
        widest = dict(trace.jobs.group_by("pool").agg(pl.col("gpus").max()).iter_rows())
        shares = [widest[pool.name] / pool.quota for pool in pools if widest[pool.name] > 1]
        assert shares
        assert max(shares) <= most


def test_a_tag_keeps_its_width():
    assert measured(width_change_share=0, odd_width_share=0)["off_tag_width_share"] == 0
    few, many = (measured(width_change_share=share)["off_tag_width_share"] for share in (0.1, 0.6))
    assert 0.01 < few < 0.1 < many


def test_bot_jitter_is_the_timers_delay():
    for jitter_s in (2, 60):
        gaps_s = bot_gaps_s(jobs_of(bot_jitter_s=jitter_s, bot_skip_share=0))
        nightly = np.concatenate([gaps for user, gaps in gaps_s.items() if user.startswith("nightly")])
        timed = np.concatenate([gaps for user, gaps in gaps_s.items() if user.startswith("production")])
        assert np.std(timed) == pytest.approx(jitter_s * np.sqrt(2), rel=0.15)  # difference of two exponentials
        assert np.abs(nightly / DAY_S - 1).max() < 0.02


def test_equal_seeds_give_equal_bytes():
    first, again, other = (generate("campus", seed, SMALL) for seed in (3, 3, 4))
    assert first[0].jobs.write_csv() == again[0].jobs.write_csv()
    assert first[1] == again[1]
    assert first[0].source.sha256 != other[0].source.sha256


def test_text_and_numbers_are_the_same_settings():
    text = {name: str(value) for name, value in SMALL.items()}
    assert generate("campus", 0, text)[0].source == generate("campus", 0, SMALL)[0].source


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


def test_default_runtimes_are_heavy_tailed(full):
    for pool in full[0].pools:
        duration_s = full[0].jobs.filter(pl.col("pool") == pool)["duration"]
        assert duration_s.quantile(0.99) / duration_s.median() > 10  # SIA, section 2, figure 3c


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


def test_new_bursts_follow_completions(full_jobs):
    for pool in full_jobs["pool"].unique():
        assert closed_loop_lift(full_jobs, pool) > 1.5


def test_the_loop_is_looser_when_users_think_for_longer():
    lifts = [measured(think_median_min=minutes)["closed_loop_lift_median"] for minutes in (3, 90)]
    assert lifts[0] > 4 > 1.5 * lifts[1]


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


def test_bots_that_a_pool_is_too_small_for_are_left_out():
    assert not jobs_of(bot_share=0)["bot"].any()
    assert not jobs_of(weeks=1, jobs=12, pools=12)["bot"].any()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"students": 1}, "campus: there is no setting 'students'; known settings are weeks, pools, jobs"),
        ({"weeks": "some"}, "weeks must be a whole number, got 'some'"),
        ({"start": "2024-01-02"}, "start must be midnight UTC of a Monday"),
        ({"jobs": 5}, "jobs must be at least one a pool, got 5 for 12 pools"),
        ({"attendance": 1.5}, r"attendance must lie in \[0.01, 1\], got 1.5"),
        ({"load_low": 0.9}, "load_low must not exceed load_high"),
        ({"zones": "1,far"}, "zones must be a list between commas, in which each item must be a number"),
        ({"weeks": 1, "office_hours": 0.5, "think_median_min": 10_000, "think_sigma": 0}, "hardly launch"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(settings, said):
    with pytest.raises(ConfigError, match=said) as caught:
        generate("campus", 0, settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "config_type"), [("sia", SiaConfig), ("campus", CampusConfig)])
def test_the_documentation_names_every_setting_and_its_default(kind, config_type):
    text = DOCS.read_text(encoding="utf-8").split(f"\n## {kind}\n")[1].split("\n## ")[0]
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    for name, (default, meaning) in known_settings(config_type).items():
        assert meaning.split(";")[0].split(":")[0] in rows[f"`{name}`"], name
        if isinstance(default, int | float):
            shown = str(default) if isinstance(default, int) else f"{default:.4g}"
            assert f"| {shown} |" in rows[f"`{name}`"].replace(",", ""), name


def test_every_parameter_is_set_by_some_test():
    source = Path(__file__).read_text(encoding="utf-8")
    for field in fields(CampusConfig):
        assert f'"{field.name}"' in source or f"{field.name}=" in source, field.name
