"""Outcomes in a file of JSON lines: kept, read back, begun anew."""

import math

from papers.bench import Outcome, RunFile


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
