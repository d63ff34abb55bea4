import json
import math
import re
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import (
    ModelCard,
    ModelVersion,
    content_sha256,
    description_of,
    figure_name,
    flatten_metrics,
    gains_section,
    headlines,
    model_card,
    with_gains,
)
from jobcast.models.registry.folders import write_card
from jobcast.models.registry.references import parse_reference
from tests.shared import refused

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
    refused(RegistryError, "names no model", parse_reference, text)


CARD = ModelCard(
    "new-load",
    "sliding-max",
    seed=3,
    trace_name="week",
    trace_sha256="5" * 64,
    trace_rows=12_345,
    train_from_s=86400.0,
    train_until_s=2 * 86400.0,
    feature_names=("a", "b"),
    parameters={"windows": 8},
    metrics={"5min": {"mae": 0.123456, "coverage": 0.95, "intervals": {"mae": [0.1, 0.2], "coverage": None}}},
    description="of a week",
)
GAIN = {"policy": "sia", "against": "fcfs", "ratio": 1.23456, "low": 1.0, "high": 1.5, "trace": "week"}
GAIN |= {"from": "1970-01-03", "until": "1970-01-04"}
TEXT = f"""# new-load: sliding-max

What is forecast, in two lines. Of a week.

## Trained on

- trace: week, 12,345 rows
- sha256: {"5" * 64}
- from: 1970-01-02T00:00:00Z
- until: 1970-01-03T00:00:00Z
- seed: 3
- code: abc
- windows: 8

## Figures

| figure | value | 95 % |
| :-- | --: | :-- |
| 5min/mae | 0.1235 | 0.1 to 0.2 |

## Calibration

| figure | value | 95 % |
| :-- | --: | :-- |
| 5min/coverage | 0.95 |  |

## Gains in backtests

None yet: `jobcast backtest --forecasts registry` adds them.

## Limits

- horizons: 5, 60 minutes; no others
- pools that it has learnt from: p0, p1
- it reads 2 columns; beyond the values of the training it is counted
- it knows nothing from 1970-01-03T00:00:00Z on, and is refused on what it has seen
- of another cluster than it was trained on nothing is promised
"""


class Forecaster:
    """What is forecast,
    in two lines.

    How it does so is not told.
    """


def told(folder, card=CARD, **metadata):
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return model_card(card, folder, Forecaster(), {"code_sha256": "abc"})


def pools(count):
    return [f"p{number}" for number in range(count)]


def test_a_whole_card(tmp_path):
    assert told(tmp_path, horizons_min=[5, 60], pools=pools(2), feature_spans={"a": [0, 1]}) == TEXT


@pytest.mark.parametrize(("count", "end"), [(20, "p18, p19"), (21, "p18, p19 and 1 more"), (30, "p19 and 10 more")])
def test_twenty_pools_are_named(tmp_path, count, end):
    (line,) = [line for line in told(tmp_path, pools=pools(count)).splitlines() if line.startswith("- pools")]
    assert line.endswith(end)


def test_what_is_not_known_is_not_told(tmp_path):
    bare = ModelCard("new-load", "sliding-max", 3, "week", "5" * 64, 1, 86400.0, 86400.0)
    text = model_card(bare, tmp_path, object(), {})
    assert "## Figures\n\nNone were told.\n\n## Calibration\n\nNone was measured.\n\n## Gains in backtests" in text
    assert text.endswith("## Limits\n\n- of another cluster than it was trained on nothing is promised\n")
    assert "- from" not in text
    assert "- code" not in text


def test_gains_take_the_place_of_those_before():
    section = gains_section([GAIN])
    assert section.splitlines()[-1] == "| sia | fcfs | 1.235 | 1 to 1.5 | week | 1970-01-03 to 1970-01-04 |"
    once = with_gains(TEXT, [GAIN])
    assert once == TEXT.replace(gains_section(()), section)
    assert with_gains(once, [GAIN]) == once
    assert with_gains(once, ()) == TEXT


@pytest.mark.parametrize(
    ("before", "begin"), [("", ""), ("Text.\n", "Text.\n\n"), ("## Gains in backtests\n\nold", "")]
)
def test_gains_end_a_text_without_sections_after_them(before, begin):
    assert with_gains(before, [GAIN]) == f"{begin}{gains_section([GAIN])}\n"


@pytest.mark.parametrize("ends", [{"low": None, "high": 2.0}, {"low": 2.0, "high": None}, {}])
def test_an_interval_without_one_end_is_none(ends):
    gain = {name: value for name, value in GAIN.items() if name not in ("low", "high")} | ends
    assert gains_section([gain]).endswith("| 1.235 |  | week | 1970-01-03 to 1970-01-04 |")


def test_a_description_has_the_whole_lines_that_mlflow_has_room_for():
    text = 50 * (99 * "x" + "\n")
    assert description_of(text) == text
    *lines, empty, end = description_of(f"{text}y").splitlines()
    assert (set(lines), empty) == ({99 * "x"}, "")
    assert end.startswith("Too long to be shown whole")
    assert 4899 < len(description_of(f"{text}y")) <= 5000


def test_a_long_section_hides_no_other_one():
    long = "\n".join(f"- parameter_{number}: 0" for number in range(500))
    shown = description_of(f"# a: b\n\n## Trained on\n\n{long}\n\n{gains_section([GAIN])}\n\n## Limits\n\n- the last\n")
    assert "- parameter_0: 0\n" in shown
    assert f"\n\n{gains_section([GAIN])}\n\n## Limits\n\n- the last\n\nToo long" in shown
    assert 4900 < len(shown) <= 5000
