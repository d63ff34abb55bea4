"""Configurations of PCS: what a file may say, and what is refused in one line."""

import json
from math import inf

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.config import WfqConfig, parse_config, read_changes
from tests.shared import refused

TWO = {"class_thresholds": [10, "inf"], "class_rates": [3, 1]}
LONGEST = f"1/{'1' * 38}"  # 40 characters


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, WfqConfig((10.0, inf), (3.0, 1.0))),
        ({"clip_demand_factor": 0, "delta": 0}, WfqConfig((10.0, inf), (3.0, 1.0), 0.0, 0.0)),
        ({"clip_demand_factor": 0.5, "delta": 0.2}, WfqConfig((10.0, inf), (3.0, 1.0), 0.5, 0.2)),
        ({"class_thresholds": ["10", "inf"], "num_classes": 2}, WfqConfig((10.0, inf), (3.0, 1.0))),
        ({"class_rates": [{"frac": "19/20"}, {"float": 0.05}]}, WfqConfig((10.0, inf), (0.95, 0.05))),
        ({"class_rates": [{"frac": LONGEST}, 1]}, WfqConfig((10.0, inf), (1 / int("1" * 38), 1.0))),
        ({"type_rates": {"b": [1, 2]}}, WfqConfig((10.0, inf), (3.0, 1.0), type_rates={"b": (1.0, 2.0)})),
        ({"type_rates": {}, "_bal": {"x": 1}}, WfqConfig((10.0, inf), (3.0, 1.0))),
    ],
)
def test_what_a_configuration_may_say(more, found):
    assert parse_config(TWO | more, "here") == found


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "a JSON object is expected"),
        ({"num_classes": 2}, "here: class_thresholds is missing or no list"),
        ({"class_thresholds": ["inf"], "class_rates": 1}, "class_rates is missing or no list"),
        ({"bal": TWO, "mix": TWO, "about": "x"}, r"several configurations \(bal, mix\)"),
        (TWO | {"num_classes": 3}, "num_classes is 3, with 2 thresholds and 2 rates"),
        (TWO | {"class_rates": [1]}, "num_classes is 1, with 2 thresholds and 1 rates"),
        ({"class_thresholds": [], "class_rates": []}, "num_classes is 0"),
        (TWO | {"class_thresholds": [10, 20]}, "must ascend and end with"),
        ({"class_thresholds": [20, 10, "inf"], "class_rates": [1, 1, 1]}, "must ascend and end with"),
        (TWO | {"clip_demand_factor": -0.1}, "must be at least 0, got -0.1 and 0.1"),
        (TWO | {"delta": -0.1}, "must be at least 0, got 0 and -0.1"),
        (TWO | {"class_rates": [1, 0]}, "weights must be more than 0"),
        (TWO | {"class_rates": [1, "inf"]}, "weights must be more than 0"),
        (TWO | {"class_rates": [1, True]}, "True is no number"),
        (TWO | {"class_rates": [1, None]}, "None is no number"),
        (TWO | {"class_rates": [1, {"frac": LONGEST + "1"}]}, "is no fraction"),
        (TWO | {"class_rates": [1, {"frac": "1e9"}]}, "is no fraction"),
        (TWO | {"class_rates": [1, {"frac": "1/0"}]}, "is no fraction"),
        (TWO | {"type_rates": [1, 2]}, "type_rates: an object is expected"),
        (TWO | {"type_rates": {"a": [1, 2], "b": [1]}}, "type_rates, b: 2 weights are expected"),
    ],
)
def test_what_is_refused(given, why):
    refused(ConfigError, why, parse_config, given, "here")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("", "needs lines of from,config"),
        ("2026-01-02,a.json\n2026-01-02,a.json\n", "each from a later instant on"),
        ("2026-01-02,a.json\n2026-01-01,a.json\n", "each from a later instant on"),
        ("2026-01-02,a.json\n2026-01-03,\n", "line 3: names no config"),
        (",a.json\n", "line 2, from"),
    ],
)
def test_changes_that_are_refused(tmp_path, rows, why):
    (tmp_path / "a.json").write_text(json.dumps(TWO))
    (tmp_path / "changes.csv").write_text(f"from,config\n{rows}")
    refused(ConfigError, why, read_changes, tmp_path / "changes.csv")


def test_changes_in_order_of_time(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(TWO))
    (tmp_path / "changes.csv").write_text("from,config\n1970-01-02,a.json\n1970-01-03,a.json\n")
    config = WfqConfig((10.0, inf), (3.0, 1.0))
    assert read_changes(tmp_path / "changes.csv") == ((86400.0, config), (172800.0, config))


def test_numbers_as_the_rule_reads_them():
    """Whatever is not told is dealt out in fractions, with caps as published; types without weights have the common."""
    config = WfqConfig((10.0, inf), (3.0, 1.0), 0.5, 0.2, {"b": (1.0, 2.0)})
    head = [2.0, 0.5, 0.2]
    assert config.numbers(("a", "b")).tolist() == [*head, 0.0, 0.0, 10.0, inf, 3.0, 1.0, 1.0, 2.0]
    assert config.numbers(("a",), whole=True, monotone=True).tolist() == [*head, 1.0, 1.0, 10.0, inf, 3.0, 1.0]
    plain = WfqConfig().policy()
    assert plain.numbers.tolist() == [1.0, 0.0, 0.1, 0.0, 0.0, inf, 1.0]
    assert not plain.integral
