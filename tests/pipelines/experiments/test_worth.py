"""Shares of what forecasts bring, by hand, and that they add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.forecast_specs import PARTS
from jobcast.pipelines.experiments.worth import mixed, parts_of, shapley, specs_of, worth
from jobcast.schedulers.registry import find_policy
from tests.shared import refused

GAINS = {"arrivals": 1.0, "loads": 10.0, "durations": 100.0}
QUALITY = {"conservative": 0.0, "registry": 0.5, "oracle": 1.0}


def brought(label: str) -> float:
    """Gains that add up over parts: half of each with registered answers, all with exact ones, less by noise."""
    sources = dict(part.split("=") for part in label.removeprefix("mixed:").split(","))
    return sum(
        GAINS[part] * QUALITY.get(source, 1.0 - 2.0 * float(source.partition(":")[2] or 0))
        for part, source in sources.items()
    )


def test_shares_of_gains_that_add_up() -> None:
    """Each part's share is its own gain; a ladder from 1 to -.6 meets nothing at a half, 1 % slowed at a quarter."""
    values = {
        label: {
            "saved_gpu_h_week": brought(label),
            "slowed_pct": 4.0 * float(label.partition("noisy:")[2].split(",")[0] or 0),
        }
        for label in specs_of(PARTS, "registry")
    }
    found = worth(PARTS, "registry", values)
    for one in found["parts"]:
        gain = GAINS[one["part"]]
        assert (one["worth"], one["headroom"]) == pytest.approx((gain / 2, gain / 2))
        assert (one["break_even"], one["harmless_until"]) == pytest.approx((0.5, 0.25))
        assert [rung["wrong"] for rung in one["ladder"]] == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8]
    assert [found[name]["saved_gpu_h_week"] for name in ("none", "now", "exact")] == pytest.approx([0.0, 55.5, 111.0])


@given(st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8))
def test_shares_add_up_and_like_parts_are_alike(drawn: list[float]) -> None:
    subsets = [tuple(part for bit, part in enumerate("abc") if number >> bit & 1) for number in range(8)]
    value = dict(zip(subsets, drawn, strict=True))
    assert sum(shapley("abc", value.__getitem__).values()) == pytest.approx(
        value[("a", "b", "c")] - value[()], abs=1e-8
    )
    alike = shapley("abc", lambda some: drawn[len(some)])
    assert list(alike.values()) == pytest.approx([alike["a"]] * 3, abs=1e-8)


def test_only_what_a_policy_asks_is_asked() -> None:
    assert parts_of(find_policy("sia")) == PARTS
    assert parts_of(find_policy("ssf")) == ("durations",)
    refused(ConfigError, "--policies mmfs: asks nothing of arrivals, loads, durations", parts_of, find_policy("mmfs"))
    # What is not on the ladder stays as it is.
    assert mixed(("arrivals", "durations"), {"arrivals": "noisy:0.2"}, "registry").part("durations").kind == "registry"
    # 15 corners of two cubes that share one, and three ladders of five.
    assert len(specs_of(PARTS, "registry")) == 15 + 15
