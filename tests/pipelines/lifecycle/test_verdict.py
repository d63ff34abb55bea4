"""When a candidate is worse: by its main figure, by what sia does with it."""

import pytest

from jobcast.models.predictors import answers_of
from jobcast.pipelines.lifecycle.comparison import why_slower, why_worse
from jobcast.pipelines.lifecycle.standards import LIVES


def figures(difference, interval, loss=True, candidate=0.5, champion=0.4):
    blocks = {"60min": {"candidate": {"figure": candidate}, "champion": {"figure": champion}}}
    return {
        "figure": "figure", "less_is_better": loss, "blocks": blocks, "difference": difference, "interval": interval,
        "confidence": 0.95,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("difference", "interval", "loss", "worse"),
    [
        (0.1, [0.05, 0.15], True, True),
        (0.1, [-0.05, 0.25], True, False),
        (-0.1, [-0.15, -0.05], True, False),
        (-0.1, [-0.15, -0.05], False, True),
        (0.1, [0.05, 0.15], False, False),
        (0.019, None, True, False),  # 5 % of the champion's 0.4 is 0.02
        (0.021, None, True, True),
        (-0.021, None, False, True),
        (None, None, True, False),
    ],
)
def test_the_main_figure_counts_where_there_is_no_doubt(difference, interval, loss, worse):
    assert bool(why_worse(figures(difference, interval, loss))) == worse


@pytest.mark.parametrize(
    ("slowed", "speedup", "reasons"),
    [(1.0, 10.0, 0), (1.5, 9.5, 0), (1.51, 10.0, 1), (1.0, 9.49, 1), (3.0, 5.0, 2), (0.0, 20.0, 0)],
)
def test_the_schedule_counts_beyond_its_tolerance(slowed, speedup, reasons):
    """Half a percentage point of jobs slowed, five percent of the speedup."""
    theirs = {"slowed_pct": 1.0, "speedup_gmean": 10.0}
    assert len(why_slower({"slowed_pct": slowed, "speedup_gmean": speedup}, theirs)) == reasons


@pytest.mark.parametrize(
    ("predictor", "ours", "theirs", "reasons"),
    [
        ("regime", {"unfair_pct_105": 3.0}, {"unfair_pct_105": 2.0}, ["treats 3.00 % of the jobs "]),
        ("regime", {"makespan_s": 1060.0}, {"makespan_s": 1000.0}, ["makespan 1,060 s against "]),
        ("regime", {"makespan_s": 1040.0}, {"makespan_s": 1000.0}, []),
        ("accuracy-curve", {"deadline_ratio": 0.8}, {"deadline_ratio": 0.9}, ["keeps 80.0 % of the deadl"]),
        ("epoch-time", {"total_eur": 11.0}, {"total_eur": 10.0}, ["costs 11.0 EUR against 10"]),
        ("epoch-time", {"total_eur": 9.0, "slowed_pct": 50.0}, {"total_eur": 10.0, "slowed_pct": 0.0}, []),
        ("mlf-policy", {"speedup_gmean": None}, {"speedup_gmean": 1.0}, []),
        ("device-rl", {"speedup_gmean": 0.9}, {"speedup_gmean": 1.0}, ["speedup 0.900 against 1.0"]),
    ],
)  # fmt: skip
def test_each_judge_is_bound_by_its_own_goal(predictor, ours, theirs, reasons):
    found = why_slower(ours, theirs, LIVES[answers_of(predictor)].judges[0].bounds)
    assert [reason[: len(told)] for reason, told in zip(found, reasons, strict=True)] == reasons


def test_durations_are_judged_by_who_lends_and_by_who_ranks():
    assert [judge.policy for judge in LIVES[answers_of("job-duration")].judges] == ["sia", "ssf"]
