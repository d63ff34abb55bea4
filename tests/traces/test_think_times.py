import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.traces.generators import campus as campus_generator
from jobcast.traces.generators import generate
from jobcast.traces.table import Trace
from jobcast.traces.think_times import find_successors, keeps_to_a_timer
from tests import scenarios

MIDNIGHT_S = 1704067200.0
"""The campus trace's first instant, 2024-01-01."""


def trace_of(*rows, **columns):
    """Rows (job id, user, tag, submit, duration) of one pool of one-GPU jobs; more columns by name."""
    return scenarios.trace_of("job_id user tag submit_time duration", rows, **columns)


def found(trace, **options):
    successions = find_successors(trace, **options).successions
    return {name: ("".join(one.awaited), one.think_s) for name, one in successions.items()}


def test_a_launch_follows_all_that_had_ended_of_the_launch_that_ended_last():
    """a, b, c launched together; when d and e come, a and b have ended (the last at 600), c runs on."""
    trace = trace_of(
        ("a", "u", "", 0, 500), ("b", "u", "", 30, 570), ("c", "u", "", 60, 9000), ("d", "u", "", 900, 5),
        ("e", "u", "", 940, 5), ("f", "v", "", 950, 5),
    )  # fmt: skip
    assert found(trace) == {"d": ("ab", 300.0), "e": ("ab", 340.0)}


def test_the_same_tag_comes_before_a_later_end_of_another():
    trace = trace_of(
        ("a", "u", "x", 0, 100), ("b", "u", "y", 10, 1000), ("c", "u", "x", 1100, 5), ("d", "u", "z", 1500, 5),
        ("e", "u", "x", 20_000, 5),
    )  # fmt: skip
    # c: its tag's job ended at 100; d: none of its tag, the person's last end is c's, at 1105; e: too long after.
    assert found(trace) == {"c": ("a", 1000.0), "d": ("c", 395.0)}


def test_think_times_reach_to_the_longest_and_no_further():
    trace = trace_of(("a", "u", "", 0, 100), ("b", "u", "", 400, 5))
    assert found(trace, max_think_s=300.0) == {"b": ("a", 300.0)}
    assert found(trace, max_think_s=299.0) == {}
    assert find_successors(trace).mean_think_s == 300.0


def test_pools_and_users_are_kept_apart_and_jobs_of_nobody_follow_none():
    rows = [("a", "u", "", 0, 100), ("b", "u", "", 400, 5), ("c", None, "", 500, 5), ("d", None, "", 900, 5)]
    trace = trace_of(*rows)
    assert found(trace) == {"b": ("a", 300.0)}
    apart = Trace.from_frame(trace.jobs.with_columns(pool=pl.Series(["p", "q", "p", "p"])), name="apart")
    assert found(apart) == {}


def test_ends_are_the_traces_own_where_it_tells_them():
    ends = [250.0, 700.0]
    trace = trace_of(("a", "u", "", 0, 100), ("b", "u", "", 400, 5), start_time=[150.0, 695.0], end_time=ends)
    assert found(trace) == {"b": ("a", 150.0)}


def test_jobs_of_a_timer_follow_none_though_others_ended_before():
    """Every 600 s, a little late, one tick left out; each runs 100 s to 500 s."""
    ticks = [600 * n + (7 * n) % 11 for n in range(12) if n != 5]
    timer = [(f"t{n:02d}", "bot", "", at, 100 + 40 * n) for n, at in enumerate(ticks)]
    person = [("a", "u", "", 50, 100), ("b", "u", "", 400, 5)]
    told = find_successors(trace_of(*sorted([*timer, *person], key=lambda row: row[3])))
    assert set(told.successions) == {"b"}
    assert told.timers == 1


@given(st.lists(st.floats(1.0, 1e4), min_size=1, max_size=7))
def test_of_few_gaps_no_timer_is_told(gaps):
    assert not keeps_to_a_timer(np.cumsum([0.0, *gaps]).tolist())


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(60.0, 1e5))
def test_a_timer_is_told_by_any_period_and_a_poisson_process_is_none(seed, period_s):
    rng = np.random.default_rng(seed)
    ticks = period_s * np.flatnonzero(rng.random(60) < 0.9) + rng.uniform(0, period_s / 50, 60)[:1]
    assert keeps_to_a_timer(ticks.tolist())
    assert not keeps_to_a_timer(np.cumsum(rng.exponential(period_s, 60)).tolist())


@pytest.fixture(scope="module")
def campus():
    """A campus trace, and its users' own successions: (user, launch, to the millisecond) -> end that was awaited."""
    own, state = {}, {}
    burst, look, launch = campus_generator._burst, campus_generator._looked_at_s, campus_generator.next_launch_s

    def seeing_burst(user, instant_s, *rest):
        if state["follows"]:
            own[user, round(instant_s, 3)] = state["seen_s"]
        return burst(user, instant_s, *rest)

    def seeing_look(jobs, *rest):
        seen_s = look(jobs, *rest)
        state["ended"] = bool(np.isclose(jobs.submit_s + jobs.duration_s, seen_s, rtol=0, atol=1e-6).any())
        return seen_s

    def seeing_launch(seen_s, sessions, *rest):
        at_s = launch(seen_s, sessions, *rest)
        present = sessions.at_or_after(seen_s)
        same = at_s is not None and present is not None and not present[1]
        if same:  # the launch falls into the session in which the results were seen
            same = np.searchsorted(sessions.end_s, seen_s, "right") == np.searchsorted(sessions.end_s, at_s, "right")
        state.update(seen_s=seen_s, follows=bool(same) and seen_s > 0 and state.get("ended", False))
        return at_s

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campus_generator, "_burst", seeing_burst)
        patch.setattr(campus_generator, "_looked_at_s", seeing_look)
        patch.setattr(campus_generator, "next_launch_s", seeing_launch)
        trace, _ = generate("campus", 0, {"weeks": 4, "pools": 6, "jobs": 8000})
    return trace, own


def test_of_a_campus_nearly_all_successions_are_found_and_few_are_made_up(campus):
    """What the generator's users did (docs/generators.md): they launch a think time after results, within a session."""
    trace, own = campus
    told = find_successors(trace)
    jobs, _ = trace.to_jobs()
    ends = dict(zip((job.job_id for job in jobs), trace.end_s - MIDNIGHT_S, strict=True))
    heads = {}
    for job in jobs:
        heads.setdefault((job.user, round(job.submit_s - MIDNIGHT_S, 3)), job)
    true = {key: end_s for key, end_s in own.items() if key in heads}
    assert len(true) > 1000
    linked = {key: told.successions[heads[key].job_id] for key in true if heads[key].job_id in told.successions}
    right = [abs(max(ends[name] for name in one.awaited) - true[key]) < 0.002 for key, one in linked.items()]
    assert len(linked) >= 0.98 * len(true)
    assert np.mean(right) >= 0.8
    # Launches that follow something, and follow nothing in truth: those a night apart, or after patience ended.
    begun = {key for key in _launches(jobs) if heads[key].job_id in told.successions}
    assert len(begun - set(true)) <= 0.03 * len(begun)


def _launches(jobs):
    """(user, instant) of each job that comes more than a minute after its user's last one, or of another tag."""
    last = {}
    for job in jobs:
        before = last.get(job.user)
        last[job.user] = job
        if before is None or job.tag != before.tag or job.submit_s - before.submit_s > 60:
            yield job.user, round(job.submit_s - MIDNIGHT_S, 3)
