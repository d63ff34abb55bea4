import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import NewLoad
from jobcast.models.predictors import OURS, PREDICTORS, load_predictor


def test_names():
    assert tuple(PREDICTORS) == tuple(OURS)
    for name, model in PREDICTORS.items():
        assert (model.name, model.answers) == (name, OURS[name].answers)
        assert model.algorithms


def test_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(RegistryError, match="'regimes' is not known; choose from will-jobs-arrive, new-load, "):
        load_predictor("regimes", tmp_path)


def test_reads_the_predictor_of_a_name(tmp_path):
    model = NewLoad("sliding-max")
    model.horizons_min_, model.pools_, model.rule_ = (5,), ("a",), SlidingMax()
    model.rule_.windows_, model.rule_.coverages_, model.rule_.demands_ = (2,), (0.9,), (0.95,)
    model.rule_.lending_windows_ = (2,)
    model.trained_from_s_, model.trained_until_s_, model.feature_spans_ = 0.0, 1.0, {}
    model.save(tmp_path)
    read = load_predictor("new-load", tmp_path)
    assert isinstance(read, NewLoad)
    assert read.rule_.windows_ == (2,)
    with pytest.raises(RegistryError, match="holds 'new-load', not 'job-duration'"):
        load_predictor("job-duration", tmp_path)
