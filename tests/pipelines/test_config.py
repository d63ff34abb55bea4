import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.config import Params, load_params


def test_without_a_file_the_defaults_hold():
    assert load_params(None) == Params()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prepare: {train_share: 1.5}", r"prepare\.train_share: .*less than 1"),
        ("prepare: {trade: campus}", r"prepare\.trade: Extra inputs"),
        ("featurize: {horizons_min: [60, 5]}", r"featurize\.horizons_min: .*ascend"),
        ("featurize: {horizons_min: []}", r"at least one"),
        ("backtest: {seeds: none}", r"backtest\.seeds"),
        ("a: [", r"not valid YAML"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path, text, message):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        load_params(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_algorithms_by_the_command_lines_names():
    assert Params().train.algorithms("will-jobs-arrive") == ("average",)
