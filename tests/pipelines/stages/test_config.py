import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.stages.config import Params, load_params
from tests.shared import refused


def test_without_a_file_the_defaults_hold():
    assert load_params(None) == Params()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prepare: {train_share: 1.5}", r"prepare\.train_share: .*less than 1"),
        ("prepare: {trade: campus}", r"prepare\.trade: no such parameter; there are trace, pools,"),
        (
            "train: {new_load: {miss_share: 0.1}}",
            r"new_load\.miss_share: no such parameter; there are algorithms,",
        ),
        ("train: {miss_share: 0.1}", r"train\.miss_share: no such parameter; there are will_jobs_arrive, new_load"),
        ("learn: {regime: {algorithm: x}}", r"learn\.regime\.algorithm: no such parameter; there are algorithms, seed"),
        ("learn: {mlf_policy: {}}", r"learn\.mlf_policy: no such parameter; there are regime, accuracy_curve"),
        ("backtest: {cells: [{police: fcfs}]}", r"backtest\.cells\.0\.polic"),
        ("featurize: {horizons_min: [60, 5]}", r"featurize\.horizons_min: .*ascend"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path, text, message):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    assert str(path) in refused(ConfigError, message, load_params, path)


def test_algorithms_by_the_command_lines_names():
    assert Params().train.algorithms("will-jobs-arrive") == ("average",)


def test_what_a_section_of_a_predictor_leaves_out_is_as_by_default(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("learn: {regime: {seed: 3}}\nschedule: {device_rl: {algorithms: []}}")
    params, plain = load_params(path), Params()
    assert params.learned("regime").seed == 3
    assert params.learned("regime").algorithms == plain.learned("regime").algorithms == ("hierarchical",)
    assert params.learned("device-rl").algorithms == ()
    assert params.learned("device-rl").settings == plain.learned("device-rl").settings
    assert params.learned("mlf-policy") == plain.learned("mlf-policy")
