"""Commands say which predictors they are for, before a registry is asked."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import check_known
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.recipes import TrainSettings


def test_the_line_names_the_command_and_what_there_is():
    check_known("drift", "a", ("a", "b"))
    with pytest.raises(ConfigError) as error:
        check_known("drift", "c", ("a", "b"))
    assert str(error.value) == "'c' is no predictor of `jobcast drift`; choose from a, b"


@pytest.mark.parametrize(
    "words",
    [("evaluate",), ("drift",), ("predict", "--at", "2024-01-06")],
    ids=lambda words: words[0],
)
def test_every_command_refuses_a_predictor_that_it_does_not_know(shell, run, words):
    command, *more = words
    line = shell.refuses(command, "no-such", "--trace", run.trace, *more)
    assert line.startswith(f"'no-such' is no predictor of `jobcast {command}`; choose from will-jobs-arrive, new-load,")


def test_promotion_compares_predictors_alone(shell, run):
    line = shell.refuses("models", "promote", "no-such:1", "--trace", run.trace)
    assert line.startswith("'no-such' is no predictor of `jobcast models promote --trace`; choose from")


def test_a_rule_has_nothing_to_tune(shell, run):
    for predictor, algorithm in (("new-load", "sliding-max"), ("job-duration", "last-n"), ("regime", None)):
        find_predictor(predictor, algorithm).check_tune()
        with pytest.raises(ConfigError, match="has no settings to search; leave it out"):
            find_predictor(predictor, algorithm, TrainSettings(tune=2)).check_tune()
    find_predictor("new-load", None, TrainSettings(tune=2)).check_tune()
    line = shell.refuses("train", "new-load", "--trace", run.trace, "--algorithm", "sliding-max", "--tune", 2)
    assert line == "--tune 2: sliding-max of new-load has no settings to search; leave it out"
