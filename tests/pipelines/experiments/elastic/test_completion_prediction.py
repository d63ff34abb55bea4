"""What is told of an answer: quantiles in order, and no end before its start, whatever outcomes have taught."""

import numpy as np
import pytest

from jobcast.models.completion.intervals import IntervalTracker, Position
from jobcast.models.promise_ledger import END, START
from jobcast.pipelines.experiments.elastic.completion_prediction import QUANTILES, Answer, Question, tell

AT_S = 1000.0
STARTS_S = AT_S + np.linspace(600.0, 1200.0, 41)
LATE, EARLY = 1.8, -1.8
"""Where outcomes came, far behind or before all of their futures."""


def taught(place):
    """By sixty jobs that were there one after the other."""
    return IntervalTracker(known=[Position(place, True, 0.0, 100.0 * n, 100.0 * n + 50.0) for n in range(60)])


@pytest.mark.parametrize("start", [None, LATE, EARLY])
@pytest.mark.parametrize("end", [None, LATE, EARLY])
def test_whatever_was_learnt_quantiles_ascend_and_no_end_is_before_its_start(start, end):
    answer = Answer(1, np.nan, np.nan, STARTS_S, STARTS_S + 60.0)
    trackers = {kind: taught(place) for kind, place in ((START, start), (END, end)) if place is not None}
    told = tell(answer, Question(AT_S), trackers)
    ends, starts = ([one[f"{name}_h"] for name in QUANTILES] for one in (told, told[START]))
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(one <= other for one, other in zip(starts, ends, strict=True))
