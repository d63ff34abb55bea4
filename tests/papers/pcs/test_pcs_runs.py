"""Runs and their figures, windows of a trace, and the tables made of them."""

import numpy as np
import pytest

from jobcast.schedulers.elastic.config import WfqConfig
from papers.pcs.aims import aims_table, reaches, window
from papers.pcs.measured import THEIRS, compared, published_configs
from papers.pcs.runs import Task, figures_of, policies, run
from papers.pcs.toy import play_toy
from papers.pcs.workloads import automl, gavel, published
from papers.runs import Done, means

INF = float("inf")


def test_one_queue_without_caps_is_fifo():
    scenario = automl(0, 40)
    fifo, pcs = (
        run(task) for task in (*policies("c", scenario, ["elastic_fifo"]), Task("c", "p", scenario, config=WfqConfig()))
    )
    assert pcs.log.end_s == pytest.approx(fifo.log.end_s)
    assert fifo.figures["max_error_pct"] == pytest.approx(0.0, abs=1e-9)


def test_preemption_costs_time_and_whole_gpus_are_whole():
    scenario, config = automl(0, 60), WfqConfig((900.0, INF), (0.7, 0.3))
    free, dear = (run(Task("c", "p", scenario, config=config, whole=True, preempt_s=cost)) for cost in (0.0, 60.0))
    assert dear.figures["mean_jct_s"] > free.figures["mean_jct_s"]
    assert dear.figures["preemptions_a_job"] > 0


def test_declared_sizes_may_be_wrong_while_work_is_not():
    right, wrong = automl(3, 30).workload, automl(3, 30, noise=0.4).workload
    assert np.array_equal(right.size_s, wrong.size_s)
    ratio = wrong.jobs.size_s / right.size_s
    assert ((ratio >= 0.6) & (ratio <= 1.4)).all()
    assert not np.allclose(ratio, 1.0)


def test_run_times_at_a_jobs_width_are_more_work():
    narrow, wide = gavel(0, 50, at_width=False).workload, gavel(0, 50).workload
    assert wide.size_s == pytest.approx(narrow.size_s * narrow.jobs.most, rel=1e-6)  # linear speedup


def done(case, name, error, jct):
    figures = dict.fromkeys(figures_of(play_toy("elastic_fifo")), 1.0)
    return Done(case, name, {**figures, "mean_error_pct": error, "mean_jct_s": jct}, play_toy("elastic_fifo"))


def test_aims_by_hindsight_are_those_of_the_first_window():
    first, second = window("ee9e8c"), window("ee9e8c", 301)
    runs = [done(case, "Tiresias (SRSF)", 8.0, 100.0) for case in (first, second)]
    runs += [done(case, name, 4.0, 110.0) for case in (first, second) for name in ("PCS-jct", "PCS-bal", "PCS-pred")]
    rows = {
        "row 0": ((2.0, 130.0), (4.0, 100.0)),
        "row 1": ((1.0, 131.0), (1.0, 100.0)),
        "row 2": ((1.8, 120.0), (2.0, 120.0)),
    }
    for name, pairs in rows.items():
        runs += [done(f"front, {case}", name, *pair) for case, pair in zip((first, second), pairs, strict=True)]
    lines = aims_table(means(runs), ["ee9e8c"]).splitlines()[2:]
    assert lines[0].endswith("| 0.50 at 1.10 | 2 of 3 | row 2: 0.23 at 1.20 |")  # row 1 takes too long
    assert lines[1].endswith("| 2 of 3 | row 2: 0.25 at 1.20 |")
    assert reaches((0.25, 1.3))
    assert not reaches((0.26, 1.0))


def test_published_runs_come_out_to_the_millisecond(traces):
    scenario = published(traces, "0e4a51")
    tasks = [
        *policies("c", scenario, ("elastic_fifo", "srsf")),
        Task("c", THEIRS[1], scenario, config=published_configs(traces)[THEIRS[1]]),
    ]
    rows = [line.split(" | ") for line in compared(traces, [run(task) for task in tasks]).splitlines()[2:]]
    assert [row[2] for row in rows] == ["0.00", "23.3", "1.49"]  # mean errors as published, %
    for row in rows:
        assert all(float(cell.strip(" |")) < 1e-3 for cell in row[4:])
