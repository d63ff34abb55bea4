import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.predictors import OURS, PREDICTORS, load_predictor


def test_names():
    assert tuple(PREDICTORS) == tuple(OURS)
    for name, model in PREDICTORS.items():
        assert (model.name, model.answers) == (name, OURS[name].answers)
        assert model.algorithms


def test_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(RegistryError, match="'regimes' is not known; choose from will-jobs-arrive, new-load, "):
        load_predictor("regimes", tmp_path)
