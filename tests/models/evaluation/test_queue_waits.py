"""Figures of pending jobs' waits, worked out by hand."""

from math import inf

import numpy as np
import pytest

from jobcast.models.evaluation.queue_waits import WaitScores, points, wait_figures
from jobcast.models.queue_wait import BOUND, MEDIAN, WEEK_S

LEVELS = [1.0, 2.0, 10.0, 20.0, 40.0, 80.0]
"""Quantiles that are told of every job: the median is 10 s, the bound 40 s."""


def scores(wait_s, week=0.0, on_gpus=True, blocks=None, rules=None):
    count = len(wait_s)
    at_s = np.broadcast_to(np.asarray(week, float) * WEEK_S + 5.0, count)
    blocks = np.arange(count) if blocks is None else np.array(blocks)
    levels = np.tile(LEVELS, (count, 1))
    return WaitScores(at_s, np.array(wait_s), levels, np.broadcast_to(on_gpus, count), blocks, rules or {})


def test_points_by_hand():
    told = points(np.array([100.0, 100.0, 100.0]), np.array([100.0, 250.0, 10.0]))
    assert told["mse_log10"] == pytest.approx((np.log10(2.5) ** 2 + 1.0) / 3)
    assert (told["within_2x"], told["within_3x"], told["median_factor"]) == pytest.approx((1 / 3, 2 / 3, 2.5))


def test_who_is_at_an_end_of_an_interval_is_in_it():
    """Waits of 2, 5, 20, 40 and 41 s: the 50 % interval is 2 to 20 s, the bound 40 s; one never started."""
    figures = wait_figures(scores([2.0, 5.0, 20.0, 40.0, 41.0, inf]), 0.0, draws=0)
    assert (figures["n"], figures["unknown"], MEDIAN, BOUND) == (5, 1, 2, 4)
    assert (figures["coverage_50"], figures["coverage_90"]) == pytest.approx((3 / 5, 4 / 5))
    assert (figures["bound_median_s"], figures["wait_median_s"]) == (40.0, 20.0)
    assert (figures["groups"]["cpu"]["n"], figures["groups"]["gpu"]["n"]) == (0, 5)
    assert "intervals" not in figures


def test_groups_are_of_jobs_with_and_without_gpus_and_weeks_count_from_the_first():
    figures = wait_figures(scores([5.0, 40.0, 50.0], week=[1, 1, 3], on_gpus=[True, False, True]), WEEK_S, draws=0)
    assert {name: (one["n"], one["coverage_90"]) for name, one in figures["groups"].items()} == {
        "gpu": (2, 0.5),
        "cpu": (1, 1.0),
    }
    assert [(week["from_s"], week["n"], week["coverage_90"]) for week in figures["weeks"]] == [
        (WEEK_S, 2, 1.0),
        (3 * WEEK_S, 1, 0.0),
    ]


def test_a_rule_has_points_and_a_difference_whose_interval_draws_whole_blocks():
    """The median is off by a factor of 10 for 30 jobs of one block, and right for 50 of five others; the rule for all.

    Drawn six at a time, the first block misses in a third of the draws, and is there thrice or more in one of sixteen.
    """
    wait_s = [100.0] * 30 + [10.0] * 50
    blocks = [8] * 30 + [0, 1, 2, 3, 9] * 10
    figures = wait_figures(scores(wait_s, blocks=blocks, rules={"exact": np.array(wait_s)}), 0.0, draws=400)
    assert figures["baselines"]["exact"]["mse_log10"] == 0.0
    assert figures["baselines"]["exact"]["groups"]["gpu"]["within_2x"] == 1.0
    against = figures["against"]["exact"]["all"]
    assert against["mse_log10"] == pytest.approx(30 / 80)
    low, high = against["interval"]
    assert (low, high) == pytest.approx((0.0, 90 / 120))
    assert figures["intervals"]["all"] == {"mse_log10": [low, high], "coverage_90": [1.0 - high, 1.0]}
    assert wait_figures(scores(wait_s), 0.0, draws=400)["intervals"]["all"]["mse_log10"][1] < 0.5 * high + 0.2
