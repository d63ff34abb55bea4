"""Figures of pending jobs' waits, worked out by hand."""

from dataclasses import fields
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.clock import WEEK_S
from jobcast.features.queue_state import queue_columns
from jobcast.features.wait_rows import WaitRows
from jobcast.models.evaluation import queue_waits
from jobcast.models.evaluation.queue_waits import PLAIN, WaitScores, fold_figures, plain_l1, points, wait_figures
from jobcast.models.queue_wait import BOUND, MEDIAN, Fold
from jobcast.models.queue_wait import LEVELS as TOLD

LEVELS = [1.0, 2.0, 10.0, 20.0, 40.0, 80.0]
"""Quantiles that are told of every job: the median is 10 s, the bound 40 s."""


def scores(wait_s, week=0.0, on_gpus=True, blocks=None, rules=None, waited_s=None):
    """Of those that never started `waited_s` is how long they had waited when the trace ended: not at all."""
    count = len(wait_s)
    waited_s = np.where(np.isfinite(wait_s), wait_s, 0.0) if waited_s is None else np.array(waited_s)
    at_s = np.broadcast_to(np.asarray(week, float) * WEEK_S + 5.0, count)
    blocks = np.arange(count) if blocks is None else np.array(blocks)
    levels = np.tile(LEVELS, (count, 1))
    return WaitScores(at_s, np.array(wait_s), waited_s, levels, np.broadcast_to(on_gpus, count), blocks, rules or {})


def test_points_by_hand():
    told = points(np.array([100.0, 100.0, 100.0]), np.array([100.0, 250.0, 10.0]))
    assert told["mse_log10"] == pytest.approx((np.log10(2.5) ** 2 + 1.0) / 3)
    assert (told["within_2x"], told["within_3x"], told["median_factor"]) == pytest.approx((1 / 3, 2 / 3, 2.5))
    ends = points(np.array([2.0, 3.0, 3.5]), np.ones(3))
    assert (ends["within_2x"], ends["within_3x"]) == (1 / 3, 2 / 3)


def test_who_is_at_an_end_of_an_interval_is_in_it():
    """Waits of 1.5 to 41 s: the 50 % interval is 2 to 20 s, the bound 40 s; one never started."""
    figures = wait_figures(scores([1.5, 2.0, 5.0, 20.0, 40.0, 41.0, inf]), 0.0, draws=0)
    assert (figures["n"], figures["unknown"], MEDIAN, BOUND) == (6, 1, 2, 4)
    assert (figures["coverage_50"], figures["coverage_90"]) == pytest.approx((3 / 6, 5 / 6))
    assert (figures["bound_median_s"], figures["wait_median_s"]) == (40.0, 12.5)
    assert (figures["groups"]["cpu"]["n"], figures["groups"]["gpu"]["n"]) == (0, 6)
    assert "intervals" not in figures
    drawn = wait_figures(scores([40.0] * 30), 0.0, draws=20)["intervals"]["all"]
    assert drawn["coverage_90"] == [1.0, 1.0]


def test_who_waits_still_past_an_end_of_an_interval_is_not_in_it():
    """The upper end of the 50 % interval is 20 s, the bound 40 s; three of five wait still, since 15, 30 and 50 s."""
    told = wait_figures(scores([5.0, 30.0, inf, inf, inf], waited_s=[5.0, 30.0, 15.0, 30.0, 50.0]), 0.0, draws=20)
    assert (told["n"], told["unknown"], told["wait_median_s"]) == (2, 3, 17.5)
    assert (told["coverage_50"], told["coverage_90"]) == pytest.approx((1 / 4, 2 / 3))
    assert told["weeks"] == [{"from_s": 0.0, **{name: told[name] for name in told["weeks"][0] if name != "from_s"}}]
    nobody = wait_figures(scores([inf, inf], waited_s=[50.0, 5.0]), 0.0, draws=20)
    assert (nobody["n"], nobody["mse_log10"], nobody["coverage_90"], nobody["bound_median_s"]) == (0, None, 0.0, None)


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
    rules = {"exact": np.array(wait_s), "tenfold": 10.0 * np.array(wait_s)}
    figures = wait_figures(scores(wait_s, blocks=blocks, rules=rules), 0.0, draws=400)
    assert figures["against"]["tenfold"]["all"]["mse_log10"] == pytest.approx(30 / 80 - 1.0)
    assert figures["baselines"]["exact"]["mse_log10"] == 0.0
    assert figures["baselines"]["exact"]["groups"]["gpu"]["within_2x"] == 1.0
    against = figures["against"]["exact"]["all"]
    assert against["mse_log10"] == pytest.approx(30 / 80)
    low, high = against["interval"]
    assert (low, high) == pytest.approx((0.0, 90 / 120))
    assert figures["intervals"]["all"] == {"mse_log10": [low, high], "coverage_90": [1.0 - high, 1.0]}
    assert wait_figures(scores(wait_s), 0.0, draws=400)["intervals"]["all"]["mse_log10"][1] < 0.5 * high + 0.2


def rows_of(start_s, at_s, account=None):
    """Rows of jobs 0, 1, ..., each with the columns 0, 1, ... of its own number more."""
    jobs = np.arange(len(start_s))
    X = (jobs[:, None] + np.arange(len(queue_columns()))).astype(np.float32)
    account = np.zeros(len(jobs), np.int64) if account is None else np.array(account)
    return WaitRows(X, jobs, np.array(at_s), np.array(start_s), account, np.ones(len(jobs)))


def test_rows_of_an_account_and_day_are_a_block_and_waits_are_a_second_at_least():
    rows = rows_of([10.5, 23.0, 86_415.0, inf], [10.0, 20.0, 86_410.0, 10.0], [0, 0, 0, 1])
    trace, levels = SimpleNamespace(last_known_s=1e9, gpus=np.array([0, 1, 2, 0])), np.tile(LEVELS, (4, 1))
    found = WaitScores.of(rows, levels, trace, {"a": np.arange(4.0), "b": np.ones(4)})
    assert found.wait_s.tolist() == [1.0, 3.0, 5.0, inf]
    assert found.on_gpus.tolist() == [False, True, True, False]
    assert found.block.tolist() == [0, 0, 1, 2]
    both = WaitScores.joined([found, WaitScores.of(rows, levels, trace, {"a": np.arange(4.0) + 4.0})])
    assert {name: rule.tolist() for name, rule in both.rules.items()} == {"a": [*range(8)]}
    assert {len(getattr(both, one.name)) for one in fields(both) if one.name != "rules"} == {8}
    assert WaitScores.joined([found]).rules.keys() == {"a", "b"}


def test_a_fold_is_scored_as_the_folds_before_it_move_it():
    """The first fold's bound lay 0.25 too low. Of the last: waits of 10, 100 (the bound) and 200 s, two not over.

    One of them has passed the bound, the other is just at it.
    """
    low = np.ones((3, len(TOLD))) - 0.25 * (np.arange(len(TOLD)) == BOUND)
    first = Fold(rows_of([10.0] * 3, [0.0] * 3), low, low)
    last = rows_of([10.0, 100.0, 200.0, inf, inf], [0.0, 0.0, 0.0, 0.0, 900.0])
    forecast = np.tile([0.0, 0.5, 1.0, 1.5, 1.75, 3.0], (5, 1))
    figures, off = fold_figures([first, Fold(last, forecast, forecast)], 1000.0), np.array([0.0, 1.0, np.log10(20.0)])
    assert (figures["n"], figures["coverage_90"], figures["within_2x"]) == (3, 2 / 4, 1 / 3)
    assert (figures["mae_log10"], figures["mse_log10"]) == pytest.approx((off.mean(), (off**2).mean()))
    assert fold_figures([first], 1000.0) == {}


def test_a_fold_is_scored_by_its_drain_times_where_these_answer():
    """They are not moved: of waits of 10 and 200 s, and one of over 100, the bound of 56 s holds the first."""
    told = np.tile([0.0, 0.5, 1.0, 1.5, 1.75, 3.0], (3, 1))
    last = Fold(rows_of([10.0, 200.0, inf], [0.0, 0.0, 900.0]), told + 9.0, told)
    figures = fold_figures([last, last], 1000.0, by_drain=True)
    assert (figures["n"], figures["coverage_90"], figures["within_2x"]) == (2, 1 / 3, 1 / 2)


def test_the_rule_to_beat_is_lightgbms_l1_on_what_a_job_and_its_snapshot_tell(monkeypatch):
    def train(data, settings, trees, seed, threads, more):
        assert (known.X[[0, 2]][:, PLAIN] == data.data).all()
        assert data.label.tolist() == [1.0, 2.0]
        assert (trees, settings.leaves, settings.learning_rate, settings.column_share, seed) == (300, 63, 0.05, 0.5, 7)
        assert more == {"objective": "l1", "bagging_fraction": 0.7, "bagging_freq": 1}
        return SimpleNamespace(predict=lambda rows, num_threads: rows[:, 0].astype(float))

    known = rows_of([10.0, 500.0, 100.0], [0.0] * 3)
    monkeypatch.setattr(queue_waits, "trained_booster", train)
    assert plain_l1(known, 100.0, known, seed=7).tolist() == [1.0, 10.0, 100.0]
