"""Plots are well-formed, the same for the same data, and show what they are given."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from jobcast.pipelines.report import plots, predictor_plots, trace_plots
from jobcast.pipelines.report.plots import INK, MOST_POINTS, PALETTE, styles, thin_cdf

RNG = np.random.default_rng(0)
DAY_S = 86400.0


def texts(svg: str) -> str:
    return " ".join("".join(node.itertext()) for node in ET.fromstring(svg).iter() if node.tag.endswith("text"))


def forest() -> str:
    rows = [{"label": "sia registry", "against": "sia random", "ratio": 1.5, "low": 1.2, "high": 1.9}]
    return plots.gains_forest([*rows, {"label": "x", "against": "y", "ratio": 1.0, "low": None, "high": None}])


PLOTS = {
    "speedup": lambda: plots.speedup_cdf({"sia": RNG.lognormal(size=99), "mmfs": [0.5, 1.0, 20.0]}),
    "slowdown": lambda: plots.slowdown_curve({"sia": np.zeros(9), "mmfs": [0.0, 3.0, 90.0]}),
    "no slowdown": lambda: plots.slowdown_curve({"sia": np.zeros(9)}),
    "utilisation": lambda: plots.utilisation({"sia": (3600.0 * np.arange(48), np.linspace(0, 1, 48))}),
    "forest": forest,
    "reliability": lambda: predictor_plots.reliability({"5min": [{"forecast": 0.2, "observed": 0.3, "n": 7}]}),
    "precision": lambda: predictor_plots.precision_recall(
        {"5min": [{"precision": 0.5, "recall": 1.0}, {"precision": 0.9, "recall": 0.1}], "60min": []},
        {"5min": {"always": {"precision": 0.5, "recall": 1.0}, "unknown": {"precision": None, "recall": None}}},
    ),
    "importance": lambda: predictor_plots.importance("60min", {f"feature_{i}": float(i) for i in range(30)}),
    "widths": lambda: trace_plots.widths_by_pool({"a": {"1": 5, "8": 5}, "b": {"64": 1}}),
    "arrivals": lambda: trace_plots.arrivals(np.sort(RNG.uniform(0, 30 * DAY_S, 200))),
    "distribution": lambda: trace_plots.distribution("interarrival_s", {"x": [0.0, 1.0, 60.0], "y": [0.2, 0.5, 1.0]}),
}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_well_formed_and_named(name):
    svg = PLOTS[name]()
    root = ET.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    assert "<script" not in svg
    assert "date>" not in svg
    assert INK not in svg
    assert "currentColor" in svg


def test_ids_of_two_plots_on_a_page_do_not_clash():
    def ids(svg: str) -> set[str]:
        return set(re.findall(r' id="([^"]+)"', svg))

    first, second = PLOTS["speedup"](), PLOTS["slowdown"]()
    assert ids(first)
    assert not ids(first) & ids(second)
    for svg in (first, second):
        assert set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
        for pair in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg):
            assert set(filter(None, pair)) <= ids(svg)


def test_curves_are_thinned_but_keep_their_ends():
    values = RNG.lognormal(size=20_000)
    x, y = thin_cdf(values)
    assert len(x) <= MOST_POINTS
    assert (x[0], x[-1], y[0], y[-1]) == (values.min(), values.max(), 1 / 20_000, 1.0)
    middle = np.searchsorted(np.sort(values), x, side="right") / 20_000
    assert y == pytest.approx(middle)
    assert (np.diff(x) >= 0).all()


def test_styles_stay_apart():
    looks = styles([f"policy {i}" for i in range(20)])
    assert len(set(looks.values())) == 20
    assert looks["policy 0"].color == looks[f"policy {len(PALETTE)}"].color


def test_only_configurations_that_slow_jobs_have_a_slowdown_curve():
    shown = texts(PLOTS["slowdown"]()).split()
    assert "mmfs" in shown
    assert "sia" not in shown
    assert "no job is slowed" in texts(PLOTS["no slowdown"]())


def test_importance_shows_the_fifteen_largest():
    names = re.findall(r"feature_\d+", texts(PLOTS["importance"]()))
    assert names == [f"feature_{i}" for i in range(29, 14, -1)]


def test_long_utilisation_is_averaged_not_sampled():
    hours = 2000
    times_s, shares = 3600.0 * np.arange(hours), np.tile([0.0, 1.0], hours // 2)
    coarse_s, coarse, step_h = plots._coarser(times_s, shares)
    assert len(coarse_s) <= MOST_POINTS
    assert step_h == 5.0
    assert coarse.mean() == pytest.approx(0.5)
    assert set(coarse.round(3)) == {0.4, 0.6}


def test_trace_plots_follow_what_a_description_holds():
    figures = {"widths": {"1": 3}}
    description = {
        "curves": {"burst_share": {"x": [0.5, 2.0], "y": [0.5, 1.0]}, "interarrival_s": {"x": [], "y": []}},
        "pools": {"a": figures},
        "total": {"first_submit_s": 5.0},
        "utilization_hourly": [],
    }
    assert list(trace_plots.trace_plots(description)) == ["burst_share", "widths"]
    assert "arrivals" in trace_plots.trace_plots(description, [0.0, 10.0])
