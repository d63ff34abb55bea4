from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain import tolerance
from jobcast.domain.jobs import Pool
from jobcast.simulator.log import Spans, by_job, joined
from jobcast.simulator.metrics import (
    against,
    fair_finish_s,
    fidelity,
    figures,
    finish_time_fairness,
    lifetime_contention,
    mean_active,
    queued_s,
    same_jobs,
    saving_pct,
    static_contention,
    utilization_over_time,
)
from tests.scenarios import log_of


def make_log(rows, quotas=(4, 2)):
    """Rows (submit, start, duration, gpus, pool)."""
    submit, start, duration, gpus, pool = (np.array(column) for column in zip(*rows, strict=True))
    pools = tuple(Pool("pq"[i], quota) for i, quota in enumerate(quotas))
    return log_of(submit, start, start + duration, gpus=gpus, pool=pool, pools=pools)


LOG = make_log([(0, 0, 10, 2, 0), (0, 10, 10, 4, 0), (10, 10, 30, 1, 1), (20, 22, 8, 2, 0)])


SUMMARY = ("jobs", "makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "utilization", "events")


def test_summary_by_hand():
    found = figures(LOG)
    assert {name: found[name] for name in SUMMARY} == {
        "jobs": 4,
        "makespan_s": 40.0,
        "mean_jct_s": (10 + 20 + 30 + 10) / 4,
        "p50_jct_s": 15.0,
        "p99_jct_s": pytest.approx(20 + 0.97 * 10),
        "mean_wait_s": (10 + 2) / 4,
        "utilization": pytest.approx((20 + 40 + 30 + 16) / (6 * 40)),
        "events": 8,
    }


def test_summary_after_a_warm_up_counts_later_jobs_alone():
    found = figures(LOG, warmup_until_s=10.0)
    assert found["jobs"] == 2
    assert found["mean_jct_s"] == 20.0
    assert found["makespan_s"] == 30.0
    assert found["utilization"] == pytest.approx((40 + 30 + 16) / (6 * 30))  # the second job holds GPUs too


def test_against_baseline_by_hand():
    base = make_log([(0, 30, 10, 2, 0), (0, 10, 10, 4, 0), (10, 10, 30, 1, 1), (20, 20, 8, 2, 0)])
    speedups = [4, 1, 1, 0.8]
    assert against(LOG, base) == {
        "speedup_mean": pytest.approx(1.7),
        "speedup_gmean": pytest.approx(3.2**0.25),
        "speedup_p5": pytest.approx(np.percentile(speedups, 5)),
        "speedup_p95": pytest.approx(np.percentile(speedups, 95)),
        "slowed_pct": 25.0,
        "slowdown_total_min": pytest.approx(2 / 60),
        "slowdown_max_min": pytest.approx(2 / 60),
    }
    warm = against(LOG, base, warmup_until_s=5.0)
    assert (warm["speedup_mean"], warm["slowed_pct"]) == (pytest.approx(0.9), 50.0)
    assert all(isnan(value) for value in against(LOG, base, warmup_until_s=1e9).values())


LATER = [(-5.0, 0), (0.0, 0), (0.5 * tolerance.LATER_S, 0), (0.0009, 0), (0.0012, 100), (0.01, 100)]


@pytest.mark.parametrize(("later_s", "slowed"), LATER)
def test_slowed_is_later_by_any_second_but_not_by_dust(later_s, slowed):
    base = make_log([(0, 10, 10, 2, 0)])
    found = against(make_log([(0, 10 + later_s, 10, 2, 0)]), base)
    assert found["slowed_pct"] == slowed
    assert found["slowdown_max_min"] == pytest.approx(later_s / 60 if slowed else 0)


def test_logs_of_other_jobs_are_refused():
    for other in (make_log([(0, 0, 10, 2, 0)]), replace(LOG, duration_s=LOG.duration_s + 1)):
        with pytest.raises(ValueError, match="not of the same jobs"):
            same_jobs(LOG, other)


def test_jobs_are_the_same_whose_times_are_but_for_dust():
    unknown = replace(LOG, duration_s=np.array([10.0, 1000.0, 30.0, np.nan]))
    assert same_jobs(unknown, unknown).all()
    for off_s, alike in ((0.0015, True), (0.0025, False)):
        other = replace(unknown, duration_s=unknown.duration_s + np.array([0.0, off_s, 0.0, 0.0]))
        assert (same_jobs_or_none(unknown, other) is not None) == alike
    assert same_jobs(unknown, replace(LOG, law="speedup")).all()  # other GPUs, other run times
    assert same_jobs_or_none(LOG, replace(LOG, submit_s=LOG.submit_s + 0.002)) is None
    assert same_jobs_or_none(LOG, replace(LOG, trace_submit_s=LOG.submit_s)) is None


def same_jobs_or_none(log, base):
    try:
        return same_jobs(log, base)
    except ValueError:
        return None


def test_ends_are_compared_where_submissions_differ():
    """The same jobs of a trace, submitted earlier here: ends 30 and 0 s earlier, .0005 and 20 s later."""
    closed = replace(LOG, trace_submit_s=np.zeros(4))
    base = replace(closed, submit_s=LOG.submit_s + 5.0, end_s=LOG.end_s + np.array([30.0, 0.0, -0.0005, -20.0]))
    found = against(closed, base)
    assert found["ends_earlier_mean_s"] == pytest.approx((30.0 - 0.0005 - 20.0) / 4)
    assert found["ends_later_pct"] == 25.0
    assert not any(name.startswith("ends") for name in against(LOG, LOG))


def test_utilization_over_time_by_hand():
    begins, shares = utilization_over_time(LOG, 10.0)
    assert begins.tolist() == [0, 10, 20, 30]
    assert shares == pytest.approx(np.array([20, 40 + 10, 10 + 16, 10]) / 60)
    later = replace(LOG, submit_s=LOG.submit_s + 5.0)  # steps are counted from the first submission
    assert utilization_over_time(later, 10.0)[0].tolist() == [5, 15, 25, 35]


SPANS = st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(1, 20), st.integers(1, 4), st.integers(0, 1))


@given(st.lists(SPANS, min_size=1, max_size=10), st.floats(0.5, 50))
def test_utilization_over_time_adds_up_to_the_work_done(rows, step_s):
    log = make_log([(at, at + wait, run, gpus, pool) for at, wait, run, gpus, pool in rows])
    begins, shares = utilization_over_time(log, step_s)
    assert len(begins) == len(shares)
    work = sum(run * gpus for _, _, run, gpus, _ in rows)
    assert shares.sum() * step_s * log.total_gpus == pytest.approx(work)


def test_errors_of_forecasts_by_hand():
    """Run times of 10, 10, 30, 8 s were taken for 15, 10, 27 s, and nobody asked about the last one."""
    columns = {
        "forecast_duration_s": np.array([15.0, 10.0 + 1e-12, 27.0, np.nan]),
        "bins_off": np.array([0.0, 1.0, 1.0, np.nan]),
        "forecast_accuracy": np.array([0.5, np.nan, np.nan, 0.9]),
        "final_accuracy": np.array([0.75, 0.5, 0.5, 0.9]),
        "epoch_time_err_pct": np.array([10.0, 20.0, np.nan, 0.0]),
        "predicted_end_s": np.array([20.0, 20.0, 20.0, np.nan]),
    }
    found = figures(replace(LOG, columns=columns))
    assert {name: value for name, value in found.items() if "_err_" in name or "_bin_" in name} == {
        "pred_err_mean_pct": pytest.approx(250 / 3),  # of 20, 20 and 10 s forecast at submission: 10, 0 and 20 s
        "pred_err_p50_pct": pytest.approx(50.0),
        "pred_err_p90_pct": pytest.approx(170.0),
        "pred_err_p99_pct": pytest.approx(197.0),
        "duration_err_mean_pct": pytest.approx(20.0),
        "duration_err_p50_pct": pytest.approx(10.0),
        "duration_err_p90_pct": pytest.approx(42.0),
        "duration_err_p99_pct": pytest.approx(49.2),
        "duration_bin_right_pct": pytest.approx(100 / 3),
        "duration_bin_short_pct": pytest.approx(200 / 3),
        "accuracy_err_mean": 0.125,
        "accuracy_err_p50": 0.125,
        "accuracy_err_p90": pytest.approx(0.225),
        "accuracy_err_p99": pytest.approx(0.2475),
        "epoch_time_err_mean_pct": 10.0,
        "epoch_time_err_p50_pct": 10.0,
        "epoch_time_err_p90_pct": pytest.approx(18.0),
        "epoch_time_err_p99_pct": pytest.approx(19.8),
    }
    late = figures(replace(LOG, columns=columns), warmup_until_s=10.0)
    assert (late["duration_err_mean_pct"], late["duration_bin_right_pct"]) == (pytest.approx(10.0), 0.0)


def test_errors_of_forecasts_that_nobody_asked_for_are_no_numbers():
    found = figures(replace(LOG, columns={"forecast_duration_s": np.full(4, np.nan), "bins_off": np.full(4, np.nan)}))
    told = {name: value for name, value in found.items() if "duration_" in name}
    assert len(told) == 6
    assert all(isnan(value) for value in told.values())


def test_errors_of_short_run_times_are_shares_of_them():
    short = replace(LOG, duration_s=np.array([0.5, 0.0, 30.0, 8.0]))
    found = figures(replace(short, columns={"forecast_duration_s": np.array([1.0, 1.0, np.nan, np.nan])}))
    assert found["duration_err_mean_pct"] == 100.0  # of the second job, which took no time, there is none


def test_a_run_of_no_length_has_no_utilization():
    instant = make_log([(5, 5, 0, 1, 0)], quotas=(1,))
    assert isnan(figures(instant)["utilization"])
    assert [part.tolist() for part in utilization_over_time(instant, 10.0)] == [[5.0], [0.0]]
    assert figures(make_log([(5, 5, 0.25, 1, 0)], quotas=(1,)))["utilization"] == 1.0


def test_what_iterations_dust_saves_is_nothing():
    columns = {"iterations": np.full(4, 100.0), "done": np.array([100.0, 100.0 - 5e-8, 100.0 - 1e-6, 50.0])}
    assert figures(replace(LOG, columns=columns))["stopped_early"] == 2


@pytest.mark.parametrize(("total", "base", "saved"), [(0.25, 0.5, 50.0), (3.0, 2.0, -50.0), (0.0, 0.0, np.nan)])
def test_savings_are_of_what_there_was(total, base, saved):
    assert saving_pct(total, base) == pytest.approx(saved, nan_ok=True)


def test_the_longest_decision_where_the_log_knows_it():
    totals = {"decisions": 4, "decision_s": 0.002, "decision_max_s": 0.00125, "overloads": 3}
    found = figures(replace(LOG, totals=totals))
    assert (found["decisions"], found["decision_ms_mean"], found["decision_ms_max"]) == (4, 0.5, 1.25)
    assert found["overloads"] == 3


def test_energy_of_the_run_or_of_the_jobs_that_count():
    kwh, eur = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 1.0, 1.5, 2.0])
    columns = {"energy_kwh": kwh, "energy_eur": eur, "due_s": np.array([10.0, 2.0, np.inf, 30.0 - 2 * 3600.0])}
    columns["weight"] = np.array([1.0, 2.0, 5.0, 3.0])
    log = replace(LOG, columns=columns, totals={"energy_kwh": 20.0, "energy_eur": 10.0})
    late_eur = (18.0 * 2.0 + 3600.0 * 2.0 * 3.0) / 3600.0
    names = ("energy_kwh", "energy_eur", "tardiness_eur", "total_eur", "late_pct", "tardiness_mean_s")
    found = figures(log)
    expected = (20.0, 10.0, late_eur, 10.0 + late_eur, 200 / 3, (18.0 + 7200.0) / 3)
    assert tuple(found[name] for name in names) == pytest.approx(expected)
    later = figures(log, 10.0)
    assert tuple(later[name] for name in names) == pytest.approx((7.0, 3.5, 6.0, 9.5, 100.0, 7200.0))
    half = replace(log, columns={**columns, "energy_eur": eur / 2}, totals={"energy_kwh": 20.0, "energy_eur": 5.0})
    saved = 100.0 * (1.0 - (5.0 + late_eur) / (10.0 + late_eur))
    assert against(half, log)["saving_pct"] == pytest.approx(saved)
    assert "saving_pct" not in against(half, LOG)
    never = figures(replace(log, columns={**columns, "due_s": np.full(4, np.inf)}))
    assert never["tardiness_eur"] == 0.0
    assert np.isnan([never["late_pct"], never["tardiness_mean_s"]]).all()


def alone_log(submit, end, duration, gpus=1):
    """Jobs of one GPU that have it from their submission on, and need it for so long."""
    return log_of(submit, submit, end, duration_s=np.array(duration, dtype=float), pools=(Pool("all", gpus),))


def test_two_jobs_on_one_gpu_share_it_by_two():
    log = alone_log([0, 0], [10, 30], [10, 20])
    assert static_contention(log) == 2.0
    assert finish_time_fairness(log, 2.0).tolist() == [0.5, 0.75]


def test_a_jobs_own_contention_counts_who_is_there_while_it_is():
    # First: two jobs for 10 s. Second: two for 10 s, then alone for 20 s, (20 + 20) / 30.
    log = alone_log([0, 0], [10, 30], [10, 20])
    assert lifetime_contention(log) == pytest.approx([2.0, 4 / 3])


def test_a_promise_is_kept_to_the_tolerance_of_instants():
    """Promised at submission: 20, 30 and 40 s; ended then, later by rounding, and later; nothing to the last."""
    told_s = np.array([20.0, 30.0, 40.0, np.nan])
    end_s = np.array([20.0, 30.0 + tolerance.INSTANT_S / 2, 41.0, 5.0])
    log = alone_log([0, 10, 0, 0], end_s, [1, 1, 1, 1])
    found = figures(replace(log, columns={**log.columns, "worst_case_end_s": told_s}))
    assert [found[f"promises_{name}"] for name in ("made", "kept", "remade", "broken")] == [3, 2, 0, 1]
    assert found["worst_case_over_jct_p50"] == pytest.approx(20 / 20)
    # Promised 15 s of 10 and 5 of 2; of a job that took no time there is no ratio.
    later = replace(alone_log([5, 5, 5], [15, 7, 5], [1, 1, 0]), columns={"worst_case_end_s": np.array([20.0, 10, 9])})
    assert figures(later)["worst_case_over_jct_p50"] == pytest.approx((15 / 10 + 5 / 2) / 2)


def test_contention_is_never_below_one():
    log = alone_log([0, 100], [10, 130], [10, 20], gpus=8)
    assert static_contention(log) == 1.0
    assert lifetime_contention(log).tolist() == [1.0, 1.0]


def test_time_in_which_nothing_is_held_is_counted_before_between_and_after():
    """a holds GPUs from 0 to 10 and 20 to 30 s, on two nodes for a while, and ends at 40; b from 5 s on to its end."""
    job, node = np.array([0, 1, 0, 0]), np.array([0, 1, 0, 1])
    begin_s, until_s = np.array([0.0, 5.0, 20.0, 22.0]), np.array([10.0, 25.0, 28.0, 30.0])
    log = replace(alone_log([0, 2], [40, 25], [18, 20]), spans=Spans(job, begin_s, until_s, np.ones(4), node))
    assert queued_s(log).tolist() == [20.0, 3.0]


def test_jobs_of_a_moment_have_contention_and_those_of_no_time_have_no_fair_share():
    log = alone_log([0, 0, 5], [0.5, 0.5, 5], [0.25, 0.5, 0])
    assert mean_active(log).tolist() == [2.0, 2.0, 0.0]
    assert finish_time_fairness(log, 1.0).tolist()[:2] == [2.0, 1.0]
    assert np.isnan(finish_time_fairness(log, 1.0)[2])
    assert np.isnan(finish_time_fairness(alone_log([0], [3], [0]), 1.0)[0])  # not endlessly unfair


def test_who_never_waits_is_not_treated_unfairly_by_rounding():
    """Alone for 10, 20 and 40 s: one never waits, one ends later by less than anybody tells, one by a second."""
    log = alone_log([0.3, 100, 200], [10.3 + 4e-9, 120 + tolerance.LATER_S / 2, 241], [10, 20, 40], gpus=4)
    found = figures(log)
    assert found["worst_ftf_lifetime"] == 41 / 40
    assert found["unfair_pct_100"] == found["unfair_pct_100_lifetime"] == pytest.approx(100 / 3)
    assert found["unfair_pct_105"] == found["unfair_pct_105_lifetime"] == 0.0


def test_unfairness_against_processor_sharing_by_hand():
    """Four GPUs. Two each of which a uses 1: 10 s, it takes 15; b uses both: 20 s; c has all of its 2: .25 s of .5.

    d takes no time, so that nothing is unfair to it, and e never ends.
    """
    log = alone_log([0, 0, 10, 5, 0], [15, 20, 10.5, 5, np.nan], [10, 10, 0.25, 0, 10], gpus=4)
    events = np.array([2.0, 2.0, 1.0, 1.0, 2.0])
    log = replace(log, gpus=np.array([1, 4, 2, 1, 1]), columns={"contention_events": events})
    assert fair_finish_s(log).tolist() == [10.0, 20.0, 0.25, 0.0, 10.0]
    found = figures(log)
    assert found["unfairness_mean_pct"] == pytest.approx(50.0)
    assert found["unfairness_p99_pct"] == pytest.approx(99.0)  # of 0, 50 and 100
    longer = replace(log, columns={"contention_events": events, "work_s": np.array([20.0, 40.0, 0.5, 0.0, 10.0])})
    assert figures(longer)["unfairness_mean_pct"] == pytest.approx(100 / 3)


def test_unfairness_by_sharing_counts_from_the_submission():
    """Shared out equally, a would have run for 8 of its 10 s, b for 20 of its 10; c took no time of none."""
    log = replace(alone_log([2, 2, 2], [12, 12, 2], [10, 10, 0]), columns={"shared_end_s": np.array([10.0, 22.0, 2.0])})
    found = figures(log)
    assert found["unfairness_mean_pct_by_sharing"] == pytest.approx(25 / 2)


def test_unfairness_over_time_by_hand():
    """a beside b for 10 s, then b alone: on average 2 and 1.5 jobs share four GPUs that each could use."""
    log = replace(alone_log([0, 0], [10, 20], [10, 10], gpus=4), gpus=np.array([4, 4]))
    assert fair_finish_s(log, over_time=True) == pytest.approx([20.0, 15.0])
    found = figures(log)
    assert found["unfairness_mean_pct_over_time"] == pytest.approx(100 / 6)
    assert found["unfairness_p99_pct_over_time"] == pytest.approx(33.0)


def test_shares_of_unfair_jobs_at_three_thresholds():
    log = alone_log([0, 0, 0, 0], [10, 10.4, 10.8, 12], [10, 10, 10, 10], gpus=4)
    found = figures(log)
    assert found["worst_ftf"] == pytest.approx(1.2)
    assert (found["unfair_pct_100"], found["unfair_pct_105"], found["unfair_pct_110"]) == (75.0, 50.0, 25.0)
    assert found["worst_ftf_lifetime"] == pytest.approx(1.2)


def test_run_times_alone_may_be_others_than_those_executed():
    log = alone_log([0], [10], [10])
    assert figures(replace(log, columns={"exclusive_s": np.array([5.0])}))["worst_ftf"] == 2.0


def test_jobs_before_the_warmup_and_those_that_never_ran_count_for_nothing():
    log = alone_log([0, 100], [50, np.nan], [10, 10])
    found = figures(log, warmup_until_s=100.0)
    assert np.isnan(found["worst_ftf"])
    assert np.isnan(found["unfair_pct_105"])


def rows_after(*rows):
    job, node, gpus, from_s, until_s = zip(*rows, strict=True)
    times = [np.array(column, dtype=float) for column in (from_s, until_s, gpus)]
    found = by_job(joined(Spans(np.array(job), *times, np.array(node))))
    columns = (found.job, found.node, found.gpus, found.from_s, found.until_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_by_job_and_time():
    rows = [(1, 0, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (0, 1, 1, 0.0, 5.0)]
    assert rows_after(*rows) == [(0, 1, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (1, 0, 1, 0.0, 5.0)]


def test_in_a_logs_order_ends_come_first():
    rows = [(1, 0, 1.0, 0.0, 5.0), (0, 1, 1.0, 7.0, 9.0), (0, 0, 1.0, 7.0, 9.0), (0, 1, 1.0, 0.0, 5.0)]
    job, node, gpus, from_s, until_s = (np.array(column) for column in zip(*rows, strict=True))
    found = joined(Spans(job, from_s, until_s, gpus, node))
    assert found.until_s.tolist() == [5.0, 5.0, 9.0, 9.0]
    assert found.job.tolist() == [0, 1, 0, 0]
    assert found.node.tolist() == [1, 0, 0, 1]


def test_what_goes_on_alike_is_one_span():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.0, 6.0), (0, 0, 1, 6.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]
    assert rows_after(*rows) == [(0, 0, 1, 0.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]


def test_what_goes_on_beside_another_node_is_one_span():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 1, 1, 2.0, 6.0), (0, 0, 1, 5.0, 8.0)]
    assert rows_after(*rows) == [(0, 0, 1, 0.0, 8.0), (0, 1, 1, 2.0, 6.0)]


def test_pauses_and_other_nodes_part_spans():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.5, 6.0), (0, 1, 1, 6.0, 7.0)]
    assert rows_after(*rows) == rows


def test_empty_spans_are_left_out():
    assert rows_after((0, 0, 1, 5.0, 5.0), (0, 0, 1, 5.0, 6.0)) == [(0, 0, 1, 5.0, 6.0)]
    assert rows_after((0, 0, 1, 5.0, 5.0)) == []


DAY_S = 86_400.0
ALL = np.ones(4, dtype=np.bool_)


def recorded(*starts, by=LOG):
    return replace(by, columns={"recorded_start_s": np.array(starts)})


def test_fidelity_by_hand():
    # Off by 0, 10, 90 and 0 s; recorded waits of 0, 20, 90 and 2 s, of which each counts as 60 at least.
    found = fidelity(recorded(0.0, 20.0, 100.0, 22.0005), ALL)
    assert found["weeks"] == [{"from": "1969-12-29", **{key: found[key] for key in ("n", "median", "p90")}}]
    assert found["n"] == 4
    assert found["median"] == pytest.approx((0.0 + 10 / 60) / 2)
    assert found["p90"] == pytest.approx(10 / 60 + 0.7 * (1.0 - 10 / 60))


def test_fidelity_by_week_from_monday():
    rows = [(4 * DAY_S - 1, 4 * DAY_S, 1, 1, 0), (4 * DAY_S, 4 * DAY_S, 1, 1, 0), (12 * DAY_S, 12 * DAY_S, 1, 1, 0)]
    found = fidelity(recorded(4 * DAY_S, 4 * DAY_S + 60, 12 * DAY_S, by=make_log(rows)), ALL[:3])
    assert [(one["from"], one["n"], one["median"]) for one in found["weeks"]] == [
        ("1969-12-29", 1, 0.0),
        ("1970-01-05", 1, 1.0),
        ("1970-01-12", 1, 0.0),
    ]


def test_fidelity_counts_who_has_both_starts_and_as_of_an_instant_who_had_started():
    log = recorded(0.0, np.nan, 100.0, 10.0)
    assert fidelity(log, ALL)["n"] == 3
    assert fidelity(log, np.array([True, False, False, False]))["n"] == 1
    # By 15 the third had not started yet, and of the fourth (at 22 here) it is known that it is 5 s late at least.
    early = fidelity(log, ALL, by_s=15.0)
    assert (early["n"], early["p90"]) == (2, pytest.approx(0.9 * 5 / 60))
    assert fidelity(log, ALL, by_s=10.0)["n"] == 2  # who starts at the instant has started
    assert fidelity(LOG, ALL) is None
    assert fidelity(recorded(*[np.nan] * 4), ALL) is None
    assert fidelity(replace(log, trace_submit_s=log.submit_s), ALL) is None


def test_fidelity_is_of_starts_that_the_run_decided():
    log = replace(recorded(0.0, 20.0, 100.0, 10.0), begin_s=10.0)
    # The first and the last ran when the run began, as the trace has it; nothing is left by 15.
    assert fidelity(log, ALL)["n"] == 2
    assert fidelity(log, ALL, by_s=15.0) is None
