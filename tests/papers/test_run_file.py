"""Outcomes in a file of JSON lines: kept, read back, begun anew; and intervals over draws."""

import math

import pytest

from papers.confidence import HOLDS, OPEN, REVERSED, Interval, interval_of
from papers.run_file import Outcome, RunFile


def test_what_was_kept_is_read_back(tmp_path):
    path = tmp_path / "deep" / "runs.jsonl"
    begun = RunFile(path, resume=True)
    begun.add("a", Outcome({"jobs": 2.0, "late_pct": math.nan}, (1.0, 2.0)))
    begun.add("b", Outcome({"jobs": 3.0}))
    path.write_text(path.read_text() + '{"key": "c", "fig')  # cut by an interruption
    found = RunFile(path, resume=True).outcomes
    assert list(found) == ["a", "b"]
    assert math.isnan(found["a"].figures["late_pct"])
    assert found["a"].jct_s == (1.0, 2.0)
    assert found["b"] == Outcome({"jobs": 3.0})


def test_without_resume_the_first_outcome_replaces_the_file(tmp_path):
    path = tmp_path / "runs.jsonl"
    RunFile(path, resume=False).add("a", Outcome({"jobs": 2.0}))
    again = RunFile(path, resume=False)
    assert again.outcomes == {}
    assert len(path.read_text().splitlines()) == 1  # nothing is lost before there is something new
    again.add("b", Outcome({"jobs": 1.0}))
    assert list(RunFile(path, resume=True).outcomes) == ["b"]


def test_runs_are_told_as_they_are_done(tmp_path, capsys):
    from joblib import delayed

    file = RunFile(tmp_path / "runs.jsonl", resume=False)
    file.fill({"a": "first"}, [delayed(tuple)(["a", Outcome({"jobs": 1.0})])], jobs=1)
    assert file.outcomes["a"].figures == {"jobs": 1.0}
    assert capsys.readouterr().err == "  1/1 first\n"


def test_an_interval_by_hand():
    # t(.975, 3) = 3.18245; mean 4, variance 10 / 3 of four draws
    found = interval_of([2.0, 6.0, 3.0, 5.0])
    assert found.mean == 4.0
    assert found.high - 4.0 == pytest.approx(3.18245 * math.sqrt(10 / 3) / 2, rel=1e-5)
    assert (found.verdict, Interval(-1, -2, -0.5).verdict, Interval(0, -1, 1).verdict) == (HOLDS, REVERSED, OPEN)
    assert interval_of([7.0]).text() == "7.0"
