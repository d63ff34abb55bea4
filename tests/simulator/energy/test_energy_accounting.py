"""Energy, cost and power from spans alone."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.clock import DAY_S
from jobcast.domain.energy import POSTPONED
from jobcast.domain.jobs import Job
from jobcast.domain.policy import ANYWHERE, Cell, Grant
from jobcast.simulator.log import Spans
from jobcast.simulator.meters import EnergyMeter, price_seconds_between
from tests.contract.energy import check_job, check_nodes
from tests.contract.random_jobs import check_same
from tests.simulator.energy.accounting import cost_of_spans, price_seconds
from tests.simulator.energy.energy_cases import cluster_of, clusters, energy_jobs, metered, tariff_of, workload_of
from tests.simulator.energy.energy_policies import COPIED, Chaos

NODE = (0.0, 100.0, 180.0)


def spans_of(*rows):
    """(job, node, gpus, from_s, until_s) rows."""
    job, node, gpus, from_s, until_s = zip(*rows, strict=True) if rows else ((),) * 5
    times = [np.array(column, dtype=float) for column in (from_s, until_s, gpus)]
    return Spans(np.array(job, dtype=np.int64), *times, np.array(node, dtype=np.int64))


@st.composite
def tariffs(draw):
    quarters = draw(st.lists(st.integers(1, 95), max_size=4, unique=True))
    return tariff_of((0, draw(st.floats(0.01, 1))), *((q / 4, draw(st.floats(0.01, 1))) for q in sorted(quarters)))


def test_cost_of_two_jobs_on_a_node():
    """100 W for 100 s, 180 W for 300 s, 100 W for 200 s; the other node is never used."""
    cluster = cluster_of((2, NODE), pue=1.5, price=0.2)
    found = cost_of_spans(spans_of((0, 0, 1, 0.0, 600.0), (1, 0, 1, 100.0, 400.0)), cluster)
    assert found.kwh == pytest.approx([84e3 / 3.6e6, 0.0], rel=1e-12)
    assert found.eur == pytest.approx([0.007, 0.0], rel=1e-12)


def test_idle_nodes_count_between_the_bounds():
    cluster = cluster_of((1, (40.0, 100.0)), (1, (10.0, 100.0)))
    one = spans_of((0, 0, 1, 100.0, 150.0))
    assert cost_of_spans(one, cluster).kwh * 3.6e6 == pytest.approx([5000.0, 500.0])
    assert cost_of_spans(one, cluster, 0.0, 200.0).kwh * 3.6e6 == pytest.approx([5000.0 + 6000.0, 2000.0])
    assert cost_of_spans(spans_of(), cluster, 0.0, 200.0).kwh * 3.6e6 == pytest.approx([8000.0, 2000.0])
    assert not cost_of_spans(spans_of(), cluster).eur.any()


def test_in_the_midst_of_a_decision_more_may_be_in_use_than_there_is():
    """100 W for 10 s; then a job takes both GPUs of the node before the other has given back the one it held."""
    meter, run = EnergyMeter(cluster_of((1, NODE))), SimpleNamespace(origin_s=0.0, now_s=0.0)
    leaves, comes = Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", 0.0, 2)
    one, both = (Grant(gpus, (Cell(0, ANYWHERE, gpus),)) for gpus in (1, 2))
    meter.change(run, leaves, None, one)
    run.now_s = 10.0
    meter.change(run, comes, None, both)
    meter.change(run, leaves, one, None)
    assert (meter.used.tolist(), meter.drawn[0, 0] * 3.6e6) == ([2], pytest.approx(1000.0))


@pytest.mark.parametrize(
    ("from_s", "until_s", "wanted"),
    [
        (0.0, 0.0, 0.0),
        (100.0, 200.0, 10.0),
        (28_700.0, 28_900.0, 10.0 + 20.0),
        (86_300.0, 86_500.0, 20.0 + 10.0),
        (86_300.0, 86_300.0 + DAY_S, 2880.0 + 11_520.0),
        (-100.0, 100.0, 20.0 + 10.0),
        (1.6e9 + 0.25, 1.6e9 + 1.25, 0.2),
        (1.6e9 + 0.25, 1.6e9 + 0.265625, 0.2 / 64),
    ],
)
def test_price_by_time_of_day(from_s, until_s, wanted):
    """0.1 until 8:00, then 0.2; 1.6e9 s is 12:26:40."""
    tariff = tariff_of((0, 0.1), (8, 0.2))
    assert price_seconds(tariff, np.array([from_s]), np.array([until_s]))[0] == pytest.approx(
        wanted, rel=1e-12, abs=0.0
    )
    assert price_seconds_between(tariff, from_s, until_s) == pytest.approx(wanted, rel=1e-12, abs=0.0)


@given(tariffs(), st.floats(0.0, 2e9), st.lists(st.floats(0.0, 4e5), min_size=1, max_size=4))
def test_the_closed_form_is_the_walk_and_adds_up(tariff, from_s, lengths):
    edges = from_s + np.cumsum([0.0, *lengths])
    parts = price_seconds(tariff, edges[:-1], edges[1:])
    walked = [price_seconds_between(tariff, a, b) for a, b in pairwise(edges)]
    assert parts == pytest.approx(walked, rel=1e-9, abs=1e-9)
    whole = price_seconds(tariff, edges[:1], edges[-1:])[0]
    assert parts.sum() == pytest.approx(whole, rel=1e-9, abs=1e-9)
    low, high = tariff.price_eur_kwh.min(), tariff.price_eur_kwh.max()
    span_s = edges[-1] - edges[0]
    assert low * span_s * (1 - 1e-9) - 1e-9 <= whole <= high * span_s * (1 + 1e-9) + 1e-9


def test_a_walk_ends_where_prices_begin_at_odd_instants():
    """An hour of 4.1 and a begin near 1.6e9 do not add up exactly."""
    tariff = tariff_of((0, 0.1), (4.1, 0.2), (17.3, 0.3))
    walked = price_seconds_between(tariff, 1.6e9 + 0.1, 1.6e9 + 0.1 + 10 * DAY_S)
    assert walked == pytest.approx(10 * 3600.0 * (4.1 * 0.1 + 13.2 * 0.2 + 6.7 * 0.3), rel=1e-9)


# What holds of every run of jobs with due dates, whatever a legal policy does.


@st.composite
def runs(draw, idle=False, begins=(0.0, 80_000.0, 1.6e9)):
    """A workload whose epochs take other times than believed, and the settings of a run."""
    cluster = draw(clusters(idle=idle, tariffs=True))
    jobs = draw(energy_jobs(cluster, begin_s=draw(st.sampled_from(begins))))
    factor = draw(st.sampled_from([1.0, 0.8, 1.3]))
    given = {
        "period_s": draw(st.sampled_from([300.0, 450.0])),
        "on_events": draw(st.booleans()),
        "snapshot_epochs": draw(st.integers(1, 3)),
        "restart_s": draw(st.sampled_from([0.0, 20.0])),
    }
    return workload_of(jobs, cluster, jobs.epoch_s * factor), draw(st.integers(0, 999)), given


def replayed(case):
    workload, seed, given = case
    policy = Chaos(seed)
    log, meter = metered(workload, policy, **given)
    return log, meter, policy


@given(st.booleans().flatmap(lambda idle: runs(idle=idle)))
def test_what_holds_of_every_run(case):
    """As of every policy in tests/contract, of idle nodes too; a second run is the same, to what policies are shown."""
    (workload, _, given), (log, meter, policy), (again, _, other) = case, replayed(case), replayed(case)
    cluster = workload.cluster
    found = cost_of_spans(log.spans, cluster, float(log.submit_s.min()), float(log.end_s.max()))
    assert found.kwh == pytest.approx(meter.drawn[:, 0], rel=1e-9, abs=1e-300)
    assert found.eur == pytest.approx(meter.drawn[:, 1], rel=1e-9, abs=1e-300)
    shares = np.array([log.columns["energy_kwh"].sum(), log.columns["energy_eur"].sum()])
    busy = cost_of_spans(log.spans, cluster)
    if cluster.power_w[:, 0].any():  # idle nodes draw what belongs to no job
        assert (shares <= meter.drawn.sum(axis=0) * (1 + 1e-9)).all()
    else:
        assert shares == pytest.approx([busy.kwh.sum(), busy.eur.sum()], rel=1e-9, abs=0.0)
    assert (log.start_s >= log.submit_s).all()
    check_nodes(log, cluster)
    for job in range(len(log)):
        check_job(log, workload, job, given["restart_s"])
        rows = np.flatnonzero(log.spans.job == job)
        assert log.spans.from_s[rows][0] == log.start_s[job]
        assert len(rows) == 1 + log.preemptions[job] + log.columns["migrations"][job]
    check_same(log, again)
    for mine, its in zip(policy.views, other.views, strict=True):
        assert all(np.array_equal(getattr(mine, name), getattr(its, name)) for name in COPIED)


@given(runs())
def test_calls_and_views(case):
    """A call at each submission, completion and grid point with active jobs, and at no other time; sound views."""
    given = case[2]
    log, _, policy = replayed(case)
    at_s = np.array([view.now_s for view in policy.views])
    assert (np.diff(at_s) > 0.0).all()
    origin_s, period_s = log.submit_s[0], given["period_s"]
    grid = origin_s + period_s * np.arange(np.ceil((log.end_s.max() - origin_s) / period_s) + 1)
    instants = np.concatenate([grid, *([log.submit_s, log.end_s] if given["on_events"] else [])])
    there = [((log.submit_s <= t) & (log.end_s > t)).any() for t in instants]
    wanted = np.unique(instants[there])
    gap = np.abs(wanted[:, None] - at_s[None, :])
    assert (gap.min(axis=1) <= 2e-6).all()
    assert (gap.min(axis=0) <= 2e-6).all()
    for view in policy.views:
        active = (log.submit_s <= view.now_s) & (log.end_s > view.now_s)
        assert view.active.tolist() == np.flatnonzero(active).tolist()
        assert (view.left[view.active] > 0.0).all()
        assert (view.left_saved >= view.left).all()
        waits = view.node_of == POSTPONED
        assert (view.left_saved[waits] == view.left[waits]).all()
        assert (view.gpus_of[waits] == 0).all()
        assert ((log.start_s < view.now_s) == view.started)[view.active].all()


@given(runs(begins=(0.0, 50_000.0)), st.integers(1, 400))
def test_a_run_some_days_later_costs_the_same(case, days):
    workload, _, given = case
    later_s = days * DAY_S
    jobs = workload.jobs._replace(submit_s=workload.jobs.submit_s + later_s, due_s=workload.jobs.due_s + later_s)
    first, meter, _ = replayed(case)
    second, metered_later, _ = replayed((workload_of(jobs, workload.cluster, workload.true_s), case[1], given))
    assert second.end_s - later_s == pytest.approx(first.end_s, abs=1e-4)
    assert metered_later.drawn[:, 1] == pytest.approx(meter.drawn[:, 1], rel=1e-6)
