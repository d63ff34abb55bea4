"""The gate before the first champions: what passes, by figures and bounds, and how it is told."""

import numpy as np
import pytest

from jobcast.domain.clock import DAY_S
from jobcast.pipelines.lifecycle.gate import outcome, paired, why_not


def gains(slowed=0.5, speedup=2.0, low=1.5, high=2.5):
    return {
        "confidence": 0.95, "slowed_pct": slowed, "slowed_pct_low": 0.0, "slowed_pct_high": 2 * slowed,
        "speedup": speedup, "speedup_low": low, "speedup_high": high,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "reasons"),
    [
        (gains(), []),
        (gains(slowed=1.0), []),  # at most 1 %
        (gains(slowed=1.01), ["slows 1.01 %"]),
        (gains(slowed=0.0, speedup=1.2), []),  # at least 1.2
        (gains(speedup=1.19, low=1.01), ["less than 1.2"]),
        (gains(low=1.0), ["no gain beyond doubt"]),  # equal to lending nothing
        (gains(low=1.0001), []),
        (gains(low=None, high=None), ["a single day"]),
        (gains(slowed=6.75, low=0.9), ["slows 6.75 %", "no gain beyond doubt"]),
    ],
)
def test_a_trio_passes_that_slows_few_and_is_worth_it(figures, reasons):
    found = why_not(figures, slowed_pct=1.0, speedup=1.2)
    assert len(found) == len(reasons)
    assert all(reason in told for reason, told in zip(reasons, found, strict=True))


class Log:
    """What the gate reads of a run."""

    def __init__(self, jct_s, days):
        self.jct_s = np.array(jct_s, np.float64)
        self.told_submit_s = DAY_S * np.array(days, np.float64)


def test_the_trio_is_paired_with_lending_nothing_over_all_windows():
    """Four jobs of two windows: twice as fast, the same, 8 times as fast, half as fast; one does not count."""
    nothing = [Log([8.0, 6.0, 3.0], [0, 0, 1]), Log([8.0, 2.0], [2, 3])]
    trio = [Log([4.0, 6.0, 30.0], [0, 0, 1]), Log([1.0, 4.0], [2, 3])]
    counted = [np.array([True, True, False]), np.array([True, True])]
    found = paired(list(zip(trio, nothing, counted, strict=True)), draws=200)
    assert (found["jobs"], found["days"]) == (4, 3)
    assert found["slowed_pct"] == 25.0
    assert found["speedup"] == pytest.approx((2 * 1 * 8 / 2) ** 0.25)
    assert found["mean_jct_change_s"] == pytest.approx((-4 + 0 - 7 + 2) / 4)
    assert found["slowed_pct_low"] <= 25.0 <= found["slowed_pct_high"]
    assert "slowed_change_pct" not in found


TRIO = {"will-jobs-arrive": 2, "new-load": 3, "job-duration": 4}


def told(promoted=False, before=None, reasons=("slows 9 % of the jobs",)):
    told = {"promoted": promoted, "trio": TRIO, "before": before or {}, "reasons": list(reasons)}
    return told | {"figures": gains(), "tries": 1}


def test_without_champions_the_run_says_why_and_what_to_do():
    lines = outcome(told()).lines
    assert lines[0].startswith("no champion: the new trio (will-jobs-arrive:2, new-load:3, job-duration:4)")
    assert lines[1] == "  it slows 9 % of the jobs"
    assert "more history" in lines[2]
    assert lines[-1].endswith("jobcast models promote job-duration:4 --force")


def test_champions_that_there_are_stay():
    kept = outcome(told(before=dict.fromkeys(TRIO, 1)))
    assert kept.lead.startswith("champions stay will-jobs-arrive:1, new-load:1, job-duration:1: ")
    new = outcome(told(promoted=True, before=dict.fromkeys(TRIO, 1), reasons=()))
    assert new.lines == [
        "champions: will-jobs-arrive:2, new-load:3, job-duration:4",
        "  it slows 0.500 % of the test window's jobs (95 % interval 0 to 1.00) and is 2.00 times as fast as lending "
        "nothing (1.50 to 2.50)",
    ]


def test_a_choice_on_the_test_window_is_told():
    assert "flatters" in outcome(told(promoted=True) | {"tries": 3}).lines[-1]
