"""Errors of forecast sizes on a log scale, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.models.completion.intervals import Interval
from jobcast.models.evaluation import sizes
from jobcast.models.evaluation.sizes import LogErrors, log_figures, run_time_errors, size_errors

PAST = SimpleNamespace(
    work_s=np.array([10.0, 100.0, 1000.0, 1e9]),
    run_s=np.array([0.1, 0.2, 0.3, 1e9]),
    ended=np.array([True, True, True, False]),
)


class Jobs(SimpleNamespace):
    """Columns of a trace of some jobs."""

    def __len__(self):
        return len(self.gpus)


def test_figures_by_hand():
    told = log_figures(LogErrors(np.array([np.log10(2.0), 0.31]), np.array([0.5, 0.7]), np.array([True, False])))
    mine = (np.log10(2.0) + 0.31) / 2
    assert told == {
        "n": 2,
        "mae_log10": pytest.approx(mine),
        "rule_mae_log10": pytest.approx(0.6),
        "skill": pytest.approx(1.0 - mine / 0.6),
        "within_2x": 0.5,
        "coverage_90": 0.5,
    }
    assert log_figures(LogErrors(np.array([0.1]), np.array([0.0]), np.array([True])))["skill"] is None
    none = log_figures(LogErrors(np.empty(0), np.empty(0), np.empty(0, bool)))
    assert none == {"n": 0, **dict.fromkeys(("mae_log10", "rule_mae_log10", "skill", "within_2x", "coverage_90"))}


def test_work_is_held_by_its_interval_with_both_ends(monkeypatch):
    """Of 100 GPU-seconds and of none, which counts as one; the rule says 100, the median of what has ended."""
    monkeypatch.setattr(sizes, "keys_of", lambda jobs: jobs)
    ends = np.array([[100.0, 1000.0, 1000.0], [10.0, 10.0, 100.0], [101.0, 100.0, 200.0], [0.0, 2.0, 3.0]])
    model = SimpleNamespace(past_=PAST, forecast=lambda keys: ends)
    told = size_errors(model, SimpleNamespace(gpu_time_s=np.array([100.0, 100.0, 100.0, 0.0])))
    assert told.error.tolist() == pytest.approx([1.0, 1.0, 0.0, np.log10(2.0)])
    assert told.rule_error.tolist() == pytest.approx([0.0, 0.0, 0.0, 2.0])
    assert told.covered.tolist() == [True, True, False, True]


def test_run_times_are_held_by_their_intervals_of_90_percent():
    """The rule of runs below a second says one."""

    def interval(level, held):
        return Interval(level, *((1.0, 1000.0) if held else (2000.0, 3000.0)))

    told = [(1.0, (interval(0.5, False), interval(0.9, True))), (10.0, (interval(0.9, False), interval(0.5, True)))]
    asked = []
    model = SimpleNamespace(past_=PAST, submitted=lambda *given: asked.append(given) or told)
    jobs = Jobs(duration_s=np.array([0.5, 100.0]), gpus=np.array([1, 2]), submit_s=np.array([5.0, 6.0]))
    found = run_time_errors(model, jobs)
    assert found.error.tolist() == [0.0, 1.0]
    assert found.rule_error.tolist() == [0.0, 2.0]
    assert found.covered.tolist() == [True, False]
    # Of 100 s: ends at 2000 and 3000 for .05 and .95, at 1 and 1000 for .25 and .75.
    losses = [0.95 * np.log(20.0), 0.05 * np.log(30.0), 0.25 * np.log(100.0), 0.25 * np.log(10.0)]
    assert found.pinball[1] == pytest.approx(np.mean(losses))
    ((gpus, submit_s),) = asked
    assert (gpus.tolist(), submit_s.tolist()) == ([1, 2], [5.0, 6.0])
