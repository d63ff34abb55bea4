"""Axes and colours of SIA's plots."""

import xml.etree.ElementTree as ET

import pytest

from jobcast.pipelines.report.plots import PALETTE
from papers.sia import (
    figure13,
    figure14,
    figure15a,
    figure15b,
    figure16,
    potential,
    table17,
)
from papers.sia.measures import GMEAN, TOTAL
from papers.sia.plotting import COLORS, HOME, _colors, boxes, lines, over_draws, ranges
from papers.sia.units import Done

FIGURES = (potential, figure13, figure14, figure15a, figure15b, figure16, table17)


def runs(totals, cases=("2",)):
    return [
        Done(case, "sia", seed, {"speedup_gmean": 1.0 + seed, "slowdown_total_min": total})
        for case in cases
        for seed, total in enumerate(totals)
    ]


def texts(out, name="plot"):
    root = ET.parse(out / f"{name}.svg").getroot()
    return ["".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_no_two_policies_of_a_figure_look_alike():
    for figure in FIGURES:
        names = [row.title for row in figure.ROWS]
        colors = _colors(names)
        assert set(colors) == set(names)
        assert len(set(colors.values())) == len(names)


def test_a_policy_keeps_its_colour_unless_another_has_it():
    own = {name: COLORS[place] for name, place in HOME.items()}
    assert _colors(["mmfs", "sia"]) == {"mmfs": own["mmfs"], "sia": own["sia"]}
    assert _colors(["sia, exact forecasts"])["sia, exact forecasts"] == own["sia"]
    both = _colors(["sia", "sia, exact forecasts", "a new one"])
    assert both == {"sia": own["sia"], "sia, exact forecasts": PALETTE[-1], "a new one": PALETTE[-2]}


@pytest.mark.parametrize(
    ("totals", "ticks"),
    [
        ([0.0, 0.0], ["0", "1"]),
        ([0.0, 900.0], ["0", "1", "10", "100"]),
        ([0.0, 3e5], ["0", "1", "100", "10,000"]),
        ([2e3, 3e9], ["0", "1", "1,000", "1,000,000", "1,000,000,000"]),
    ],
)
def test_slowdowns_begin_at_0_and_go_by_powers_of_ten(totals, ticks, tmp_path):
    over_draws(tmp_path, "plot", "A plot", runs(totals), (TOTAL,))
    found = texts(tmp_path)
    assert found[: len(ticks)] == ticks
    assert "slowdown, min in all" in found


def test_many_places_are_labelled_by_halves(tmp_path):
    lines(tmp_path, "plot", "A plot", runs([1.0], ("0.8", "0.85", "0.9")), (TOTAL,), "scale")
    assert texts(tmp_path)[:3] == ["0.8", "0.85", "0.9"]
    scales = ("0.8", "0.85", "0.9", "0.95", "1, without 2 donors", "1.05", "1.1")
    lines(tmp_path, "plot", "A plot", runs([1.0], scales), (TOTAL,), "scale")
    assert [one for one in texts(tmp_path) if one][:4] == ["0.8", "0.9", "1", "1.1"]


@pytest.mark.parametrize("plot", [ranges, boxes])
def test_cases_are_named_below(plot, tmp_path):
    more = ("queues",) if plot is boxes else ()
    plot(tmp_path, "plot", "A plot", runs([0.0, 5.0], ("2", "11")), (GMEAN, TOTAL), *more)
    found = texts(tmp_path)
    assert {"2", "11", "speedup, geometric mean", "slowdown, min in all", "sia", "A plot"} <= set(found)
    assert ("queues" in found) == (plot is boxes)


def test_the_same_runs_give_the_same_file(tmp_path):
    for folder in ("one", "two"):
        over_draws(tmp_path / folder, "plot", "A plot", runs([0.0, 7.0, 2.0]), (GMEAN, TOTAL))
    assert (tmp_path / "one" / "plot.svg").read_bytes() == (tmp_path / "two" / "plot.svg").read_bytes()
