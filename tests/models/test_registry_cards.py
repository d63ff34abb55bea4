import math
import re
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, content_sha256, figure_name, flatten_metrics, headlines
from jobcast.models.registry.folders import write_card
from jobcast.models.registry.references import parse_reference

NESTED = st.recursive(
    st.floats() | st.integers() | st.text() | st.none() | st.booleans(),
    lambda inner: st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), NESTED, max_size=4))
def test_names_are_what_mlflow_takes_and_values_are_finite(nested):
    from mlflow.utils.validation import _validate_metric_name

    for name, value in flatten_metrics(nested).items():
        _validate_metric_name(name)
        assert math.isfinite(value)


@pytest.mark.parametrize("told", [{"is_new": True}, {"instead_of": 3}])
def test_a_version_is_the_same_whoever_registered_it_when(told):
    read = ModelVersion("new-load", 4, (), "run", "jobcast:/artifacts/a", 1.5, {})
    assert (read.is_new, read.instead_of) == (False, None)
    assert replace(read, **told) == read != replace(read, version=5)


def test_horizon_and_pool_stay_readable():
    result = {"horizons": {"60min": {"f1": 0.5, "by_pool": {"11cb48": {"f1": 0.25, "n": 7}}}}, "policy": "sia"}
    assert flatten_metrics(result) == {
        "horizons/60min/f1": 0.5,
        "horizons/60min/by_pool/11cb48/f1": 0.25,
        "horizons/60min/by_pool/11cb48/n": 7.0,
    }


def test_what_is_no_figure_is_left_out():
    assert flatten_metrics({"a": math.nan, "b": math.inf, "c": None, "d": True, "e": "1", "f": [1], "g": 1}) == {
        "g": 1.0
    }


def test_pools_that_differ_in_replaced_characters_stay_apart():
    assert len(flatten_metrics({"a/b": 1, "a_b": 2, "a:b": 3, "a%b": 4})) == 4


def test_the_content_is_names_and_bytes(tmp_path):
    one = tmp_path / "one"
    (one / "sub").mkdir(parents=True)
    (one / "a.txt").write_bytes(b"x")
    (one / "sub" / "b.txt").write_bytes(b"y")
    two = shutil.copytree(one, tmp_path / "two")
    assert content_sha256(one) == content_sha256(two)
    (two / "a.txt").write_bytes(b"z")
    assert content_sha256(one) != content_sha256(two)
    (two / "a.txt").write_bytes(b"x")
    (two / "a.txt").rename(two / "c.txt")
    assert content_sha256(one) != content_sha256(two)


def test_names_that_mlflow_refuses_end_in_six_digits_of_what_they_were():
    assert re.fullmatch(r"caf_-[0-9a-f]{6}/n", figure_name(("caf%", "n")))
    assert re.fullmatch(r"_-[0-9a-f]{6}", figure_name((" . ",)))


def test_thirty_headlines_the_least_deep_and_best_known_first():
    nested = {"deep": {"f1": 1}, "unknown": 2, "mae": 3, "f1": 4, "by_pool": 5, "first": {"unknown": 6, "f1": 7}}
    assert list(headlines(nested)) == ["f1", "mae", "unknown", "deep/f1", "first/f1", "first/unknown"]
    assert list(headlines({f"n{number}": 1 for number in range(40)})) == [f"n{number}" for number in range(30)]


def test_the_card_of_a_folder_is_read_by_people_too(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "own.bin").write_bytes(b"x")
    write_card(tmp_path, {"name": "new-load", "a": 1})
    assert (tmp_path / "jobcast.json").read_text() == '{\n  "a": 1,\n  "files": {},\n  "name": "new-load"\n}\n'


@pytest.mark.parametrize("text", ["", "@", ":", "a@", "@b", "a:", ":1", "a:b", "a:1@"])
def test_what_names_no_version(text):
    with pytest.raises(RegistryError, match="names no model"):
        parse_reference(text)
