import json

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.files import read_json, to_json, write_json
from jobcast.pipelines.report.model_tables import details, log_on_versions
from tests.shared import refused


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    refused(ConfigError, "cannot be written", write_json, tmp_path / "file" / "figures.json", {})


def test_json_is_the_same_for_the_same_value_and_refuses_not_a_number():
    numpy = pytest.importorskip("numpy")
    assert json.loads(to_json({"x": numpy.float64(1.5), "y": numpy.arange(2)})) == {"x": 1.5, "y": [0, 1]}
    refused(ValueError, "not JSON compliant", to_json, {"x": float("nan")})


@pytest.mark.parametrize("text", ["[1]", "{half", ""])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    refused(ConfigError, r"x\.json: (cannot be read as JSON)?", read_json, tmp_path / "x.json")


GAIN = {"label": "sia registry", "policy": "sia", "against": "fcfs", "ratio": 2.0, "low": 1.5, "high": 2.5}
TOLD = {"rows": [{"label": "sia registry", "versions": {"new-load": 1}}], "gains": [GAIN], "baselines": {"x": "fcfs"}}


def test_a_backtest_without_versions_has_nothing_to_log(tmp_path):
    rows = [{"label": "fcfs", "versions": {}}]
    assert log_on_versions(tmp_path, {**TOLD, "rows": rows}, "week", "7" * 64, (0.0, 1.0)) == ""


def test_a_registry_that_cannot_be_written_spoils_no_backtest(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBCAST_REGISTRY", "http://127.0.0.1:9")
    said = log_on_versions(tmp_path, TOLD, "week", "7" * 64, (0.0, 1.0))
    assert said.startswith("not logged on the versions: http://127.0.0.1:9: cannot be reached (")


def test_lists_of_figures_are_lines_of_their_own():
    told = {"backtests": [{"trace": "week", "gains": [{"ratio": 2.0}]}], "aliases": ["a", "b"], "none": []}
    assert details(told | {"interval": [1 / 3, 2.0]}).splitlines() == [
        "backtests",
        "  trace                    week",
        "  gains",
        "    ratio                    2",
        "aliases                  a, b",
        "none                     ",
        "interval                 0.3333, 2",
    ]
