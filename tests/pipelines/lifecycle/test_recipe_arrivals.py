"""How WillJobsArrive is trained, on a small trace."""

import csv
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.models.algorithms import AverageSettings
from jobcast.models.classifiers import BoosterSettings
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.lifecycle.recipes import arrivals, recipe_of
from jobcast.pipelines.lifecycle.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.traces.table import Trace
from tests.scenarios import frame_of
from tests.shared import kept

DAY_S = 86400.0
FROM_S = 17_000 * DAY_S
UNTIL_S = FROM_S + 6 * DAY_S
SETTINGS = TrainSettings(horizons_min=(15.0, 120.0), min_train_jobs=20)
pytestmark = pytest.mark.xdist_group("recipe")  # what they share is trained once


def trace_of(arrivals):
    rows = sorted((at_s, pool) for pool, times in arrivals.items() for at_s in times)
    submit_s, pools = zip(*rows, strict=True)
    return Trace.from_frame(frame_of(submit_s, pool=pools), name="small")


def office(seed=0, days=6, count=900):
    times = FROM_S + np.random.default_rng(seed).uniform(0, days * DAY_S, count)
    return times[(times % DAY_S > 8 * 3600) & (times % DAY_S < 18 * 3600)]


@pytest.fixture(scope="module")
def data():
    bot = FROM_S + np.arange(600.0, 6 * DAY_S, 1500.0)
    return TrainingData.of(trace_of({"bot": bot, "office": office()}), FROM_S, UNTIL_S, 20)


def trained(data, algorithm=None, progress=None, **changes) -> Trained:
    name, recipe = recipe_of(WillJobsArrive.name, algorithm)
    return recipe(data, name, replace(SETTINGS, **changes), progress)


def test_more_rows_than_a_training_may_hold_are_read_on_a_coarser_grid(data, monkeypatch):
    # 2 pools at 1,728 instants: odd(3,456 / 800) = 5 steps of five minutes.
    monkeypatch.setattr(arrivals, "MOST_ROWS", 800)
    coarse = trained(data, "logistic")
    assert coarse.parameters["step_s"] == 1500.0
    # Windows of two hours are learnt from every 20 minutes at most: each instant of the coarser grid.
    assert coarse.predictor.rows_ == (690, 682)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def said():
    """What `chosen` told of its progress."""
    return []


@pytest.fixture(scope="module")
def chosen(data, said):
    return trained(data, progress=lambda *done: said.append(done))


@pytest.mark.slow
def test_auto_is_the_default_and_takes_the_least_loss_out_of_fold(chosen):
    rows = rows_of(chosen.tables["selection.csv"])
    overall = {row["algorithm"]: float(row["relative_log_loss"]) for row in rows if row["horizon"] == "all"}
    assert set(overall) == {"lightgbm", "xgboost", "logistic", "extra-trees", "average"}
    assert chosen.algorithm == min(overall, key=overall.get) == chosen.predictor.algorithm
    assert {row["horizon"] for row in rows} == {"15min", "120min", "all"}
    assert "horizons_without_folds" not in chosen.parameters
    assert chosen.parameters["bot_pools"] == "bot"


@pytest.mark.slow
def test_auto_saves_what_training_the_winner_saves(chosen, data, tmp_path):
    named = trained(data, chosen.algorithm).predictor
    assert kept(chosen.predictor, tmp_path / "auto") == kept(named, tmp_path / "named")


@pytest.mark.slow
def test_the_twin_is_scored_on_the_end_of_the_training_time(chosen):
    assert set(chosen.validation["horizons"]) == {"15min", "120min"}
    assert chosen.validation["horizons"]["15min"]["n"] == pytest.approx(2 * 0.2 * 6 * 288, abs=8)
    assert chosen.curves.importance["15min"]


@pytest.mark.slow
def test_the_end_of_the_training_time_does_not_decide_on_the_twin(data, chosen):
    """Other jobs in the last fifth: the twin's thresholds stay what they were."""
    until_s = data.validation_from_s
    bot = FROM_S + np.arange(600.0, 6 * DAY_S, 1500.0)
    people = np.concatenate((office()[office() < until_s], until_s + np.arange(1.0, DAY_S, 60.0)))
    other = TrainingData.of(trace_of({"bot": bot, "office": people}), FROM_S, UNTIL_S, 20)
    first, second = (one.validation["horizons"] for one in (chosen, trained(other)))
    for horizon in first:
        assert first[horizon]["threshold"] == second[horizon]["threshold"]
        assert first[horizon]["gate"]["threshold"] == second[horizon]["gate"]["threshold"]
        assert first[horizon]["base_rate"] != second[horizon]["base_rate"]


def test_tuning_tells_its_trials(data):
    told = trained(data, "logistic", tune=3)
    trials = rows_of(told.tables["tuning.csv"])
    assert [row["trial"] for row in trials] == ["0", "1", "2"]
    assert told.series["tuning/value"] == tuple(float(row["value"]) for row in trials)
    assert told.parameters["tune"] == 3
    assert told.predictor.settings.inverse_l2 == told.parameters["inverse_l2"]
    best = min((row for row in trials if row["state"] == "complete"), key=lambda row: float(row["value"]))
    assert float(best["inverse_l2"]) == told.parameters["inverse_l2"]
    assert "selection.csv" not in told.tables


def test_time_too_short_for_the_folds_of_a_horizon_is_said():
    trace = trace_of({"office": np.append(office(days=1, count=400), FROM_S)})
    told = trained(TrainingData.of(trace, FROM_S, FROM_S + DAY_S, 20), horizons_min=(15.0, 720.0))
    assert told.parameters["horizons_without_folds"] == "720"
    assert told.validation == {}
    assert told.predictor.thresholds_gate_[1] == 0.0


@pytest.mark.slow
def test_progress_ends_where_it_said(chosen, said):
    assert said[-1] == (8, 8)  # four algorithms, two horizons


@pytest.mark.parametrize(
    ("tuned", "more"), [({}, 0), ({"average": AverageSettings(lightgbm=BoosterSettings(trees=7))}, 1)]
)
def test_progress_ends_at_its_total_whichever_algorithm_was_tuned(data, monkeypatch, tuned, more):
    """A tuned average learns anew beside the others: one more to count."""
    seen = []
    steps = (arrivals.LEARNT_ALONE + more) * len(SETTINGS.horizons_min)
    monkeypatch.setattr(arrivals, "select", lambda *given: [given[5]() for _ in range(steps)])
    corpus = SimpleNamespace(horizons_min=SETTINGS.horizons_min)
    counted = arrivals._Plan(corpus, data, SETTINGS, lambda done, total: seen.append((done, total)), WillJobsArrive)
    counted.selection(tuned)
    assert seen[-1] == (steps, steps)
