"""What holds of every run of jobs with due dates, whatever a legal policy does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.clock import DAY_S
from jobcast.domain.energy import POSTPONED
from tests.contract.energy import check_job, check_nodes
from tests.contract.random_jobs import check_same
from tests.simulator.energy.accounting import cost_of_spans
from tests.simulator.energy.energy_cases import clusters, energy_jobs, metered, workload_of
from tests.simulator.energy.energy_policies import COPIED, Chaos

CLOCK_DEPENDENT = ("decision_s", "decision_max_s")


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
    check_same(log, again, but=CLOCK_DEPENDENT)
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
