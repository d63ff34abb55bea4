import math
import shutil

from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.registry.cards import content_sha256, flatten_metrics

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
