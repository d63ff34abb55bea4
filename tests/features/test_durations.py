"""What is known of jobs like a submitted one: by hand, batch against live, and no look ahead."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job
from jobcast.features import duration_kernels
from jobcast.features.arrivals import feature_names
from jobcast.features.durations import (
    DEPTHS,
    GROUPS,
    START_DEPTHS,
    STARTED,
    burst_key,
    burst_numbers,
    duration_columns,
    duration_rows,
    group_counts,
    group_width,
    started_width,
)
from jobcast.features.finished import ROOM_FOR_GROUPS, ROOM_FOR_JOBS, DurationTracker
from jobcast.features.load_features import load_features
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace, ends_known_after
from tests import scenarios
from tests.scenarios import frame_of

HORIZONS_MIN = (1, 10)
COLUMNS = duration_columns(HORIZONS_MIN)
GRAIN_S = 60.0


def trace(rows, **columns):
    """Rows of (submit_s, duration_s, pool, gpus, user, tag), and optionally start_s; further columns by name."""
    return scenarios.trace_of("submit_time duration pool gpus user tag start_time", rows, **columns)


def row(submit_s, duration_s, pool="a", gpus=1, user="", tag=""):
    return (float(submit_s), float(duration_s), pool, gpus, user, tag)


def known(rows, which=-1):
    """Columns of one job by name."""
    return dict(zip(COLUMNS, duration_rows(trace(rows), HORIZONS_MIN)[which].tolist(), strict=True))


def counts(told, group, depth=50):
    return [told[f"{group} last {depth} {label}"] for label in ("<=1min", "1-10min", ">10min")]


def test_depths_are_those_of_the_kernels():
    assert DEPTHS == duration_kernels.DEPTHS
    assert START_DEPTHS == duration_kernels.START_DEPTHS
    assert tuple(GROUPS[kind] for kind in duration_kernels.STARTED_KINDS) == STARTED


def test_columns_by_hand():
    """Three bins: 7 groups x (3 depths x 3 bins + 3), 4 x (2 depths x 2 x 3 bins + 2), what is asked, the pool."""
    assert len(COLUMNS) == len(set(COLUMNS)) == 7 * 12 + 4 * (2 * 6 + 2) + 3 + 1 + 6 + 5
    assert (group_width(3), started_width(3)) == (12, 2 * 6 + 2)
    assert GROUPS == ("tag", "user", "user_width", "request", "pool_width", "pool", "all")


def test_a_burst_is_of_one_hour():
    first, last, after = (burst_key("a", 1, "u", at_s) for at_s in (3600.0, 7199.0, 7200.0))
    assert first == last != after


def test_bursts_are_of_a_user_else_of_the_account():
    rows = [row(0, 60, user=user) for user in ("u", "v", "", "u")]
    for account in ({}, {"account": "x"}):
        assert burst_numbers(trace(rows, **account)).tolist() == [0, 1, 2, 0]


def test_groups_by_hand():
    rows = [
        row(0, 60, user="u", tag="x"),
        row(0, 700, gpus=2, user="u", tag="x"),
        row(0, 61, pool="b", user="v", tag="x"),
        row(0, 5000),
        row(1000, 9, user="u", tag="x"),
    ]
    told = known(rows)
    assert counts(told, "tag") == [1, 1, 1]
    assert counts(told, "user") == [1, 0, 1]
    assert counts(told, "user_width") == counts(told, "pool_width") == [1, 0, 0]
    assert counts(told, "pool") == [1, 0, 1]
    assert counts(told, "all") == [1, 1, 1]
    assert told["pool log mean s"] == pytest.approx((math.log(60) + math.log(700)) / 2)
    assert told["pool log last s"] == pytest.approx(math.log(700))
    assert told["pool log since s"] == pytest.approx(math.log1p(300))
    assert told["log2 gpus"] == 0.0


def test_starts_and_arrivals_of_the_pool_by_hand():
    rows = [
        row(0, 30),  # ended, up to a minute
        row(400, 5000, gpus=2),  # has run for 600 s
        row(400, 5000, pool="b"),
        row(900, 100),  # ended at 1000, the very instant
        row(970, 5000, gpus=2),  # has run for 30 s
        row(1000, 5000, gpus=2),
        row(1000, 5000),  # submitted at the same instant: not known
    ]
    told = known(rows, which=5)
    assert [told[f"pool ended {label}"] for label in ("<=1min", "1-10min", ">10min")] == [1, 1, 0]
    assert [told[f"pool running {label}"] for label in ("<=1min", "1-10min", ">10min")] == [1, 1, 0]
    assert told["pool log since arrival s"] == pytest.approx(math.log1p(30))
    assert told["pool log since like s"] == pytest.approx(math.log1p(30))
    assert told["pool like arrivals"] == 2
    assert told["pool log arrivals 5min"] == pytest.approx(math.log1p(2))
    assert told["pool log arrivals 60min"] == pytest.approx(math.log1p(4))


def test_windows_of_arrivals_reach_back_to_the_second():
    """Of jobs 3600.5, 3600, 300.5 and 300 s ago three arrived within the hour, and one within five minutes."""
    told = known([row(at_s, 1.0) for at_s in (0.0, 0.5, 3300.0, 3300.5, 3600.5)])
    assert math.expm1(told["pool log arrivals 60min"]) == pytest.approx(3.0)
    assert math.expm1(told["pool log arrivals 5min"]) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [3, 19, 20, 49, 50, 199, 200, 230])
def test_no_more_jobs_are_looked_at_than_the_columns_say(count):
    """One wide job, then so many of one GPU, 30 s each, all started; asked about is another wide one."""
    rows = [row(0, 1, gpus=2, user="u"), *(row(10 * at, 30, user="u") for at in range(1, count + 1))]
    asked_s = 10 * count + 5.0
    told = known([*rows, row(asked_s, 1, gpus=2, user="u")])
    like = math.log1p(asked_s) if count < 200 else math.nan
    assert told["pool log since like s"] == pytest.approx(like, nan_ok=True)
    assert told["pool like arrivals"] == (1 if count < 20 else 0)
    kinds = [f"pool {how} {label}" for how in ("ended", "running") for label in ("<=1min", "1-10min", ">10min")]
    assert sum(told[kind] for kind in kinds) == min(count + 1, 50)
    for depth in (5, 20):
        shown = started(told, "user", depth, "ended") + started(told, "user", depth, "running")
        assert sum(shown) == min(count + 1, depth)
    for depth in (5, 20, 50):
        assert sum(counts(told, "user", depth)) == min(count + 1 - 3, depth)  # three still run
    assert told["user log starts 5min"] == pytest.approx(math.log1p(min(count + 1, 20)))  # of the last twenty


def test_starts_of_the_last_five_minutes_are_later_than_that():
    told = known([row(at_s, 1.0, user="u") for at_s in (0.0, 0.5, 1.0, 300.5)])
    assert math.expm1(told["user log starts 5min"]) == pytest.approx(1.0)


def test_the_first_job_knows_nothing():
    told = known([row(0, 60, user="u", tag="x")])
    assert all(counts(told, group) == [0, 0, 0] for group in GROUPS)
    assert math.isnan(told["all log mean s"])
    assert math.isnan(told["pool log since arrival s"])


def test_a_job_without_tag_or_user_has_no_such_group():
    told = known([row(0, 60), row(100, 60)])
    assert counts(told, "tag") == counts(told, "user") == counts(told, "user_width") == [0, 0, 0]
    assert counts(told, "pool") == [1, 0, 0]


def test_a_job_that_ends_at_the_submission_has_finished():
    rows = [row(0, 60), row(59, 9000), row(60, 1)]
    before, at_its_end = known(rows, which=1), known(rows, which=2)
    assert counts(before, "all") == started(before, "pool_width", 5, "ended") == [0, 0, 0]
    assert before["pool_width log since start s"] == pytest.approx(math.log1p(59))
    assert counts(at_its_end, "all") == started(at_its_end, "pool_width", 5, "ended") == [1, 0, 0]


def test_a_job_never_sees_itself():
    """A run of less than the clock's grain ends at its own submission."""
    rows = [row(1.5e9, 1e-9), row(1.5e9 + 1, 1)]
    assert counts(known(rows, which=0), "all") == [0, 0, 0]
    assert counts(known(rows, which=1), "all") == [1, 0, 0]


@st.composite
def runs(draw):
    """Jobs that wait, run and end, in the trace's order, with many ties; ends may be known late, and limits be told."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 70))
    grain = draw(st.sampled_from([1.0, GRAIN_S, 1e-3]))
    submit = np.sort(np.ceil(rng.uniform(0, 4000, n) / grain) * grain)
    duration = np.ceil(rng.lognormal(4.5, 1.5, n) / grain) * grain
    start = submit + np.where(rng.random(n) < 0.5, 0, rng.integers(0, 3, n) * grain)
    names = [
        (str(rng.choice(["a", "b"])), int(rng.choice([1, 2, 3])), *(str(rng.choice(["", "x", "y"])) for _ in range(2)))
        for _ in range(n)
    ]
    limits = {"account": "x", "time_limit_s": rng.choice([600.0, 3600.0, None], n).tolist()}
    with ends_known_after(draw(st.sampled_from([0.0, GRAIN_S, 3600.0]))):
        return trace([(submit[i], duration[i], *names[i], start[i]) for i in range(n)], **limits)


def started(told, group, depth, how):
    return [told[f"{group} started {depth} {how} {label}"] for label in ("<=1min", "1-10min", ">10min")]


def test_started_jobs_by_hand():
    rows = [
        row(0, 30, user="u"),  # ended, up to a minute
        row(400, 5000, user="u", gpus=2),  # has run for 600 s
        row(900, 90, user="v"),
        row(970, 5000, user="u"),  # has run for 30 s
        row(1000, 1, user="u"),
    ]
    told = known(rows)
    assert started(told, "user", 5, "ended") == [1, 0, 0]
    assert started(told, "user", 5, "running") == started(told, "user", 20, "running") == [1, 1, 0]
    assert started(told, "request", 5, "running") == [1, 0, 0]
    assert started(told, "pool_width", 5, "ended") == [1, 1, 0]
    assert started(told, "tag", 20, "ended") == [0, 0, 0]
    assert told["user log since start s"] == pytest.approx(math.log1p(30))
    assert told["user log starts 5min"] == pytest.approx(math.log1p(1))
    assert math.isnan(told["tag log since start s"])


def test_what_a_job_asks_for():
    limits = {"account": "x", "time_limit_s": [3600.0, 7200.0, 3600.0, None]}
    made = trace([row(at_s, 60) for at_s in (0, 100, 200, 21_600)], **limits)
    told = [dict(zip(COLUMNS, one, strict=True)) for one in duration_rows(made, HORIZONS_MIN).tolist()]
    assert [counts(one, "user")[0] for one in told] == [0, 1, 2, 3]
    assert [counts(one, "request")[0] for one in told] == [0, 0, 1, 0]
    assert told[2]["log limit s"] == pytest.approx(math.log(3600))
    assert math.isnan(told[3]["log limit s"])
    assert (told[3]["day sin"], told[3]["day cos"]) == pytest.approx((1.0, 0.0))


def test_depths_count_the_last_ones():
    """60 jobs end one after another: the newest 5 take over 10 minutes, the 15 before them up to one."""
    durations = [100.0] * 40 + [30.0] * 15 + [700.0] * 5
    rows = [row(10 * i, duration) for i, duration in enumerate(durations)]
    rows = sorted((1e4 + 10 * i - r[1], *r[1:]) for i, r in enumerate(rows))
    told = known([*rows, row(2e4, 1)])
    assert told["pool log mean s"] == pytest.approx((30 * math.log(100) + 15 * math.log(30) + 5 * math.log(700)) / 50)
    assert counts(told, "pool", 5) == [0, 0, 5]
    assert counts(told, "pool", 20) == [15, 0, 5]
    assert counts(told, "pool", 50) == [15, 30, 5]


def test_counts_are_found_in_rows():
    rows = duration_rows(trace([row(0, 60), row(100, 600), row(5000, 1)]), HORIZONS_MIN)
    assert group_counts(rows, "pool_width", 20, 3)[2].tolist() == [1, 1, 0]


def followed(made):
    """Jobs of a trace, a run of them as it tells, and what follows that run."""
    jobs, run_s = made.to_jobs()
    history = RunHistory(made.pools, EarlierJobs(jobs, made.start_s, made.known_s, run_s))
    return jobs, history, DurationTracker(HORIZONS_MIN)


@given(runs())
def test_live_rows_are_batch_rows_and_may_be_asked_for_later(made):
    rows = duration_rows(made, HORIZONS_MIN)
    jobs, history, tracker = followed(made)
    for job in jobs:
        history.advance(job.submit_s)
        tracker.catch_up(history)
        assert np.array_equal(tracker.row(job), rows[job.seq], equal_nan=True)
    history.advance(jobs[-1].submit_s + 500.0)
    tracker.catch_up(history)
    assert np.array_equal(tracker.rows(jobs), rows, equal_nan=True)


def test_there_is_room_for_many_jobs():
    """Rows of a whole run as those of the whole trace, beyond what there is room for at first; and of no jobs."""
    made = trace([row(60 * i, 50 + 7 * (i % 90), user=f"u{i % 300}", tag="x") for i in range(ROOM_FOR_JOBS + 100)])
    jobs, history, tracker = followed(made)
    history.advance(jobs[-1].submit_s)
    tracker.catch_up(history)
    assert len(tracker.started) >= ROOM_FOR_JOBS
    assert len({job.user for job in jobs}) > ROOM_FOR_GROUPS
    assert np.array_equal(tracker.rows(jobs), duration_rows(made, HORIZONS_MIN), equal_nan=True)
    assert tracker.rows([]).shape == (0, len(COLUMNS))


def test_some_rows_are_those_of_all():
    made, wanted = trace([row(60 * i, 50 + 7 * i, gpus=1 + i % 2) for i in range(30)]), np.arange(30) % 3 == 1
    some, whole = duration_rows(made, HORIZONS_MIN, wanted), duration_rows(made, HORIZONS_MIN)
    assert np.array_equal(some, whole[wanted], equal_nan=True)


# An end counts from when the accounting showed it: whatever it is until then, nothing changes.

HORIZONS_S = (300.0, 3600.0, 43200.0)
WINDOWS_MIN = (5, 60, 720)


def trace_of(submit_s, run_s, known_after_s=0.0, **columns):
    """Jobs of two pools and three users, each of which waits for half a minute."""
    jobs = enumerate(zip(submit_s, run_s, strict=True))
    rows = [(*row(at_s, lasts_s, "ab"[i % 2], 1 + i % 4, f"u{i % 3}"), at_s + 30.0) for i, (at_s, lasts_s) in jobs]
    with ends_known_after(known_after_s):
        return trace(rows, **columns)


def test_known_time_of_the_row_else_so_much_later():
    trace = trace_of([0.0, 10.0], [60.0, 60.0], 600.0, known_time=[None, 200.0])
    assert trace.end_s.tolist() == [90.0, 100.0]
    assert trace.known_s.tolist() == [690.0, 200.0]
    assert any(note.startswith("known_after_s: an end counts from 600 s later on") for note in trace.notes)
    assert trace_of([0.0], [60.0]).known_s.tolist() == [90.0]


def test_what_has_not_ended_is_never_known():
    known = Trace.from_frame(frame_of([0.0], duration=[None], known_time=[86_400.0]), name="made").known_s
    assert known.tolist() == [np.inf]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_no_time_before_the_end(seconds):
    with pytest.raises(ConfigError, match="known_after_s must be 0 or more seconds"), ends_known_after(seconds):
        pass


def test_until_it_is_known_the_job_runs():
    history = pool_histories(trace_of([0.0], [60.0], 600.0))["a"]
    names = feature_names()
    ended, later = names.index("completions_last_1k"), names.index("expected_completions_later")
    soon = names.index("expected_completions_within_k")
    for at_s, completions, running in ((89.0, 0.0, 1.0), (91.0, 0.0, 1.0), (689.0, 0.0, 1.0), (690.0, 1.0, 0.0)):
        row = load_features(history, [at_s], [3600.0])[0, 0]
        assert (row[ended], row[soon] + row[later]) == (completions, running), at_s


@given(seed=st.integers(0, 2**32 - 1), delay_s=st.sampled_from([0.0, 60.0, 3600.0, 40_000.0]), part=st.floats(0.1, 1))
def test_an_end_that_is_not_known_at_t_may_be_any(seed, delay_s, part):
    rng = np.random.default_rng(seed)
    submit_s = np.sort(np.floor(rng.uniform(0, 86_400, 60))).tolist()
    run_s = np.ceil(rng.lognormal(6, 2, 60))
    trace = trace_of(submit_s, run_s.tolist(), delay_s)
    t = part * submit_s[-1]
    unknown = trace.known_s > t
    # Shorter runs too: an end may lie before t as long as the accounting shows it later.
    shortest_s = np.maximum(1.0, t + 1.0 - delay_s - trace.start_s)
    other_s = np.where(unknown, np.ceil(shortest_s + rng.exponential(9000.0, 60)), run_s)
    other = trace_of(submit_s, other_s.tolist(), delay_s)
    assert (other.known_s > t)[unknown].all()
    for one, another in zip(pool_histories(trace).values(), pool_histories(other).values(), strict=True):
        assert np.array_equal(load_features(one, [t], HORIZONS_S), load_features(another, [t], HORIZONS_S))
    asked = trace.submit_s <= t
    rows, others = (duration_rows(made, WINDOWS_MIN, asked) for made in (trace, other))
    assert np.array_equal(rows, others, equal_nan=True)


@pytest.mark.parametrize(("ran_s", "found"), [(3600.0, 1), (3601.0, 2), (43_200.0, 2), (43_201.0, 3), (None, 3)])
def test_the_bin_of_a_job_is_settled_when_the_last_one_begins(ran_s, found):
    job, tracker = Job(0, "0", "a", 100.0, 1), DurationTracker(WINDOWS_MIN)
    tracker.begin([SimpleNamespace(job=job, start_s=1000.0)])
    if ran_s is not None:
        tracker.add([SimpleNamespace(job=job, end_s=1000.0 + ran_s, duration_s=ran_s)])
    assert tracker.settled(0) == (1000.0 + 43_200.0, found)
