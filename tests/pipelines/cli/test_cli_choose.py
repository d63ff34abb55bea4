"""`jobcast choose` from the command line: what it tells, and what it refuses."""

import pytest


@pytest.fixture
def words(run):
    """The command on the example run, from where training ended."""
    return (
        "choose",
        "--trace",
        run.trace,
        "--pools",
        run.pools,
        "--from",
        run.trained_until,
        "--windows",
        2,
        "--jobs",
        1,
    )


def test_a_choice_is_told_with_its_reasons(shell, words):
    found = shell.json(*words, "--policies", "mmfs,sia,easy", "--forecasts", "registry,oracle")
    labels = {one["label"]: one for one in found["candidates"]}
    assert set(labels) == {"fcfs", "mmfs", "sia registry", "sia oracle"}
    assert labels["sia oracle"]["why"] == "reads the future, which cannot be had"
    assert found["choice"]["label"] in {"fcfs", "mmfs", "sia registry"}
    assert [one["policy"] for one in found["skipped"]] == ["easy"]
    assert len(found["windows"]) == 2
    assert found["windows"][0]["used"] == "fcfs"
    told = shell.works(*words, "--policies", "mmfs", "--slowed", "0").out
    assert "stay with fcfs" in told or "run mmfs" in told


def test_what_cannot_be_chosen_from_is_refused(shell, words):
    assert "unknown policy siaa; did you mean sia?" in shell.refuses(*words, "--policies", "siaa")
    assert "unknown policy nobody" in shell.refuses(*words, "--now", "nobody")
    assert "--slowed" in shell.refuses(*words, "--slowed", "-1")
