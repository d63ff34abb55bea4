"""JobDuration's recipe: what is chosen, told and kept beside the run."""

import io

import numpy as np
import polars as pl
import pytest

from jobcast.models.job_duration import ALGORITHMS
from jobcast.models.registry.cards import flatten_metrics
from jobcast.pipelines.lifecycle.drift_verdict import Ratio
from jobcast.pipelines.lifecycle.recipes.common import TrainingData, TrainSettings
from jobcast.pipelines.lifecycle.recipes.durations import train_durations
from jobcast.pipelines.lifecycle.standards import judged
from jobcast.traces.table import Trace
from tests.scenarios import frame_of
from tests.shared import kept

DAY_S = 86400.0


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    n = 500
    submit = np.sort(rng.uniform(0, 20 * DAY_S, n)).round()
    pool = rng.choice(["a", "b"], n)
    duration = (np.where(pool == "a", 200.0, 2500.0) * rng.lognormal(0, 0.6, n)).round() + 1
    trace = Trace.from_frame(frame_of(submit, duration=duration, pool=pool), name="two pools")
    return TrainingData.of(trace, None, None, 100)


def test_auto_takes_the_blend_where_there_are_folds_and_tells_the_table(data):
    trained = train_durations(data, "auto", TrainSettings(), None)
    table = pl.read_csv(io.StringIO(trained.tables["selection.csv"]), schema_overrides={"fold": pl.String})
    overall = table.filter(pl.col("fold") == "all")
    assert set(overall["algorithm"]) == set(ALGORITHMS)
    assert trained.algorithm == trained.predictor.algorithm == "blended"
    assert {"accuracy", "log_loss", "choose", "baselines"} <= set(trained.validation)
    assert trained.predictor.trained_until_s_ == data.until_s


def test_a_search_leaves_its_trials_and_sets_the_booster(data):
    trained = train_durations(data, "lightgbm", TrainSettings(tune=3), None)
    trials = pl.read_csv(io.StringIO(trained.tables["tuning.csv"]))
    assert trials["trial"].to_list() == [0, 1, 2]
    assert trained.series["tuning/value"] == pytest.approx(trials["value"].to_list())
    best = trials.filter(pl.col("state") == "complete").sort("value")
    assert trained.parameters["trees"] == best["trees"][0]
    assert "selection.csv" not in trained.tables


def test_a_rule_is_not_tuned(data):
    trained = train_durations(data, "last-n", TrainSettings(tune=3), None)
    assert (dict(trained.tables), trained.algorithm) == ({}, "last-n")


SLOW = {"blended"}
"""What it blends is trained on its own, too."""


@pytest.mark.parametrize(
    "algorithm", [pytest.param(one, marks=[pytest.mark.slow] if one in SLOW else []) for one in ALGORITHMS]
)
def test_equal_trainings_are_equal_bytes(data, algorithm, tmp_path):
    made = (train_durations(data, algorithm, TrainSettings(seed=3), None).predictor for _ in range(2))
    one, two = (kept(predictor, tmp_path / str(number)) for number, predictor in enumerate(made))
    assert one == two


def test_jobs_that_all_ended_too_late_to_validate_are_trained_on(data):
    short = TrainingData.of(data.trace.between(None, 2 * DAY_S), None, None, 5)
    trained = train_durations(short, "auto", TrainSettings(), None)
    assert trained.predictor.rows_ > 0
    assert trained.validation["promise"] == {}


def test_a_promise_is_of_the_last_three_fifths_and_tells_how_sure_it_is(data):
    """Three parts of four days each; drift takes the promise for what is nominal."""
    trained = train_durations(data, "last-n", TrainSettings(), None)
    promise = trained.validation["promise"]["accuracy"]
    assert promise["freedom"] in (11.0, 12.0)
    assert 0.0 < promise["error"] < 0.1
    life, metrics = judged("job-duration"), flatten_metrics({"validation": trained.validation})
    assert life.promises(metrics)["accuracy"] == Ratio(**promise)
    assert life.promised(trained.predictor, metrics)["accuracy"] == promise["value"]
    # Versions of before told what they were validated by alone.
    old = {"validation/accuracy": 0.5}
    assert (life.promises(old), life.promised(trained.predictor, old)) == ({}, {"accuracy": 0.5})
