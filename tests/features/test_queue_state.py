"""Features of a queue: worked out by hand, blind to the future, the same for training and serving."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.features.queue_state import RECENT_S, Moment, Queue, queue_columns, queue_rows, sums_before
from jobcast.features.wait_rows import WaitRows, instants
from jobcast.traces.readers.queue_snapshots import AHEAD
from jobcast.traces.table import Trace
from tests.queue_cases import DAY_S, queued_trace, snapshot_frame

COLUMNS = queue_columns()


def told(trace, at_s: float) -> list[dict]:
    queue = Queue.of(trace)
    rows = queue_rows(queue, at_s, queue.pending(at_s))
    return [dict(zip(COLUMNS, row.tolist(), strict=True)) for row in rows]


def test_jobs_without_limits_are_taken_to_run_for_thirty_days_where_nothing_tells():
    rows = [(0.0, None, None), (1.0, None, None), (0.0, 2.0, None)]
    row = told(queued_trace(rows, cores=[2, 4, 8], time_limit_s=[None, 60.0, None]), 10.0)[1]
    assert (row["q_core_hours_above"], row["expected core_hours"]) == (2 * 30 * 24, 2 * 30 * 24)
    assert (row["r_core_hours_above"], row["pool started core s"]) == (pytest.approx(8 * (30 * 24 - 8 / 3600)), 0.0)


@given(st.integers(0, 10_000))
def test_nothing_of_the_future_is_read(seed):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, 3 * DAY_S, 30))
    wait, run, at_s = rng.exponential(20_000, 30), rng.exponential(10_000, 30) + 1.0, 2 * DAY_S
    rows = list(zip(submit, submit + wait, run, strict=True))
    # Starts and ends after the instant come at other times, later jobs do not come at all.
    changed = [
        (s, b if b <= at_s else at_s + rng.uniform(1, DAY_S), r if b + r <= at_s else DAY_S * 9 + r)
        for s, b, r in rows
        if s <= at_s
    ]
    accounts = rng.choice(["a", "b"], 30).tolist()
    seen = told(queued_trace(rows, account=accounts), at_s)
    other = told(queued_trace(changed, account=accounts[: len(changed)]), at_s)
    np.testing.assert_equal(seen, other)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=20))
def test_sums_before_are_those_of_a_loop(rows):
    codes, values = np.array([code for code, _ in rows]), np.array([[float(value)] for _, value in rows])
    slow = [sum(v for c, v in rows[:place] if c == code) for place, (code, _) in enumerate(rows)]
    assert sums_before(codes, values).ravel().tolist() == slow


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory) -> Trace:
    from jobcast.traces.readers import read_sources

    path = tmp_path_factory.mktemp("table") / "table.parquet"
    snapshot_frame(6, 20).write_parquet(path)
    return read_sources([path], format="queue-snapshots").trace


def test_a_snapshot_tells_what_is_ahead_by_itself(snapshots):
    rows = WaitRows.of(snapshots, 0.0, np.inf)
    assert len(rows) == len(snapshots)
    assert (np.diff(rows.at_s) >= 0).all()
    first = COLUMNS.index(AHEAD[0])
    given_ = np.column_stack([snapshots.numbers(name, np.nan) for name in AHEAD])[rows.job]
    assert (rows.X[:, first : first + len(AHEAD)] == given_).all()
    assert np.isnan(rows.X[:, COLUMNS.index("expected core_hours")]).all()


def test_a_wait_that_is_not_over_counts_until_then(snapshots):
    rows = WaitRows.of(snapshots, 0.0, np.inf)
    known_s = float(rows.at_s[-1]) + 600.0
    waits = ~rows.started(known_s)
    assert waits.any()
    assert not waits.all()
    late = rows.log_wait(known_s)[waits & (rows.at_s == rows.at_s[-1])]
    assert late.tolist() == pytest.approx([np.log10(600.0)] * len(late))
    # Those of one account share a weight of one.
    again = rows.among(rows.at_s == rows.at_s[0])
    assert again.weight[0] == pytest.approx((again.account == again.account[0]).sum() ** -0.5)


def test_the_grid_of_a_trace_knows_only_what_came_before_it_ends():
    trace = queued_trace([(0.0, 5000.0, 10.0), (100.0, 9000.0, 10.0)])
    whole = queued_trace([(0.0, 5000.0, 10.0), (100.0, 9000.0, 10.0), (8000.0, 9e6, 10.0)])
    one, two = (instants(Queue.of(it), False, 0.0, 7200.0) for it in (trace, whole))
    assert one.tolist() == two.tolist() == np.arange(0.0, 7200.0, 300.0).tolist()
    assert pl.Series(WaitRows.of(trace, 0.0, 7200.0).job).n_unique() == 2


def test_what_had_not_started_by_an_instant_had_waited_until_then():
    """Asked at 100 s; started at 400 s, at 100.2 s (waits count from a second on) and never."""
    rows = WaitRows(
        X=np.zeros((3, len(COLUMNS)), np.float32),
        job=np.arange(3),
        at_s=np.full(3, 100.0),
        start_s=np.array([400.0, 100.2, np.inf]),
        account=np.zeros(3, np.int64),
        weight=np.ones(3),
    )
    assert rows.started(400.0).tolist() == [True, True, False]
    assert rows.started(399.0).tolist() == [False, True, False]
    assert rows.log_wait(1100.0) == pytest.approx(np.log10([300.0, 1.0, 1000.0]))
    assert rows.log_wait(200.0) == pytest.approx(np.log10([100.0, 1.0, 100.0]))
    assert rows.log_wait() == pytest.approx([np.log10(300.0), 0.0, np.inf])


@pytest.mark.parametrize(
    ("submit_s", "start_s", "step_s"),
    [
        ([0.0], [np.inf], 2000.0),  # five hundred instants in 1e6 s
        ([1.1e6] * 1000, [np.inf] * 1000, 6000.0),  # 150,000 rows of 1,000 jobs that wait for 9e5 s of it
        ([0.0] * 1000, [1.75e6] * 1000, 5000.0),  # before it nobody is asked about
        ([0.0] * 500 + [1.1e6] * 1000, [5e5] * 500 + [np.inf] * 1000, 6000.0),  # who started before it costs nothing
    ],
)
def test_the_grid_is_as_fine_as_its_instants_and_rows_allow(submit_s, start_s, step_s):
    queue = SimpleNamespace(submit_s=np.array(submit_s), start_s=np.array(start_s))
    first = -(-1e6 // step_s) * step_s
    assert instants(queue, False, 1e6, 2e6).tolist() == np.arange(first, 2e6, step_s).tolist()


def test_windows_of_instants_hold_their_beginning_and_not_their_end():
    seen = SimpleNamespace(seen_s=np.array([20.0, 10.0, 20.0, 30.0, 9.0]))
    assert instants(seen, True, 10.0, 30.0).tolist() == [10.0, 20.0]
    trace = queued_trace([(0.0, None, None)])
    rows = WaitRows.of(trace, 0.0, 1000.0)
    assert rows.at_s.tolist() == [0.0, 300.0, 600.0, 900.0]
    assert rows.between(300.0, 900.0).at_s.tolist() == [300.0, 600.0]
    none = WaitRows.of(trace, 5.0, 5.0)
    assert none.X.shape == (0, len(COLUMNS))
    assert [len(getattr(none, name)) for name in ("job", "at_s", "start_s", "account", "weight")] == [0] * 5


def test_what_happens_at_the_instant_itself_has_happened_and_ten_days_ago_is_long_ago():
    at_s = 20 * DAY_S
    rows = [
        (0.0, at_s - RECENT_S - 5.0, 5.0),  # ended ten days ago
        (0.0, at_s - RECENT_S - 5.0, 6.0),
        (0.0, at_s - RECENT_S, 11 * DAY_S),  # runs, started ten days ago
        (0.0, at_s - RECENT_S + 1.0, 9 * DAY_S),
        (0.0, at_s - 9.0, 9.0),
        (0.0, at_s, 9.0),
        (0.0, at_s + 1.0, 9.0),
        (at_s, None, None),
        (at_s + 1.0, None, None),
    ]
    queue = Queue.of(queued_trace(rows))
    near = queue.near(at_s)
    assert (queue.pending(at_s).tolist(), near.tolist()) == ([6, 7], [*range(1, 8)])
    moment = Moment.of(queue.among(near), at_s)
    shown = (moment.waiting, moment.running, moment.begun, moment.ended)
    assert [near[one].tolist() for one in shown] == [[6, 7], [2, 5], [3, 4, 5], [1, 3, 4]]


def plainly(jobs, me, at_s):
    """The row of a pending job of a whole trace at an instant, by name: a loop over all jobs for every number."""
    day, log, exp = DAY_S, np.log10, np.exp
    jobs = [one for one in jobs if one.submit <= at_s and one.end > at_s - RECENT_S]
    waits = sorted((one for one in jobs if one.start > at_s), key=lambda one: (-one.priority, one.submit))
    runs, over = [one for one in jobs if one.start <= at_s < one.end], [one for one in jobs if one.end <= at_s]
    of = {
        "": lambda one: True,
        "p_": lambda one: one.pool == me.pool,
        "a_": lambda one: one.account == me.account,
        "p_a_": lambda one: (one.pool, one.account) == (me.pool, me.account),
        "like": lambda one: one.kind == me.kind,
    }

    def mean(values, weights=None):
        return np.average(values, weights=weights) if len(values) else np.nan

    def expected_s(one):
        for same in ("kind", "both", "account", "pool"):
            if ran := [
                log(min(other.run, other.limit)) for other in over if getattr(other, same) == getattr(one, same)
            ]:
                return min(10.0 ** mean(ran), one.limit)
        return min(one.limit, 30 * day)

    age_s = at_s - me.eligible
    row = {"cores": me.cores, "mem gb": me.mem, "mem gb a core": me.mem / me.cores, "gpus": me.gpus}
    row |= {"limit s": me.limit, "priority": me.priority, "age s": at_s - me.submit}
    row |= {"weekday": (at_s // day + 3) % 7, "hour": at_s % day / 3600, "eligible s": age_s if age_s >= 0.0 else -1.0}
    before = waits[: waits.index(me)]
    for whose in ("", "p_", "a_", "p_a_"):
        left = [(one, max(one.limit - at_s + one.start, 0.0)) for one in runs if of[whose](one)]
        for state, rows in (("q", [(one, one.limit) for one in before if of[whose](one)]), ("r", left)):
            told = [
                (1, one.cores, 1024 * one.mem, one.cores * s / 3600, one.gpus, one.gpus * s / 3600) for one, s in rows
            ]
            names = [name for name in AHEAD if name.startswith(f"{state}_{whose}")]
            names = names[:6] if whose else [name for name in names if name.count("_p_") + name.count("_a_") == 0]
            row |= dict(zip(names, np.sum([np.zeros(6), *told], axis=0), strict=True))
        hours = [(one, expected_s(one) / 3600) for one in before if of[whose](one)]
        row[f"expected {whose}core_hours"] = sum(one.cores * hour for one, hour in hours)
        row[f"expected {whose}gpu_hours"] = sum(one.gpus * hour for one, hour in hours)
    for group, whose in (("pool", "p_"), ("account", "a_"), ("both", "p_a_"), ("like", "like")):
        mine = [one for one in waits if of[whose](one)]
        begun = [one for one in jobs if at_s - RECENT_S < one.start <= at_s and of[whose](one)]
        ended = [one for one in over if of[whose](one)]
        ages, waited = [at_s - one.start for one in begun], [log(max(one.start - one.submit, 1.0)) for one in begun]
        told = {"pending": len(mine), "ahead": mine.index(me), "oldest s": max(at_s - one.submit for one in mine)}
        for days in (1, 4):
            weights = [exp(-age / (days * day)) for age in ages]
            told |= {f"starts {days}d": sum(weights), f"log wait {days}d": mean(waited, weights or None)}
            if days == 1:
                told["started core s"] = sum(w * one.cores * one.limit for w, one in zip(weights, begun, strict=True))
        told["priority"] = me.priority / mean([one.priority for one in begun], weights or None)
        told |= {"since start s": min(ages, default=np.nan), "log run": mean([log(min(o.run, o.limit)) for o in ended])}
        told["run share"] = mean([min(one.run / one.limit, 1.0) for one in ended])
        for days in (1, 3, 7):
            then_s = at_s - days * day
            there = [
                (min(one.start, at_s) - then_s, one.start > at_s)
                for one in jobs
                if one.submit <= then_s < one.start and of[whose](one)
            ]
            seconds, starts = sum(s for s, _ in there), sum(not still for _, still in there)
            told[f"hazard {days}d"] = log((seconds + 3600) / (starts + 0.5)) if there else np.nan
            if days == 1:
                told |= {"left 1d": mean([log(max(s, 1.0)) for s, _ in there]), "still 1d": mean([o for _, o in there])}
        row |= {f"{group} {name}": value for name, value in told.items()}
        if whose != "like":
            row[f"{group} drain"] = log((row[f"q_{whose}jobs_above"] + 1.0) / (told["starts 1d"] + 0.1))
    return row


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_rows_are_those_of_loops_over_all_jobs(seed):
    rng = np.random.default_rng(seed)
    n, at_s = 60, 12 * DAY_S + 3600.0
    submit_s = np.sort(at_s - rng.integers(0, 17, n) * DAY_S / 2)  # many at the instant, or whole days before it
    start_s = submit_s + rng.integers(0, 12, n) * DAY_S / 2
    run_s, cores = rng.integers(1, 9, n) * DAY_S / 4, rng.integers(1, 3, n)
    kinds = {
        name: rng.choice(values, n).tolist() for name, values in {"pool": ["p", "q"], "account": ["a", "b"]}.items()
    }
    numbers = {"priority": rng.integers(1, 4, n), "gpus": rng.integers(0, 3, n), "mem_gb": rng.integers(1, 3, n)}
    limit_s = rng.integers(1, 4, n) * DAY_S / 2
    eligible_s = pl.from_epoch(pl.Series(submit_s + rng.integers(0, 2, n) * DAY_S / 2), "s").dt.replace_time_zone("UTC")
    more = kinds | numbers | {"cores": cores, "time_limit_s": limit_s, "eligible_time": eligible_s}
    trace = queued_trace(list(zip(submit_s, start_s, run_s, strict=True)), **more)
    columns = zip(
        submit_s, start_s, run_s, trace.eligible_s, cores, limit_s, *kinds.values(), *numbers.values(), strict=True
    )
    names = ("submit", "start", "run", "eligible", "cores", "limit", "pool", "account", "priority", "gpus", "mem")
    jobs = [SimpleNamespace(**dict(zip(names, one, strict=True))) for one in columns]
    for one in jobs:
        one.end, one.both = one.start + one.run, (one.pool, one.account)
        one.kind = (*one.both, one.cores, one.gpus, one.mem, one.limit)
    rows = told(trace, at_s)
    for number, row in zip(Queue.of(trace).pending(at_s).tolist(), rows, strict=True):
        expected = plainly(jobs, jobs[number], at_s)
        assert set(row) - set(expected) == {"level_fs_poll"}
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=2e-6, abs=1e-6, nan_ok=True), (name, number)
