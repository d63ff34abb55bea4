"""Commands say which predictors they are for, before a registry is asked."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.forecast_specs import check_known
from jobcast.pipelines.recipes import check_tune


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


def test_promotion_compares_the_predictors_of_sia_alone(shell, run):
    line = shell.refuses("models", "promote", "regime:1", "--trace", run.trace)
    assert line.startswith("'regime' is no predictor of `jobcast models promote --trace`; choose from")


def test_a_rule_has_nothing_to_tune(shell, run):
    for predictor, algorithm in (("new-load", "sliding-max"), ("job-duration", "last-n"), ("regime", None)):
        check_tune(predictor, algorithm, 0)
        with pytest.raises(ConfigError, match="has no settings to search; leave it out"):
            check_tune(predictor, algorithm, 2)
    check_tune("new-load", None, 2)
    line = shell.refuses("train", "new-load", "--trace", run.trace, "--algorithm", "sliding-max", "--tune", 2)
    assert line == "--tune 2: sliding-max of new-load has no settings to search; leave it out"
