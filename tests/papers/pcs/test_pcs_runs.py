"""Runs and their figures, windows of a trace and whole ones, and the tables made of them."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.schedulers.elastic.config import WfqConfig
from papers.bench import Outcome
from papers.pcs import published as theirs
from papers.pcs.published import THEIRS, compared, published_configs, published_rows
from papers.pcs.runs import Task, automl, gavel, policies, published, run

INF = float("inf")
TOLD = {"AFS": 1.0, "Tiresias (SRSF)": 1.428, "Themis": 1.652}
"""Mean JCT over AFS's of cluster 2869ce as published."""


def test_one_queue_without_caps_is_fifo():
    scenario = automl(0, 40)
    tasks = (*policies("c", scenario, ["elastic_fifo"]), Task("c", "p", scenario, config=WfqConfig()))
    fifo, pcs = map(run, tasks)
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


def test_published_rows_stand_under_our_names(traces):
    rows = published_rows(traces)
    figures = {"mean_error_pct": 11.166, "p99_error_pct": 241.127, "jct_over_afs": 1.428}
    assert rows["2869ce", "Tiresias (SRSF)"] == figures
    assert rows["0e4a51", "PCS-pred (published)"]["mean_error_pct"] == 0.8
    assert len(rows) == 4 * 7


def test_runs_on_file_are_not_made_again(traces, tmp_path, monkeypatch):
    """Each run that is missing is made once; JCTs are over AFS's on the same cluster."""
    made = []

    def outcome(one):
        made.append(one.key)
        return one.key, Outcome({"mean_jct_s": 2.0 if one.policy == "afs" else 3.0, "mean_error_pct": 1.0})

    monkeypatch.setattr(theirs, "_outcome", outcome)
    monkeypatch.setattr(theirs, "in_parallel", lambda work, items, name: map(work, items))
    first = theirs.whole_traces(traces, tmp_path)
    assert first["ee9e8c", "FIFO"]["jct_over_afs"] == 1.5
    assert theirs.whole_traces(traces, tmp_path) == first
    assert len(made) == len(set(made)) == 4 * 4 + 3


def test_a_whole_trace_comes_out_as_published(traces):
    """2869ce, 956 jobs: Tiresias, and Themis by its speedups, in mean JCT over AFS's."""
    runs = {one.name: one for one in theirs._runs(traces) if one.cluster == "2869ce"}
    found = {name: theirs._outcome(replace(runs[name], predict=name != "Themis"))[1].figures for name in TOLD}
    assert found["Tiresias (SRSF)"]["p99_error_pct"] == pytest.approx(241.127, abs=1e-3)
    for name, over_afs in TOLD.items():
        assert found[name]["mean_jct_s"] / found["AFS"]["mean_jct_s"] == pytest.approx(over_afs, abs=1e-3)


def test_published_runs_come_out_to_the_millisecond(traces):
    scenario = published(traces, "0e4a51")
    own = Task("c", THEIRS[1], scenario, config=published_configs(traces)[THEIRS[1]])
    tasks = [*policies("c", scenario, ("elastic_fifo", "srsf")), own]
    rows = [line.split(" | ") for line in compared(traces, [run(task) for task in tasks]).splitlines()[2:]]
    assert [row[2] for row in rows] == ["0.00", "23.3", "1.49"]  # mean errors as published, %
    for row in rows:
        assert all(float(cell.strip(" |")) < 1e-3 for cell in row[4:])
