"""The card that people read, word by word."""

import json

import pytest

from jobcast.models.registry.cards import ModelCard
from jobcast.models.registry.model_card import gains_section, model_card, with_gains

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
