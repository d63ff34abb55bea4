import pickle
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.answer_checks import (
    bin_index,
    bin_probabilities,
    flag,
    load_gpus,
    number,
    probability,
    rising_loads,
    run_time_s,
)
from jobcast.domain.bad_answers import ARRIVALS, BadAnswerError, BadAnswers, Reason, bad_lines


@pytest.mark.parametrize(
    ("check", "value", "reason"),
    [
        (number, "1", Reason.NO_NUMBER),
        (number, True, Reason.NO_NUMBER),
        (number, Decimal(1), Reason.NO_NUMBER),
        (number, np.array(1.0), Reason.WRONG_SHAPE),
        (number, 10**400, Reason.NOT_FINITE),
        (number, nan, Reason.NOT_FINITE),
        (flag, 0.5, Reason.OUT_OF_RANGE),
        (flag, None, Reason.NO_NUMBER),
        (probability, np.nextafter(1.0, 2.0), Reason.OUT_OF_RANGE),
        (probability, -1e-300, Reason.OUT_OF_RANGE),
        (load_gpus, -0.5, Reason.OUT_OF_RANGE),
        (load_gpus, 1e300, Reason.OUT_OF_RANGE),
        (run_time_s, 0, Reason.OUT_OF_RANGE),
        (run_time_s, inf, Reason.NOT_FINITE),
        (lambda value: bin_index(value, 4), 4, Reason.OUT_OF_RANGE),
        (lambda value: bin_index(value, 4), -1, Reason.OUT_OF_RANGE),
        (lambda value: bin_index(value, 4), 1.5, Reason.OUT_OF_RANGE),
        (lambda value: bin_probabilities(value, 2), (0.5, 0.6), Reason.INCONSISTENT),
        (lambda value: bin_probabilities(value, 2), (1.5, -0.5), Reason.OUT_OF_RANGE),
        (lambda value: bin_probabilities(value, 2), (1.0,), Reason.WRONG_SHAPE),
        (lambda value: bin_probabilities(value, 2), None, Reason.NO_NUMBER),
        (lambda value: rising_loads(value, (0.5, 0.9)), (2.0, 1.0), Reason.NOT_MONOTONE),
        (lambda value: rising_loads(value, (0.9, 0.5)), (1.0, 2.0), Reason.NOT_MONOTONE),
        (lambda value: rising_loads(value, (0.5, 0.9)), [[1.0, 2.0]], Reason.WRONG_SHAPE),
    ],
)
def test_what_is_no_answer_has_a_reason(check, value, reason):
    with pytest.raises(BadAnswerError) as told:
        check(value)
    assert told.value.reason is reason
    assert "\n" not in told.value.what


def test_what_is_one_comes_back_in_plain_python():
    assert [flag(value) for value in (True, np.False_, 1, 0.0)] == [True, False, True, False]
    assert (number(np.float32(2)), number(Fraction(1, 2)), load_gpus(np.int64(3))) == (2.0, 0.5, 3.0)
    assert (bin_index(np.int32(3), 4), bin_index(2.0, 4), run_time_s(1)) == (3, 2, 1.0)
    assert bin_probabilities(np.array([0.25, 0.75]), 2) == (0.25, 0.75)
    assert rising_loads([1, 1], (0.5, 0.9)) == (1.0, 1.0)


def test_a_bad_answer_goes_to_another_process():
    again = pickle.loads(pickle.dumps(BadAnswerError(Reason.RAISED, "torn")))
    assert (again.reason, again.what) == (Reason.RAISED, "torn")


def test_the_tally_tells_breakers_where_any_opened():
    told = BadAnswers()
    told.checked(ARRIVALS, 2)
    told.bad(ARRIVALS, Reason.NOT_FINITE, "pool a, 5 min: nan")
    assert "breakers" not in told.figures()[ARRIVALS]
    told.opened(ARRIVALS, "pool a, 5 min")
    assert told.figures()[ARRIVALS]["breakers"] == {"pool a, 5 min": 1}
    assert bad_lines(told.figures()) == told.lines()
