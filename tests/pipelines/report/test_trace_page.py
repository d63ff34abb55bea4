"""The page and the table that describe a trace."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from jobcast.domain.jobs import Pool
from jobcast.pipelines.report.formatting import times_in
from jobcast.pipelines.report.trace_page import (
    clockwork_pools,
    description_table,
    finding,
    render_description,
    write_description,
)
from jobcast.pipelines.report.trace_plots import trace_plots
from jobcast.traces.describe import describe
from jobcast.traces.table import Trace
from tests.scenarios import frame_of

DAY_S = 86400.0


def made_trace(jobs: int = 400, name: str = "made & up") -> Trace:
    rng = np.random.default_rng(7)
    pool, submit_s = rng.choice(["a", "<i>b</i>", "c"], jobs), np.sort(rng.uniform(1.5e9, 1.5e9 + 9 * DAY_S, jobs))
    frame = frame_of(submit_s, pool=pool, duration=rng.lognormal(7, 2, jobs), gpus=rng.choice([1, 2, 4, 8], jobs))
    return Trace.from_frame(frame, name=name)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return made_trace()


def test_the_page_stands_alone_and_escapes(trace):
    figures = describe(trace, [Pool("a", 16), Pool("<i>b</i>", 8), Pool("c", 64)]).to_dict()
    plots = trace_plots(figures, trace.submit_s)
    page = render_description(figures, plots)
    assert set(plots) == {
        "utilization_hourly", "interarrival_s", "interarrival_cv", "burst_share", "duration_spread",
        "widths", "arrivals", "utilization", "weeks_jobs", "weeks_work", "hour_of_week", "duration_s",
    }  # fmt: skip
    assert page.count("<figure ") == len(plots)
    assert "<i>b</i>" not in page
    assert "made &amp; up" in page
    assert page.count("<caption>") == 1
    assert "No row of the file was left out." in page


def test_times_are_those_of_the_zone(trace):
    """Midnight in Berlin is 23:00 of the day before in UTC: a Monday's job counts on Monday."""
    zone = ZoneInfo("Europe/Berlin")
    first_s = datetime(2024, 1, 8, 0, 30, tzinfo=zone).timestamp()
    found = describe(Trace.from_frame(frame_of([first_s]), name="one"), zone=zone).to_dict()
    assert found["hour_of_week"][0][0] == 1.0
    with times_in(zone):
        plots = trace_plots(found, [first_s])
        assert "2024-01-08 00:30 to 2024-01-08 00:30 Europe/Berlin" in description_table(found)
    ((bar,),) = plots["weeks_jobs"].spec["datasets"].values()
    assert bar["x"] == 1000 * datetime(2024, 1, 8, tzinfo=UTC).timestamp()


def test_findings_are_counted_from_the_pools(trace):
    figures = describe(trace, [Pool("a", 1000), Pool("<i>b</i>", 1), Pool("c", 1)]).to_dict()
    page = render_description(figures, {})
    assert "In 2 of 3 pools the largest burst of five minutes asks for more GPUs than the pool has." in page


def test_the_terminal_table_fits_and_counts(trace):
    shown = description_table(describe(trace).to_dict())
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.startswith("made & up: 400 jobs, ")
    assert shown.splitlines()[-3].split()[:2] == ["all", "400"]


def test_the_page_shows_all_that_a_trace_tells(tmp_path):
    bare = made_trace()
    start_s = bare.submit_s + 90.0
    columns = {
        "start_time": start_s,
        "end_time": start_s + bare.duration_s,
        "user": [f"<u{i % 12}>" for i in range(400)],
        "tag": [f"t{i % 3}" for i in range(400)],
        "state": ["COMPLETED"] * 300 + [None] * 100,
    }
    frame = bare.jobs.with_columns(pl.Series(name, values) for name, values in columns.items())
    told = Trace.from_frame(frame, name="told", notes=("a & note",), dropped={"job step": 1234})
    write_description(describe(told).to_dict(), tmp_path / "page.html", told.submit_s)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown_all = (
        "median wait", "Half of the jobs wait at most 90.0 s", "Busiest users", "Busiest tags", "How jobs ended",
        "(2 others)", "(not told)", "1,234: job step", "a &amp; note", "12 users; the busiest, &lt;u",
    )  # fmt: skip
    for shown in shown_all:
        assert shown in page
    write_description(describe(told).to_dict(), tmp_path / "again.html", told.submit_s)
    assert page == (tmp_path / "again.html").read_text(encoding="utf-8")


def small(waits_s: float = 0.0, gpus: int = 2, pool: str = "a") -> dict:
    """Ten jobs of ten minutes, an hour apart."""
    submit_s = 1.5e9 + 3600.0 * np.arange(10)
    columns = {"job_id": [f"{i}" for i in range(10)], "pool": [pool] * 10, "submit_time": submit_s, "gpus": [gpus] * 10}
    ran = {"start_time": submit_s + waits_s, "end_time": submit_s + waits_s + 600.0, "duration": [600.0] * 10}
    return describe(Trace.from_frame(pl.DataFrame(columns | ran), name="small"), [Pool(pool, 4)]).to_dict()


def test_nobody_waits_and_it_is_said():
    told = finding(small()).sentences
    assert "At least nine in ten jobs start as soon as they are submitted." in told
    assert "Half of the jobs wait at most 60.0 s, one in ten longer than 60.0 s." in finding(small(60.0)).sentences


def test_more_than_all_gpus_are_not_at_work():
    page = render_description(small(gpus=48), {})
    mean = small(gpus=48)["total"]["utilization_mean"]
    assert mean > 1
    assert f"In the mean the jobs hold {mean:.2f} times the GPUs that the pools pay for" in page
    assert "at work" not in page
    assert "of the GPUs that the pools pay for are at work" in render_description(small(), {})


def test_a_pool_may_be_called_all_and_small_work_is_not_nothing():
    page = render_description(small(pool="all"), {})
    assert page.count('<th scope="row" class="words">all</th>') == 2
    # Ten jobs x 2 GPUs x 10 minutes.
    assert "<dt>GPU-hours</dt><dd>3.33</dd>" in page
    assert description_table(small(pool="all")).count("\nall ") == 2


def test_what_is_rarer_than_chance_is_no_more_than_chance():
    told = small()
    told["total"] |= {"followed_after_completion": 0.1, "followed_at_random": 0.2}
    assert finding(told).sentences[-1].endswith("against 20.0 % at random instants: no more than chance.")
    told["total"] |= {"followed_after_completion": 0.21}
    assert finding(told).sentences[-1].endswith("hardly more than chance.")


def test_pools_that_run_like_clockwork_are_named():
    submit_s = np.concatenate([np.arange(200) * 600.0, np.random.default_rng(1).uniform(0, 120000, 200)])
    frame = frame_of(submit_s, pool=["bot"] * 200 + ["people"] * 200, duration=60.0)
    description = describe(Trace.from_frame(frame, name="made")).to_dict()
    assert list(clockwork_pools(description["pools"])) == ["bot"]
    told = " ".join(finding(description).sentences)
    assert "Pool bot runs like clockwork: 100 % of its submissions come about 10.0 min after the one before" in told
