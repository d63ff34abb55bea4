"""Charts hold what they are given, the same for the same data, and no text of theirs leaves the page's element."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from jobcast.pipelines.report import backtest_charts, charts, predictor_plots, trace_plots
from jobcast.pipelines.report.charts import MOST_POINTS, Axis, Chart, thin_cdf

RNG = np.random.default_rng(0)
VALUES = RNG.lognormal(size=99)
DAY_S = 86400.0
COLOURS = {"sia": "#111111", "mmfs": "#222222"}


def forest():
    rows = [{"label": "sia registry", "against": "sia random", "ratio": 1.5, "low": 1.2, "high": 1.9}]
    rows += [{"label": "x", "against": "y", "ratio": 1.0, "low": None, "high": None}]
    return backtest_charts.gains_forest(rows)


CHARTS = {
    "speedup": lambda: backtest_charts.speedups({"sia": VALUES, "mmfs": [0.5, 1.0, 20.0]}, COLOURS, "fcfs"),
    "slowdown": lambda: backtest_charts.slowdowns({"sia": np.zeros(9), "mmfs": [0.0, 3.0, 90.0]}, COLOURS),
    "utilisation": lambda: backtest_charts.utilisation({"sia": (3600.0 * np.arange(48), np.linspace(0, 1, 48))}),
    "busy": lambda: backtest_charts.busy(3600.0 * np.arange(48), np.linspace(0, 1, 48)),
    "forest": forest,
    "reliability": lambda: predictor_plots.reliability({"5min": [{"forecast": 0.2, "observed": 0.3, "n": 7}]}),
    "precision": lambda: predictor_plots.precision_recall(
        "5min",
        [{"precision": 0.5, "recall": 1.0}, {"precision": 0.9, "recall": 0.1}],
        {"always": {"precision": 0.5, "recall": 1.0}, "unknown": {"precision": None, "recall": None}},
    ),
    "importance": lambda: predictor_plots.importance("60min", {f"feature_{i}": float(i) for i in range(30)}),
    "widths": lambda: trace_plots.widths_by_pool({"a": {"1": 5, "8": 5}, "b": {"64": 1}}),
    "arrivals": lambda: trace_plots.arrivals(np.linspace(0, 30 * DAY_S, 200)),
    "distribution": lambda: trace_plots.distribution("interarrival_s", {"x": [0.0, 1.0, 60.0], "y": [0.2, 0.5, 1.0]}),
}


def values(chart) -> list[dict]:
    return [row for rows in chart.spec["datasets"].values() for row in rows]


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_as_wide_as_their_box_and_the_same_again(name):
    one = CHARTS[name]()
    assert one == CHARTS[name]()
    assert (one.spec["width"], bool(one.title)) == ("container", True)
    assert values(one)


def test_a_drawing_has_the_same_bytes_whatever_was_drawn_before():
    first = charts.svg_of(CHARTS["reliability"]())
    assert 'id="clip' in first
    charts.svg_of(CHARTS["busy"]())
    assert charts.svg_of(CHARTS["reliability"]()) == first


def test_the_same_stands_alone_as_svg():
    root = ET.fromstring(charts.svg_of(CHARTS["slowdown"]()))
    told = " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))
    assert "Jobs slowed by at least so much" in told
    assert "10 min" in told


def test_windows_are_counted_in_whole_numbers():
    walk = [{"window": at, "saved_h_week": 1.0, "best_saved_h_week": 2.0} for at in range(2)]
    root = ET.fromstring(charts.svg_of(backtest_charts.weekly_walk(walk)))
    # The other axis has the hours, which may be halves.
    title = next(node for node in root.iter() if "".join(node.itertext()) == "window" and node.tag.endswith("text"))
    axis = next(node for node in root.iter() if "role-axis" in node.get("class", "") and title in node.iter())
    labels = ["".join(node.itertext()) for node in axis.iter() if node.tag.endswith("text") and node is not title]
    assert [label for label in labels if label] == ["1", "2"]


def test_names_are_text_within_the_page():
    drawn = charts.curves("t", {"</script><b>": ([0.0], [1.0])}, Axis("x"), Axis("y"))
    assert "<" not in charts.as_json(drawn)
    assert json.loads(charts.as_json(drawn)) == drawn.spec


def test_curves_are_thinned_but_keep_their_ends():
    values = RNG.lognormal(size=20_000)
    x, y = thin_cdf(values)
    assert len(x) <= MOST_POINTS
    assert (x[0], x[-1], y[0], y[-1]) == (values.min(), values.max(), 1 / 20_000, 1.0)
    middle = np.searchsorted(np.sort(values), x, side="right") / 20_000
    assert y == pytest.approx(middle)
    assert (np.diff(x) >= 0).all()


def test_only_configurations_that_slow_jobs_have_a_slowdown_curve():
    assert {row["series"] for row in values(CHARTS["slowdown"]()) if "series" in row} == {"mmfs"}
    assert backtest_charts.slowdowns({"sia": np.zeros(9)}, COLOURS) is None


def test_importance_shows_the_fifteen_largest():
    assert [row["row"] for row in values(CHARTS["importance"]())] == [f"feature {i}" for i in range(29, 14, -1)]


def test_a_feature_that_gains_nothing_is_no_chart():
    drawn = predictor_plots.CurvePoints(importance={"5min": {"hour": 2.0, "load": 0.0}, "720min": {"hour": 0.0}})
    assert list(drawn.drawings()) == ["importance_5min"]


def test_rules_have_one_colour_at_every_horizon_and_dots_at_the_edge_are_whole():
    points = [{"precision": 0.5, "recall": 1.0}, {"precision": 0.9, "recall": 0.1}]
    rules = {name: {"precision": 0.5, "recall": 1.0} for name in ("in use", "always", "recipe")}
    drawn = [
        predictor_plots.precision_recall("5min", points, known)
        for known in (rules, {**rules, "always": {"precision": None, "recall": None}})
    ]
    colours = []
    for one in drawn:
        lines = next(layer for layer in one.spec["layer"] if layer.get("name") == "lines")
        scale = lines["encoding"]["color"]["scale"]
        colours.append(dict(zip(scale["domain"], scale["range"], strict=True))["recipe"])
        assert lines["encoding"]["x"]["scale"]["padding"] == charts.DOT_PX
    assert colours[0] == colours[1]


def test_a_legend_names_all_series_however_many():
    named = {f"curve {letter}": ([0.0, 1.0], [0.0, 1.0]) for letter in "abcdefghij"}
    assert set(named) <= set(texts(charts.svg_of(charts.curves("t", named, Axis("x"), Axis("y")))))


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter() if node.tag.endswith("text")]


def test_one_value_is_a_dot_on_an_axis_with_room():
    late = backtest_charts.slowdowns({"sia": [0.0, 10.0]}, {"sia": charts.PALETTE[0]})
    assert late is not None
    root = ET.fromstring(charts.svg_of(late))
    assert len([node for node in root.iter() if node.get("aria-roledescription") == "point"]) == 1
    # Ten minutes, a decade to either side.
    assert [text for text in texts(charts.svg_of(late)) if text.endswith(("s", "min", " h")) and text[0].isdigit()] == [
        "1 min", "10 min", "1 h",
    ]  # fmt: skip


def test_clocks_are_of_24_hours_to_the_minute():
    drawn = trace_plots.arrivals([1.7e9, 1.7e9 + 60.0])  # 22:13 and 22:14, within one bar of an hour
    assert "22:15" in texts(charts.svg_of(drawn))


def test_names_of_several_lines_lie_beside_the_middle_of_their_bands():
    names = ["a", "a name that is so long that it takes three lines of text beside its band"]
    one = trace_plots.widths_by_pool({name: {"1": 5} for name in names})
    root = ET.fromstring(charts.svg_of(one))
    labels = [
        [float(node.get("transform").split(",")[1].rstrip(")")) for node in group.iter() if node.tag.endswith("text")]
        for group in root.iter()
        if "role-axis-label" in group.get("class", "")
    ]
    (of_rows,) = (found for found in labels if len(found) == 2)
    # The first line of three stands a line above the middle.
    assert of_rows[1] - of_rows[0] == pytest.approx(one.spec["height"] / 2 - charts.LINE_PX)


def test_what_is_zoomed_is_the_lines_and_not_what_stands_beside():
    drawn = charts.curves("t", {"a": ([0.0, 1.0], [0.0, 1.0])}, Axis("x"), Axis("y"), beside=[charts.line_at("y", 0.5)])
    assert [one["views"] for one in drawn.spec["params"] if one["name"] == "zoom"] == [["lines"]]


def test_the_last_mean_holds_to_its_end():
    ends = [row["x"] for row in values(CHARTS["busy"]())]
    assert (len(ends), ends[-1]) == (49, 48 * 3_600_000)


def test_what_is_recommended_lies_on_top():
    point = {"label": "x", "policy": "x", "saved_h_week": 0.0, "slowdown_h_week": 0.0, "slowed_pct": 0.0}
    kinds = ("recommended", "cannot be had", "in use now", "could be run")
    drawn = backtest_charts.gain_against_risk([point | {"kind": k, "speedup": 1.0, "command": ""} for k in kinds])
    order = [row["series"] for row in values(drawn) if "series" in row]
    assert order == ["cannot be had", "could be run", "in use now", "recommended"]
    # The name of the highest point keeps off the legend.
    assert drawn.spec["layer"][1]["encoding"]["y"]["scale"]["padding"] >= 13 + 11


def test_long_names_in_a_legend_are_whole_on_narrow_pages():
    long = "a name of fifty letters that would be cut at the right"
    drawn = charts.curves("t", {long: ([0.0], [1.0]), "b": ([1.0], [1.0])}, Axis("x"), Axis("y"))
    shown = charts.svg_of(Chart("t", {**drawn.spec, "config": {**charts.CONFIG, "legend": {"labelLimit": 200}}}))
    assert long.replace(" ", "") in "".join(texts(shown)).replace(" ", "")


def test_long_utilisation_is_averaged_not_sampled():
    hours = 2000
    times_s, shares = 3600.0 * np.arange(hours), np.tile([0.0, 1.0], hours // 2)
    coarse_s, coarse, step_h = backtest_charts.coarser(times_s, shares)
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
    # Nobody waits: a logarithmic axis has no place for zeros.
    description["curves"]["wait_s"] = {"x": [0.0, 0.0], "y": [0.5, 1.0]}
    assert list(trace_plots.trace_plots(description)) == ["burst_share", "widths"]
    assert "arrivals" in trace_plots.trace_plots(description, [0.0, 10.0])
