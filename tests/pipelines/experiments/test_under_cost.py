import pytest
from click.testing import CliRunner

from jobcast.models.duration_booster import UNDER_COST
from jobcast.pipelines.cli.train import command
from jobcast.pipelines.lifecycle.recipes import TrainingData, TrainSettings, recipe_of
from jobcast.traces.generators import generate


def test_the_option_and_the_model_have_one_default():
    options = {option.name: option.default for option in command.params}
    assert options["under_cost"] == UNDER_COST == TrainSettings().under_cost


@pytest.mark.parametrize("under_cost", [1.0, 4.0])
def test_a_recipe_passes_it_on(under_cost):
    trace, _ = generate("sia", 0, {"days": 5})
    data = TrainingData.of(trace, None, None, 1)
    algorithm, recipe = recipe_of("job-duration", "last-n")
    made = recipe(data, algorithm, TrainSettings(under_cost=under_cost, min_train_jobs=1), None)
    assert made.predictor.under_cost == under_cost
    assert made.parameters["under_cost"] == under_cost


def test_it_must_be_positive():
    refused = CliRunner().invoke(command, ["job-duration", "--trace", "x.csv", "--under-cost", "0"])
    assert refused.exit_code == 2
    assert "Invalid value for '--under-cost'" in refused.output
