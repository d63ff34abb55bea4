from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain import tolerance
from jobcast.domain.jobs import Pool
from jobcast.simulator.log import RunLog, flat_spans
from jobcast.simulator.metrics import against, figures, same_jobs, utilization_over_time


def make_log(rows, quotas=(4, 2), policy="x"):
    """Rows (submit, start, duration, gpus, pool)."""
    submit, start, duration, gpus, pool = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    count, end = len(rows), start + duration
    ran = np.isfinite(end)
    return RunLog(
        policy=policy,
        pools=tuple(Pool("pq"[i], quota) for i, quota in enumerate(quotas)),
        submit_s=submit,
        start_s=start,
        end_s=end,
        duration_s=duration,
        gpus=gpus.astype(np.int64),
        pool=pool.astype(np.int64),
        preemptions=np.zeros(count, dtype=np.int64),
        dedicated=np.ones(count, dtype=np.bool_),
        spans=flat_spans(np.flatnonzero(ran), start[ran], end[ran], gpus[ran]),
        events=2 * count,
    )


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


def test_jobs_that_never_ran_are_left_out_of_times():
    found = figures(make_log([(0, 0, 10, 2, 0), (0, np.nan, 10, 2, 0)]))
    assert (found["jobs"], found["mean_jct_s"], found["makespan_s"]) == (2, 10, 10)
    assert isnan(figures(LOG, warmup_until_s=1e9)["mean_jct_s"])


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


def test_a_run_against_itself_gains_nothing():
    found = against(LOG, LOG)
    assert (found["speedup_gmean"], found["slowed_pct"], found["slowdown_total_min"]) == (1, 0, 0)


def test_logs_of_other_jobs_are_refused():
    for other in (make_log([(0, 0, 10, 2, 0)]), replace(LOG, duration_s=LOG.duration_s + 1)):
        with pytest.raises(ValueError, match="not of the same jobs"):
            same_jobs(LOG, other)


def test_utilization_over_time_by_hand():
    begins, shares = utilization_over_time(LOG, 10.0)
    assert begins.tolist() == [0, 10, 20, 30]
    assert shares == pytest.approx(np.array([20, 40 + 10, 10 + 16, 10]) / 60)


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
        "bins_off": np.array([0.0, 1.0, -1.0, np.nan]),
        "forecast_accuracy": np.array([0.5, np.nan, np.nan, 0.9]),
        "final_accuracy": np.array([0.75, 0.5, 0.5, 0.9]),
        "epoch_time_err_pct": np.array([10.0, 20.0, np.nan, 0.0]),
    }
    found = figures(replace(LOG, columns=columns))
    assert {name: value for name, value in found.items() if "_err_" in name or "_bin_" in name} == {
        "duration_err_mean_pct": pytest.approx(20.0),
        "duration_err_p50_pct": pytest.approx(10.0),
        "duration_err_p90_pct": pytest.approx(42.0),
        "duration_err_p99_pct": pytest.approx(49.2),
        "duration_bin_right_pct": pytest.approx(100 / 3),
        "duration_bin_short_pct": pytest.approx(100 / 3),
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
