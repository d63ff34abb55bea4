"""All of ours keep to what every predictor must."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.models.predictors import OURS, answers_of
from jobcast.pipelines.lifecycle.predictors import LIVES, find_predictor, life_of
from jobcast.pipelines.lifecycle.predictors.life import PREDICT
from jobcast.pipelines.lifecycle.recipes import TrainSettings
from jobcast.testing import check_predictor

FAST = {
    "will-jobs-arrive": "logistic",
    "new-load": "quantile",
    "job-duration": "blended",
    "completion-time": "futures",
    "job-size": "pooled",
}
SLOW = {"regime": "hierarchical", "accuracy-curve": "combination", "epoch-time": "steps", "goodput": "pollux"}


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*FAST.items(), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW.items())],
)
def test_it_keeps_to_the_rules(name, algorithm):
    settings = TrainSettings(horizons_min=(5, 60), min_train_jobs=50)
    check_predictor(lambda: find_predictor(name, algorithm, settings), range(1))


def test_whoever_can_be_asked_is_tried():
    """What is asked by schedulers alone is learned, and compared, by replays; see `learning_to_schedule`."""
    assert {*FAST, *SLOW} == {name for name in OURS if PREDICT in life_of(name).commands}


def test_every_question_has_a_life():
    assert {answers_of(name) for name in OURS} == set(LIVES)
    for name in OURS:
        one = find_predictor(name)
        assert (one.name, one.answers, one.algorithm) == (name, answers_of(name), one.algorithms[0])


def test_who_cannot_be_asked_says_so():
    for name in OURS:
        if PREDICT not in life_of(name).commands:
            with pytest.raises(ConfigError, match="is asked by schedulers alone"):
                find_predictor(name).predict(None)


def test_an_algorithm_that_it_does_not_know_is_refused():
    with pytest.raises(ConfigError, match="--algorithm guess: new-load knows auto, quantile, sliding-max"):
        find_predictor("new-load", "guess")
