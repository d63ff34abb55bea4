"""Drift: figures by week, shifts of inputs, verdicts, and switches that follow from the past alone."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.switches import Switches
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.settings import read_switches
from jobcast.pipelines.lifecycle.drift import Span, drift
from jobcast.pipelines.lifecycle.drift_page import render_drift
from jobcast.pipelines.lifecycle.drift_rules import (
    EMPTY,
    LEAST_ROWS,
    SwitchRule,
    moved_inputs,
    shifts,
    stability_index,
    switches_of,
)
from jobcast.pipelines.lifecycle.drift_verdict import CHECK, FINE, ROLL_BACK
from jobcast.pipelines.lifecycle.forecast_rows import ArrivalRows, Sample
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.predictors.life import Wishes
from jobcast.pipelines.lifecycle.predictors.traces import Scoring
from jobcast.pipelines.lifecycle.replay_judges import Window
from jobcast.pipelines.lifecycle.standards import judged
from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.table_files import write_trace

DAY_S = 86400.0


def rows_of(pool, time_s, arrives, passed, horizon_s=300.0):
    n = len(time_s)
    time_s, arrives, passed = np.array(time_s, float), np.array(arrives, bool), np.array(passed, bool)
    probability = np.where(passed, 0.9, 0.1)
    return ArrivalRows(time_s, time_s + horizon_s, np.array([pool] * n), arrives, probability, passed, passed)


def test_weeks_begin_where_the_span_does():
    span = Span(100.0, 100.0 + 15 * DAY_S)
    assert [(begin - 100) / DAY_S for begin, _ in span.weeks()] == [0.0, 7.0, 14.0]
    assert [(end - 100) / DAY_S for end in span.completed_s()] == [7.0, 14.0]


def test_a_pool_is_switched_off_when_its_gate_missed_and_on_again_when_that_is_past():
    """The gate misses all of week 0 and nothing after it; the rule looks back one week."""
    hours = np.arange(0, 21 * DAY_S, 3600.0)
    rows = rows_of("a", hours, np.ones(len(hours)), hours >= 7 * DAY_S)
    ends = [7 * DAY_S, 14 * DAY_S, 21 * DAY_S]
    found = switches_of({5: rows}, ends, SwitchRule(0.2, 7.0, 10), ["a", "b"])
    assert [(one.pool, one.horizon_min, one.from_s, one.sharing) for one in found] == [
        ("a", 5, 7 * DAY_S, False),
        ("a", 5, 14 * DAY_S, True),
    ]
    long = switches_of({5: rows}, ends, SwitchRule(0.2, 14.0, 10), ["a"])
    assert [(one.from_s, one.sharing) for one in long] == [(7 * DAY_S, False), (21 * DAY_S, True)]
    assert switches_of({5: rows}, ends, SwitchRule(0.2, 7.0, 1000), ["a"]) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=40), st.integers(7, 21))
def test_a_switch_follows_from_what_had_been_observed(windows, day):
    """Truth that was known only after an instant changes no switch up to it."""
    times, arrives, passed = (list(column) for column in zip(*sorted(windows), strict=True)) if windows else ([],) * 3
    days = [DAY_S * time for time in times]
    rows = rows_of("a", days, arrives, passed, horizon_s=2 * DAY_S)
    ends = [DAY_S * end for end in (7, 14, 21, 28)]
    late = rows.known_s > DAY_S * day
    other = rows_of("a", days, np.array(arrives, bool) ^ late, np.array(passed, bool) ^ late, horizon_s=2 * DAY_S)
    rule = SwitchRule(0.3, 14.0, 2)
    told = [Switches(tuple(switches_of({5: one}, ends, rule, ["a"]))) for one in (rows, other)]
    for at in np.arange(0, DAY_S * day + 1, DAY_S):
        assert told[0].shares("a", 300.0, at) == told[1].shares("a", 300.0, at)


def test_inputs_count_as_moved_above_the_limit_and_above_what_training_showed():
    assert moved_inputs({"a": 0.3, "b": 0.3, "c": 0.1, "d": 0.9}, {"a": 0.4, "b": 0.1}) == ["d", "b"]


def test_rows_give_the_figures_of_evaluate(registry, trace):
    """Of one span, the rows' figures are those of `jobcast evaluate`."""
    begin, end = parse_time("2024-01-15"), parse_time("2024-01-22")
    version = registry.resolve("will-jobs-arrive")
    model, known = registry.load(version), trace.between(None, end)
    sample = Sample(trace=trace, from_s=begin, until_s=end, known_s=end, pools=known.pools)
    rows = judged(version.name).forecasts(model, sample)
    scoring = Scoring(known, version, begin, end, tuple(known.pools), Wishes(paper_recipe=False, draws=0), registry)
    predictor = find_predictor(version.name)
    predictor.model_ = model
    theirs = predictor.figures(scoring)[0]["horizons"]
    for horizon, block in rows.items():
        ours = block.figures()
        for name in ("n", "base_rate", "pr_auc", "f1", "ece"):
            assert ours[name] == pytest.approx(theirs[horizon][name]), name
        assert ours["miss_rate"] == pytest.approx(theirs[horizon]["gate"]["miss_rate"])


def test_the_bin_of_a_job_that_outlives_the_last_edge_is_known_when_it_does(registry, trace):
    """Jobs that run for ten days, of which none has ended; the last of the model's edges is an hour."""
    begin = parse_time("2024-01-15")
    endless = replace(trace, jobs=trace.jobs.with_columns(duration=pl.lit(10 * DAY_S)))
    model, times = registry.load(registry.resolve("job-duration")), {"from_s": begin, "until_s": begin + DAY_S}
    # The last job of the day has just come.
    life, after_s = judged("job-duration"), float(trace.between(begin, begin + DAY_S).submit_s[-1]) + 1.0
    told = life.rows(model, Sample(trace=endless, known_s=after_s, pools=trace.pools, **times))["jobs"]
    outlived = told.time_s + 3600.0 < after_s
    assert 0 < outlived.sum() < len(told)
    assert (told.known_s[outlived] == told.time_s[outlived] + 3600.0).all()
    assert (told.truth[outlived] == len(model.horizons_min)).all()
    assert (told.known_s[~outlived] > after_s).all()


def test_what_lies_between_the_training_and_the_weeks_looked_at_is_no_silence(run, trace):
    """Jobs come every day; it was "no job was submitted for 7.0 days", as those of the week between were left out."""
    told = drift(("job-duration", None), Window(trace, parse_time("2024-01-22")), home=run.home).result
    assert [week["verdict"] for week in told["weeks"]] == [FINE]
    # Without that week's jobs there is a silence, and it is told.
    gone = trace.between(None, parse_time("2024-01-15")), trace.between(parse_time("2024-01-22"), None)
    holed = replace(trace, jobs=pl.concat([one.jobs for one in gone]))
    told = drift(("job-duration", None), Window(holed, parse_time("2024-01-22")), home=run.home).result
    assert told["weeks"][0]["verdict"] == CHECK
    assert told["weeks"][0]["reasons"][0].startswith("no job was submitted for 7.")


@pytest.mark.parametrize("predictor", ["will-jobs-arrive", "new-load", "job-duration"])
def test_the_command_tells_weeks_and_writes_its_page(shell, run, predictor):
    told = shell.json("drift", predictor, "--trace", run.trace, "--out", "drift")
    assert [week["from"][:10] for week in told["weeks"]] == ["2024-01-15", "2024-01-22"]
    assert [week["complete"] for week in told["weeks"]] == [True, False]
    # Stationary weeks: whatever inputs moved, the forecasts hold.
    assert told["verdict"] == told["weeks"][-1]["verdict"] == FINE
    assert told["advice"]["command"] is None
    assert told["advice"]["cost"]
    if predictor == "new-load":
        # What was estimated above what came, less the reverse, on average over the horizons.
        cost, blocks = told["weeks"][0]["cost"], told["weeks"][0]["blocks"].values()
        above = [one["n"] * one["mean_load"] * (one["over"] - 1.0) * 300.0 / 3600.0 for one in blocks]
        assert len(above) > 1
        assert cost["gpu_hours_held_in_vain"] - cost["gpu_hours_lent_wrongly"] == pytest.approx(sum(above) / len(above))
    page = Path("drift/report.html").read_text()
    assert f"Drift of {predictor} version 1" in page
    assert json.loads(Path("drift/drift.json").read_text()) == told
    assert page == render_drift(told)
    week = told["weeks"][0]
    assert 0 < week["jobs"] < len(pl.read_parquet(run.trace))
    assert week["inputs"]["psi"] == max(week["inputs"]["by_feature"].values()) or week["inputs"]["moved"]
    for block in week["blocks"].values():
        assert block["n"] == sum(one["n"] for one in block["by_pool"].values())


def test_rolling_back_is_said_where_the_champion_of_before_is_better_and_mends_it(shell, store, run, trace, tmp_path):
    """The champion has learned from a log whose run times are minutes that pass for seconds."""
    minutes = replace(trace, jobs=trace.jobs.with_columns(pl.col("duration") / 60.0))
    write_trace(minutes, tmp_path / "minutes.parquet")
    words = ("--until", run.trained_until, "--min-jobs", 50, "--horizons", "5,60", "--algorithm", "tag-pool-width")
    shell.works("train", "job-duration", "--trace", tmp_path / "minutes.parquet", *words)
    shell.works("models", "promote", "job-duration:2")
    asked = ("drift", "job-duration", "--trace", run.trace, "--from", run.trained_until)
    told = shell.json(*asked)
    assert (told["version"], told["verdict"]) == (2, ROLL_BACK)
    assert told["advice"]["command"] == "jobcast models rollback job-duration"
    shell.works(*shlex.split(told["advice"]["command"])[1:])
    assert open_registry(store.home).resolve("job-duration", "champion").version == 1
    mended = shell.json(*asked)
    assert (mended["version"], mended["verdict"], mended["advice"]["command"]) == (1, FINE, None)


def test_switches_are_written_for_sia(shell, run):
    words = ("drift", "will-jobs-arrive", "--trace", run.trace, "--switches-out", "off.csv")
    told = shell.json(*words, "--most-missed", 0, "--least-arrivals", 1)
    assert read_switches("off.csv").rows
    assert {one["from"] for one in told["switches"]} == {"2024-01-22T00:00:00Z"}
    assert told["switch_rule"] == {"most_missed": 0.0, "days": 14.0, "least_arrivals": 1}
    sia = ("simulate", "--trace", run.trace, "--pools", run.pools, "--policy", "sia", "--forecasts", "registry")
    figures = shell.json(*sia, "--from", run.trained_until, "--set", "switches=off.csv")
    assert figures["jobs"] > 0


def test_switches_up_to_a_week_do_not_depend_on_later_weeks(run, trace):
    rule = SwitchRule(0.05, 14.0, 5)
    reference = ("will-jobs-arrive", None)
    since, until = parse_time("2024-01-15"), parse_time("2024-01-22")
    early = drift(reference, Window(trace, since, until), home=run.home, rule=rule)
    late = drift(reference, Window(trace, since), home=run.home, rule=rule)
    assert early.switches
    assert early.switches == tuple(one for one in late.switches if one.from_s <= until)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new-load", "--switches-out", "s.csv"), "--switches-out: new-load has no gate to switch by"),
        (("new-load", "--from", "2024-01-10"), "reaches into the window"),
        (("new-load", "--until", "2024-01-10"), "nothing to look at"),
    ],
)
def test_wrong_input_is_one_line(shell, run, words, told):
    assert told in shell.refuses("drift", *words, "--trace", run.trace)


VALUES = st.lists(st.one_of(st.integers(-5, 5), st.just(np.nan)), min_size=1, max_size=40)


def test_the_index_of_two_bins_by_hand():
    """Halves become a quarter and three quarters: (1/4 - 1/2) ln(1/2) + (3/4 - 1/2) ln(3/2), the empty bin aside."""
    old, new = [0.0, 0.0, 1.0, 1.0] * 10, [0.0, 1.0, 1.0, 1.0] * 10
    empty = EMPTY / (40 + EMPTY)  # no value is missing: one empty bin
    p, q = np.array([20, 20]) * (1 - empty) / 40, np.array([10, 30]) * (1 - empty) / 40
    assert stability_index(old, new, bins=2) == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=0.02)


@given(VALUES, VALUES)
def test_it_is_never_negative_and_symmetric_where_bins_are(old, new):
    assert stability_index(old, new) >= -1e-12
    assert stability_index(old, old) == pytest.approx(0.0)


def test_values_that_appear_or_vanish_count():
    assert stability_index([1.0] * 50, [np.nan] * 50) > 1.0
    assert stability_index([], [1.0]) is None
    assert stability_index([1.0], []) is None


def test_an_input_of_several_horizons_counts_by_the_one_that_moved_most():
    steady, moved = np.arange(100.0), np.arange(100.0) + 60
    before = {("gap", "5min"): steady, ("gap", "60min"): steady, ("hour", ""): steady}
    then = {("gap", "5min"): steady, ("gap", "60min"): moved, ("hour", ""): steady}
    assert shifts(before, then) == {"gap": stability_index(steady, moved), "hour": 0.0}


def test_a_handful_of_rows_tells_nothing():
    before = {("gap", ""): np.arange(1000.0)}
    few = {("gap", ""): np.full(LEAST_ROWS - 1, 5000.0)}
    assert shifts(before, few) == {}
    assert shifts(few, before) == {}
    assert shifts(before, {("gap", ""): np.full(LEAST_ROWS, 5000.0)})["gap"] > 1.0
