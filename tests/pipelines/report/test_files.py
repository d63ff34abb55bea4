import json

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.files import read_json, to_json, write_json


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_json(tmp_path / "file" / "figures.json", {})


def test_json_is_the_same_for_the_same_value_and_refuses_not_a_number():
    numpy = pytest.importorskip("numpy")
    assert json.loads(to_json({"x": numpy.float64(1.5), "y": numpy.arange(2)})) == {"x": 1.5, "y": [0, 1]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"x": float("nan")})


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_json(tmp_path / "x.json")
