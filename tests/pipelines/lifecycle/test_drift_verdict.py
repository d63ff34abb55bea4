"""Verdicts on drift: few false alarms over all weeks, real harm told, its beginning named, and what goes before it."""

import numpy as np
import pytest

from jobcast.pipelines.lifecycle.drift_verdict import (
    CHECK,
    FINE,
    RETRAIN,
    ROLL_BACK,
    WATCH,
    Found,
    Ratio,
    Verdict,
    advice,
    bare_findings,
    findings,
    lost_inputs,
    ratio_of,
    settled,
    shares_of,
    verdict_of,
)
from jobcast.pipelines.lifecycle.forecast_rows import ArrivalRows, DurationRows
from jobcast.pipelines.lifecycle.standards import judged

DAY_S = 86400.0
LIMITS = judged("will-jobs-arrive").limits
NOMINAL = {"miss_rate": 0.05}


def windows(rng, weeks, harmed_from=99, by=0.0):
    """Half-hourly windows whose chances are told right but for days that have something in common, harmed late."""
    times = np.arange(0.0, 7 * weeks * DAY_S, 1800.0)
    noise = np.zeros(7 * weeks + 1)
    for day in range(1, len(noise)):
        noise[day] = 0.4 * noise[day - 1] + 0.25 * rng.standard_normal()
    told = rng.beta(0.8, 1.6, len(times))
    logit = np.log(told / (1 - told)) + noise[1:][(times // DAY_S).astype(int)]
    true = 1 / (1 + np.exp(-logit)) + by * (times >= 7 * harmed_from * DAY_S)
    arrives, passed = rng.random(len(times)) < true, told > 0.05
    return {"60min": ArrivalRows(times, times + 3600.0, np.full(len(times), "a"), arrives, told, told > 0.5, passed)}


def verdicts(rows, weeks):
    """At the end of each week."""
    begins = [7 * DAY_S * week for week in range(weeks)]
    return [
        verdict_of(findings(rows, LIMITS, NOMINAL, begins[: week + 1], 7 * DAY_S * (week + 1))) for week in range(weeks)
    ]


def test_stationary_windows_raise_few_alarms_over_eight_weeks_and_harm_is_told_from_when_it_began():
    alarms, told, begun = 0, 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        alarms += any(one.says != FINE for one in verdicts(windows(rng, 8), 8))
        last = verdicts(windows(rng, 5, harmed_from=2, by=0.15), 5)[-1]
        told += last.says == RETRAIN
        begun += last.off != () and abs(last.since_s - 14 * DAY_S) <= 7 * DAY_S
    assert alarms <= 2
    assert told >= 36
    assert begun >= 36


def test_two_days_have_no_interval_and_are_judged_by_their_figures_alone():
    """By hand: chances of .2 where half of the windows see arrivals are off by .3, those of .45 by .05."""
    times = np.arange(0.0, 2 * DAY_S, 1800.0)
    for told, says in ((0.2, RETRAIN), (0.45, FINE)):
        chances, arrives = np.full(len(times), told), np.arange(len(times)) % 2 == 0
        passed = np.ones(len(times), dtype=bool)
        rows = {"60min": ArrivalRows(times, times + 1.0, np.full(len(times), "a"), arrives, chances, ~passed, passed)}
        assert not findings(rows, LIMITS, NOMINAL, [0.0], 3 * DAY_S)
        bare = bare_findings(rows, LIMITS, NOMINAL, 0.0)
        assert {one.figure: one.value for one in bare}["bias"] == pytest.approx(told - 0.5)
        assert verdict_of(bare).says == says


def test_a_verdict_does_not_look_ahead():
    rows = windows(np.random.default_rng(3), 4, harmed_from=2, by=0.3)
    early = {name: block.of(block.time_s < 14 * DAY_S) for name, block in rows.items()}
    assert verdicts(rows, 4)[:2] == verdicts(early, 2)


def test_the_interval_of_day_totals_by_hand():
    """Days of 0, 1, 0, 1 of one row each: mean 1/2, squares 4 x 1/4, no positive covariance; t(3) at 97.5 % = 3.182."""
    told = ratio_of(DAY_S * np.arange(4), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
    assert told.value == 0.5
    assert told.half(0.05) == pytest.approx(3.1824 * np.sqrt(1.0 * 4 / 3) / 4, rel=1e-4)
    assert ratio_of(DAY_S * np.arange(3), np.ones(3), np.ones(3)) is None


def test_a_users_days_are_no_witnesses_of_one_another_by_hand():
    """Four days of a job each of two users, one always 1, the other always 0: days' totals are all alike.

    Users' totals less their days': 2 x (4 x 1/2)^2 times 2 of 1 - 8 x (1/2)^2 = 14, over 8 jobs.
    """
    times = np.repeat(DAY_S * np.arange(4), 2)
    hits, owner = np.tile([1.0, 0.0], 4), np.tile(["a", "b"], 4)
    assert ratio_of(times, hits, np.ones(8)).error == 0.0
    assert ratio_of(times, hits, np.ones(8), owner).error == pytest.approx(np.sqrt(14.0) / 8)
    # Of one user alone days are all that is known.
    assert ratio_of(times, hits, np.ones(8), np.full(8, "a")).error == 0.0


def test_what_was_promised_is_in_doubt_too_by_hand():
    """Welch: errors of 3 and 4 make 5, of 625 / (81 / 6 + 256 / 16) = 21.2 degrees; t(21.2) at 97.5 % = 2.0786."""
    ours, theirs = Ratio(0.5, 3.0, 6.0), Ratio(0.6, 4.0, 16.0)
    assert ours.half(0.05, theirs) == pytest.approx(5.0 * 2.0786, rel=1e-4)
    assert ours.half(0.05) == pytest.approx(3.0 * 2.4469, rel=1e-4)
    assert Ratio(0.5, 0.0, 6.0).half(0.05) == 0.0


def test_shares_of_all_weeks_are_one_and_the_whole_span_gets_most():
    weeks = [shares_of(week) for week in range(1, 401)]
    assert sum(map(sum, weeks)) == pytest.approx(1.0, abs=1 / 400)
    assert all(len(shares) == week and shares[0] == max(shares) for week, shares in enumerate(weeks, 1))


def test_a_sure_promise_is_granted_less_than_one_that_tells_no_error():
    """Ten days of ten jobs, nine of them right where all were to be: off by .1, whose limit is .05."""
    times = np.repeat(DAY_S * np.arange(10), 10)
    right = np.arange(100) % 10 != 0
    whole, names, chances = np.zeros(100, int), np.full(100, "a"), np.full((100, 2), 0.5)
    truth = np.where(right, 0, 1)
    rows = DurationRows(times, times, names, truth, whole, whole, chances, whole, times, times, names)
    accuracy = judged("job-duration").limits[:1]

    def said(promises):
        (one,) = findings({"jobs": rows}, accuracy, {"accuracy": 1.0}, [0.0], 11 * DAY_S, promises)
        return one.granted, one.off

    assert said(None) == (0.05, True)
    assert said({"accuracy": Ratio(1.0, 0.0, 9.0)}) == (0.0125, True)
    assert said({"accuracy": Ratio(1.0, 1.0, 9.0)}) == (0.0125, False)


def found(excess, half):
    limits = {"watch": 0.05, "drifted": 0.10, "granted": 0.025}
    return Found("60min", "bias", 0.0, excess, excess - half, excess + half, 0.0, excess, **limits)


@pytest.mark.parametrize(
    ("one", "broken", "before", "says"),
    [
        (found(0.04, 0.001), (), False, FINE),  # sure, but too little to matter
        (found(0.20, 0.19), (), False, FINE),  # much, but by chance
        (found(0.08, 0.05), (), False, WATCH),
        (found(0.08, 0.02), (), False, RETRAIN),
        (found(0.12, 0.08), (), False, RETRAIN),
        (found(0.12, 0.08), (), True, ROLL_BACK),
        (found(0.04, 0.001), (), True, FINE),
        (found(0.12, 0.08), ("user is missing",), True, CHECK),
    ],
)
def test_what_is_said(one, broken, before, says):
    assert verdict_of([one], broken, before).says == says


def test_what_was_off_is_watched_for_one_week_more():
    off = verdict_of([found(0.12, 0.08)])
    second = Verdict().after(off)
    assert (second.says, second.off, second.passed) == (WATCH, off.off, True)
    assert Verdict().after(second) == Verdict()
    assert off.after(off) == off


def test_jobs_that_have_not_ended_do_not_make_the_last_days_look_short():
    """Of jobs that take 1 or 60 hours, the last three days know the short ones alone: they wait."""
    times = np.arange(0.0, 14 * DAY_S, 3600.0)
    long = np.arange(len(times)) % 2 == 1
    known = times + np.where(long, 60.0, 1.0) * 3600.0
    whole = np.zeros(len(times), int)
    names = np.full(len(times), "a")
    rows = DurationRows(times, known, names, whole, whole, whole, np.ones((len(times), 1)), whole, times, times, names)
    kept = settled(rows, 14 * DAY_S)
    assert kept.time_s.max() <= 14 * DAY_S - 60 * 3600.0
    assert np.diff(kept.time_s).max() == 3600.0


def test_expected_figures_of_windows_are_those_of_their_chances_and_running_jobs_only_get_longer():
    times = np.zeros(4)
    p = np.array([0.9, 0.6, 0.3, 0.2])
    rows = ArrivalRows(times, times, np.full(4, "a"), np.zeros(4, bool), p, p > 0.5, p > 0.25)
    expected = rows.expected()
    assert expected["precision"] == pytest.approx(0.75)
    assert expected["recall"] == pytest.approx(1.5 / 2.0)
    assert expected["f1"] == pytest.approx(2 * 1.5 / (2 + 2.0))
    assert expected["accuracy"] == pytest.approx((0.9 + 0.6 + 0.7 + 0.8) / 4)
    assert expected["miss_rate"] == pytest.approx(0.2 / 2.0)
    bins, chances = np.array([2]), np.array([[0.5, 0.3, 0.2]])
    at, name = times[:1], np.array(["a"])
    job = DurationRows(at, at, name, bins, bins, bins, chances, np.array([1]), at, at, name)
    assert job.expected()["accuracy"] == pytest.approx(0.2 / 0.5)


def test_an_input_that_went_missing_is_named():
    before = {("user", "5min"): np.zeros(10), ("gpus", ""): np.zeros(10)}
    then = {("user", "5min"): np.full(10, np.nan), ("gpus", ""): np.append(np.zeros(9), np.nan)}
    assert lost_inputs(before, then) == ["user is missing since"]


def test_advice_names_the_command_that_can_be_typed():
    week = {"from": "2024-01-15T00:00:00Z", "complete": True, "cost": {"gpu_hours_held_in_vain": 3.0}, "reasons": ["x"]}
    inputs = {"moved": ["gap"]}
    bad = {**week, "verdict": RETRAIN, "inputs": inputs, "off": [{"since": "2024-01-15T00:00:00Z"}]}
    told = advice([bad], "new-load", "my jobs.csv", 86400.0)
    assert told["command"] == "jobcast train new-load --trace 'my jobs.csv' --until 1970-01-02T00:00:00Z"
    assert told["since"] == "2024-01-15T00:00:00Z"
    fine = advice([{**week, "verdict": FINE, "reasons": [], "inputs": inputs, "off": []}], "new-load", "a", 0.0)
    assert fine["what"] == "inputs moved, forecasts hold: gap"
    assert fine["command"] is None
