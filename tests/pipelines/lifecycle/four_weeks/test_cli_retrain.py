"""`jobcast train --retrain`: a version a week, each scored on the week after it."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobcast.domain.clock import DAY_S
from jobcast.models.predictors import OURS
from jobcast.models.registry import open_registry
from jobcast.pipelines.cli.train import ALGORITHMS
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.retraining import Schedule, parse_every


@pytest.fixture
def walk(run):
    words = ("train", "job-duration", "--trace", run.trace, "--min-jobs", 50, "--horizons", "5,60", "--algorithm")
    return (*words, "tag-pool-width", "--retrain", "weekly", "--first", 1)


@pytest.fixture
def empty(shell, tmp_path):
    """A command line with an empty registry."""
    shell.home = tmp_path / "new"
    return shell


@pytest.mark.slow
def test_a_version_a_week_each_scored_on_the_next(empty, walk):
    told = empty.json(*walk)
    weeks = told["weeks"]
    assert [week["trained"]["until"][:10] for week in weeks] == ["2024-01-08", "2024-01-15", "2024-01-22"]
    assert {week["trained"]["from"] for week in weeks} == {"2024-01-01T00:00:00Z"}
    assert [week["scored"]["from"] for week in weeks] == [week["trained"]["until"] for week in weeks]
    assert told["versions"] == [1, 2, 3]
    registry = open_registry(empty.home)
    assert [registry.resolve("job-duration", number).train_until_s for number in (1, 2, 3)] == [
        1704067200 + number * 7 * DAY_S for number in (1, 2, 3)
    ]
    assert registry.show("job-duration").aliases == {"champion": 1, "challenger": 3}
    assert weeks[0]["retrained"] == weeks[0]["first"]
    assert weeks[2]["retrained"] != weeks[2]["first"]
    pooled = told["pooled"]["blocks"]["jobs"]
    counts = [week["retrained"]["jobs"]["n"] for week in weeks]
    assert pooled["retrained"]["n"] == sum(counts)
    for name in ("retrained", "first"):
        by_week = [week[name]["jobs"]["accuracy"] for week in weeks]
        assert pooled[name]["accuracy"] == pytest.approx(np.average(by_week, weights=counts))
    assert told["pooled"]["difference"] == pytest.approx(pooled["retrained"]["log_loss"] - pooled["first"]["log_loss"])


def test_a_repeated_walk_registers_nothing_and_an_interrupted_one_goes_on(empty, walk):
    first = empty.json(*walk, "--until", "2024-01-20")
    assert (first["versions"], [week["registered_now"] for week in first["weeks"]]) == ([1, 2], [True, True])
    again = empty.json(*walk)
    assert again["versions"] == [1, 2, 3]
    assert [week["registered_now"] for week in again["weeks"]] == [False, False, True]
    empty.works("models", "promote", "job-duration:1", "--alias", "challenger")
    empty.works(*walk)
    assert open_registry(empty.home).resolve("job-duration", "challenger").version == 3
    assert len(empty.json("models", "list")["models"]) == 3


def test_other_settings_are_other_versions(empty, walk):
    words = ("new-load" if word == "job-duration" else word for word in walk)
    words = ["sliding-max" if word == "tag-pool-width" else word for word in words]
    empty.works(*words, "--until", "2024-01-10", "--coverage", 0.9)
    assert empty.json(*words, "--until", "2024-01-10", "--coverage", 0.5)["versions"] == [2]
    assert empty.json(*words, "--until", "2024-01-10", "--coverage", 0.9)["versions"] == [1]


def test_nothing_at_or_after_a_weeks_end_is_read(empty, walk, run):
    """What comes after it is changed; the version stays the same to the last byte, the scores do not."""
    import polars as pl

    frame = pl.read_parquet(run.trace)
    late = pl.col("submit_time") >= pl.lit("2024-01-15").str.to_datetime(time_zone="UTC")
    changed = frame.with_columns(duration=pl.when(late).then(7.0).otherwise("duration"))
    changed.drop("end_time", "start_time", strict=False).write_parquet("changed.parquet")
    frame.drop("end_time", "start_time", strict=False).write_parquet("same.parquet")
    content, scores = [], []
    for file in ("same.parquet", "changed.parquet"):
        words = [file if word == run.trace else word for word in walk]
        told = empty.json(*words, "--until", "2024-01-22")
        content.append([open_registry(empty.home).resolve("job-duration", n).content_sha256 for n in told["versions"]])
        scores.append([week["retrained"].get("jobs", {}).get("accuracy") for week in told["weeks"]])
    assert content[0][:2] == content[1][:2]
    assert content[0][2] != content[1][2]
    assert scores[0][0] == scores[1][0]
    assert scores[0][1] != scores[1][1]


def test_a_sliding_window_forgets_and_the_table_names_weeks_and_the_difference(empty, walk):
    out = empty.works(*walk, "--window-days", 7, "--json", "told.json").out
    told = json.loads(Path("told.json").read_text())
    assert [week["trained"]["from"][:10] for week in told["weeks"]] == ["2024-01-01", "2024-01-08", "2024-01-15"]
    assert "2024-01-08" in out
    assert "retrained less first, mean log_loss (less is better): " in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--first", 2), "--first: is of a walk through the trace; add --retrain weekly"),
        (("--retrain", "hourly"), "--retrain hourly: write weekly, daily or a number of days, as in 14d"),
        (("--retrain", "weekly", "--first", 9), "the first training needs 9 weeks"),
    ],
)
def test_wrong_input_is_one_line(shell, run, words, told):
    assert told in shell.refuses("train", "new-load", "--trace", run.trace, *words)


def test_trainings_end_where_weeks_do():
    days = [one.until_s / DAY_S for one in Schedule(7.0, 3.0).stretches(0.0, 35 * DAY_S)]
    assert days == [21.0, 28.0, 35.0]
    last = Schedule(parse_every("2d"), 1.0, 3.0).stretches(0.0, 10 * DAY_S)[-1]
    assert (last.from_s, last.until_s, last.next_s) == (6 * DAY_S, 9 * DAY_S, 10 * DAY_S)


def test_help_lists_what_the_recipes_know(shell):
    algorithms = {name: find_predictor(name).algorithms for name in OURS}
    known = "; ".join(
        f"{name}: {', '.join(names)}" for name, names in algorithms.items() if not {"ppo", "pgpe"} & {*names}
    )
    assert known == ALGORITHMS
