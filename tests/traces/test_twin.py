"""A twin: like its log where queues are made, and no job of it."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.generators import generate
from jobcast.traces.likeness import dispersion, likeness
from jobcast.traces.pools import peak_demand
from jobcast.traces.table import Trace
from jobcast.traces.twin import Items, _kinds, draw_like, levels, rigid, twin_of
from tests.shared import refused

DAY_S = 86400.0


@pytest.fixture(scope="module")
def campus() -> Trace:
    return generate("campus", 3, {"weeks": "2", "pools": "3", "jobs": "3000"})[0]


@pytest.fixture(scope="module")
def twin(campus) -> Trace:
    return twin_of(campus, seed=1)


def test_the_same_seed_draws_the_same_twin_and_another_does_not(campus, twin):
    assert twin_of(campus, seed=1).jobs.equals(twin.jobs)
    assert not twin_of(campus, seed=2).jobs.equals(twin.jobs)


def test_it_does_not_hang_on_the_order_in_which_the_log_holds_its_rows(campus, twin):
    shuffled = Trace.from_frame(campus.jobs.sample(fraction=1.0, shuffle=True, seed=5), name="shuffled")
    assert twin_of(shuffled, seed=1).jobs.equals(twin.jobs)


def test_no_row_is_copied(campus, twin):
    for column in ("submit_time", "duration"):
        same = np.isin(twin.jobs[column].to_numpy(), campus.jobs[column].to_numpy())
        # times to the millisecond meet by chance
        assert same.mean() < 0.01
    both = ["submit_time", "duration"]
    assert not twin.jobs.join(campus.jobs, on=both, how="semi").height


def test_it_is_like_its_log(campus, twin):
    told = likeness(campus, twin)
    assert told["jobs"]["release"] == pytest.approx(len(campus), rel=0.02)
    assert told["ks"]["widths"] < 0.01
    assert told["ks"]["run_times"] < 0.05
    assert told["load_error_max"] < 0.2
    for pair in told["dispersion"].values():
        assert pair["release"] == pytest.approx(pair["log"], rel=0.4)


def test_bursts_are_drawn_and_not_only_rates(campus, twin):
    """A Poisson process of the same rates would have an index of dispersion near 1 within five minutes."""
    own = dispersion(campus.submit_s, 300.0)
    assert own > 4
    assert dispersion(twin.submit_s, 300.0) > 0.7 * own


def test_a_timer_stays_a_timer(make_trace):
    """A stream that comes every ten minutes does so in the twin."""
    trace = make_trace(*(("p", 600.0 * number, 100.0 + number % 7, 1) for number in range(1000)))
    gaps_s = np.diff(twin_of(trace).submit_s)
    assert np.median(gaps_s) == pytest.approx(600, rel=0.05)
    assert gaps_s.std() < 100


def test_jobs_of_one_second_stay_jobs_of_one_second(make_trace):
    # arrays of four tasks at a time, in a log of whole seconds
    at_s = np.cumsum(np.random.default_rng(0).integers(100, 3000, 300)).astype(float)
    for later, same in ((0.0, 0.75), (0.5, 0.0)):
        log = make_trace(*(("p", t_s + later * (index % 2), 60.0, 1) for index, t_s in enumerate(np.repeat(at_s, 4))))
        gaps_s = np.diff(twin_of(log, seed=1).submit_s)
        assert (gaps_s == 0.0).mean() == pytest.approx(same, abs=0.1)


def test_a_silence_of_years_stays_one(make_trace):
    """Two stretches of ten weeks seven years apart, and one job between them, which comes at another time."""
    rng = np.random.default_rng(0)
    busy = np.sort(rng.uniform(0.0, 70.0 * DAY_S, 400))
    submit_s = [*busy, 1300.0 * DAY_S, *(busy + 2600.0 * DAY_S)]
    trace = make_trace(*(("p", at, 100.0 + number % 50, 1) for number, at in enumerate(submit_s)))
    drawn = twin_of(trace).submit_s / DAY_S
    assert len(drawn) == pytest.approx(len(submit_s), rel=0.02)
    assert not ((drawn > 80) & (drawn < 2590)).any()
    assert (drawn > 2590).mean() == pytest.approx(0.5, abs=0.1)


def test_run_times_of_wide_jobs_stay_theirs(make_trace):
    rng = np.random.default_rng(0)
    wide = rng.random(2000) < 0.3
    lasted_s = np.where(wide, 10_000.0, 100.0) * rng.lognormal(0, 0.5, 2000)
    rows = [("p", 500.0 * at, float(lasted_s[at]), 8 if wide[at] else 1) for at in range(2000)]
    twin = twin_of(make_trace(*rows))
    assert np.median(twin.duration_s[twin.gpus == 8]) == pytest.approx(10_000, rel=0.15)
    assert np.median(twin.duration_s[twin.gpus == 1]) == pytest.approx(100, rel=0.15)


def test_weeks_set_the_length_and_the_load_an_hour_stays(campus):
    twin = twin_of(campus, weeks=5, seed=0)
    assert twin.submit_s[-1] - twin.submit_s[0] == pytest.approx(35 * DAY_S, rel=0.05)
    assert twin.gpu_time_s.sum() == pytest.approx(2.5 * campus.gpu_time_s.sum(), rel=0.1)


def test_values_follow_their_group_and_their_burst():
    """By hand: two pools whose values cannot be mistaken, bursts of two equal values each."""
    pool = np.repeat([0, 1], 200)
    burst = np.repeat(np.arange(200), 2)
    items = Items(pool, pool, burst)
    values = np.repeat(np.random.default_rng(0).permutation(100), 2).astype(float)
    values = np.concatenate((values, values + 1000.0))
    drawn = draw_like(values, items, items, levels(items, items), np.random.default_rng(1))
    assert set(drawn[:200]) <= set(values[:200])
    assert set(drawn[200:]) <= set(values[200:])
    # stratified levels: the sums agree closely, and neighbours in a burst are near
    assert drawn[:200].mean() == pytest.approx(values[:200].mean(), abs=1.0)
    assert np.corrcoef(drawn[:200:2], drawn[1:200:2])[0, 1] > 0.7


def test_a_user_with_few_jobs_draws_from_the_pool():
    old = Items(np.zeros(105, int), np.repeat([0, 1], [100, 5]), np.arange(105))
    values = np.concatenate((np.arange(100.0), np.full(5, 50.0)))
    drawn = draw_like(values, old, old, levels(old, old), np.random.default_rng(0))
    assert len(set(drawn[100:])) > 1


def test_limits_stay_above_the_run_times_that_kept_them(campus):
    limits = (campus.jobs["duration"] / 3600).ceil() * 3600
    twin = twin_of(replace(campus, jobs=campus.jobs.with_columns(time_limit_s=limits, state=pl.lit("killed by bob"))))
    assert (twin.jobs["time_limit_s"] >= twin.jobs["duration"]).all()
    assert twin.jobs["state"].is_null().all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tiny_logs(make_trace, count):
    rows = [("p", 60.0 * at, 5.0, 1) for at in range(count)]
    twin = twin_of(make_trace(*rows, user=["one"] * count))
    assert len(twin) == count
    assert twin.jobs["duration"].min() > 0


def test_a_pool_of_few_bursts_keeps_its_jobs(make_trace):
    """What few bursts tell is drawn from other pools', but not how many jobs a pool has."""
    rows = [("busy", 900.0 * at, 100.0, 1) for at in range(600)]
    rows += [("rare", 7200.0 * burst + 10.0 * at, 100.0, 1) for burst in range(3) for at in range(40)]
    pools = twin_of(make_trace(*rows)).jobs["pool"].to_list()
    assert (pools.count("busy"), pools.count("rare")) == (600, 120)


def test_few_wide_and_long_jobs_keep_their_pools_load(make_trace):
    rng = np.random.default_rng(0)
    few = rng.permutation(400) < 12
    lasted_s = np.where(few, 200_000.0, 60.0) * rng.lognormal(0, 0.3, 400)
    rows = [("p", 1000.0 * at, float(lasted_s[at]), int(rng.choice([4, 8, 16])) if few[at] else 1) for at in range(400)]
    trace = make_trace(*rows)
    for seed in range(5):
        assert twin_of(trace, seed=seed).gpu_time_s.sum() == pytest.approx(trace.gpu_time_s.sum(), rel=0.1)


def test_nights_have_wider_and_longer_jobs_where_the_logs_have(make_trace):
    hours = np.arange(24 * 60)
    rows = [("p", 3600.0 * h, 9000.0 if h % 24 < 6 else 60.0, 16 if h % 24 < 6 else 1) for h in hours]
    twin = twin_of(make_trace(*rows))
    night = twin.submit_s // 3600 % 24 < 6
    assert np.log2(twin.gpus[night]).mean() > 1.5 * np.log2(twin.gpus[~night]).mean()
    assert np.log(twin.duration_s[night]).mean() > 1 + np.log(twin.duration_s[~night]).mean()


def test_nothing_waits_in_the_twin_of_a_log_of_starts(make_trace):
    """Each job of the log begins where the one before it ends: its demand never goes above 4 GPUs."""
    rng = np.random.default_rng(0)
    lasted_s = rng.lognormal(6, 1, 500)
    begins_s = np.concatenate(([0.0], np.cumsum(lasted_s)[:-1]))
    jobs = zip(begins_s.tolist(), lasted_s.tolist(), rng.integers(1, 5, 500).tolist(), strict=True)
    log = make_trace(*(("p", *job) for job in jobs))
    twin = twin_of(log)
    # stamps are whole microseconds
    for trace in (log, twin):
        assert peak_demand(trace.submit_s, trace.duration_s - 1e-5, trace.gpus) == 4


def test_kinds_are_of_ten_users_of_a_pool_or_of_all():
    """By hand: a pool of 21 streams is two kinds, the rarer eleven and the busier ten; one of 3 is one kind."""
    stream = np.repeat(np.arange(24), [*range(1, 22), 1, 2, 3])
    pool = (stream >= 21).astype(int)
    assert _kinds(pool, stream).tolist() == [0] * 11 + [1] * 10 + [2] * 3


def test_the_hours_at_which_a_user_works_are_the_pools(make_trace):
    """Half of the users work from 0 to 6, half from 12 to 18: none of the twin's is known by that, the pool's are."""
    rng = np.random.default_rng(0)
    rows = [(86400.0 * day + 3600.0 * rng.uniform(0, 6) + 43200.0 * (user % 2), user)
            for user in range(10) for day in range(40)]  # fmt: skip
    log = make_trace(*(("p", at, 60.0, 1) for at, _ in rows), user=[f"u{user}" for _, user in rows])
    twin = twin_of(log)
    late = twin.submit_s % DAY_S >= DAY_S / 2
    assert late.mean() == pytest.approx(0.5, abs=0.05)
    assert (((twin.submit_s % (DAY_S / 2)) / 3600.0) < 7).mean() > 0.9
    shares = [late[(twin.jobs["user"] == f"u{user}").to_numpy()].mean() for user in range(10)]
    assert 0.3 < min(shares) <= max(shares) < 0.7


def test_open_jobs_count_as_arrivals(make_trace):
    rows = [("p", 3600.0 * at, None if at % 2 else 50.0 + at, 1 + at % 3) for at in range(60)]
    twin = twin_of(make_trace(*rows))
    assert len(twin) == 60
    assert twin.ended.all()


def test_mistakes(make_trace):
    refused(TraceError, "no job has a duration", twin_of, make_trace(("p", 0.0, None, 1)))
    refused(ConfigError, "weeks must be 1 or more, got 0", twin_of, make_trace(("p", 0.0, 1.0, 1)), weeks=0)


def test_elastic_jobs_are_drawn_on_all_their_gpus(make_trace):
    """On one GPU each lasts 8000 s, on its eight 1000: the twin, whose jobs are rigid, has the latter."""
    rows = [("a", 3600.0 * at, 8000.0, 8) for at in range(40)]
    log = make_trace(*rows, min_gpus=[1] * 40)
    made = twin_of(log, seed=1)
    assert not made.elastic.any()
    assert made.gpu_time_s.sum() == pytest.approx(log.gpu_time_s.sum(), rel=0.1)
    assert rigid(log).duration_s.tolist() == [1000.0] * 40
    assert rigid(log).notes[-1].startswith("duration: 40 of 40 hold on fewer GPUs")
    plain = make_trace(*rows)
    assert rigid(plain) is plain
