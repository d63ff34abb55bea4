"""When a candidate is worse: by its main figure, by what sia does with it."""

import pytest

from jobcast.pipelines.lifecycle.comparison import why_worse


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
    assert bool(why_worse(figures(difference, interval, loss), None)) == worse


@pytest.mark.parametrize(
    ("slowed", "speedup", "reasons"),
    [(1.0, 10.0, 0), (1.5, 9.5, 0), (1.51, 10.0, 1), (1.0, 9.49, 1), (3.0, 5.0, 2), (0.0, 20.0, 0)],
)
def test_the_schedule_counts_beyond_its_tolerance(slowed, speedup, reasons):
    """Half a percentage point of jobs slowed, five percent of the speedup."""
    backtest = {
        "candidate": {"slowed_pct": slowed, "speedup_gmean": speedup},
        "champion": {"slowed_pct": 1.0, "speedup_gmean": 10.0},
    }
    assert len(why_worse(figures(0.0, [-1.0, 1.0]), backtest)) == reasons
