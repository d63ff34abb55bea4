"""What a forecast must look like: each check gives the answer in plain Python, or raises `BadAnswerError`."""

import reprlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from jobcast.domain.bad_answers import BadAnswerError, Reason

MOST_GPUS = 1e9
"""No pool is asked for more: a load beyond it is a slip of whoever forecasts it."""
MOST_SECONDS = 100 * 366 * 86400.0
"""No job runs for longer than a century."""
SUM_TOLERANCE = 1e-3
"""Probabilities may be rounded to so much."""


def number(value: Any) -> float:
    """A finite real number.

    >>> number(np.float32(0.5))
    0.5
    """
    if type(value) is not float:
        value = _as_float(value)
    if not isfinite(value):
        raise BadAnswerError(Reason.NOT_FINITE, f"{value}")
    return float(value)


def _as_float(value: Any) -> float:
    if isinstance(value, np.ndarray | list | tuple | set | dict):
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{_shown(value)} in place of one number")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadAnswerError(Reason.NO_NUMBER, _shown(value))
    try:
        return float(value)
    except OverflowError:
        return inf


def flag(value: Any) -> bool:
    """Yes or no, as a truth value or as 1 or 0."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    told = number(value)
    if told not in (0.0, 1.0):
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{told:g} in place of yes or no")
    return bool(told)


def probability(value: Any) -> float:
    """A number in [0, 1]."""
    return _within(number(value), 0.0, 1.0, "a probability")


def load_gpus(value: Any) -> float:
    """GPUs, 0 or more; more than any quota is no mistake."""
    return _within(number(value), 0.0, MOST_GPUS, "a load")


def run_time_s(value: Any) -> float:
    """Seconds, more than 0."""
    told = _within(number(value), 0.0, MOST_SECONDS, "a run time")
    if told == 0.0:
        raise BadAnswerError(Reason.OUT_OF_RANGE, "a run time of 0 s")
    return told


def bin_index(value: Any, bins: int) -> int:
    """Index of one of some bins."""
    if type(value) is int and 0 <= value < bins:
        return value
    told = _within(number(value), 0.0, bins - 1.0, "a duration bin")
    if not told.is_integer():
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{told:g} is no duration bin")
    return int(told)


def bin_probabilities(value: Any, bins: int) -> tuple[float, ...]:
    """A probability a bin, adding up to 1."""
    told = tuple(probability(one) for one in _sequence(value, bins))
    if abs(sum(told) - 1.0) > SUM_TOLERANCE:
        raise BadAnswerError(Reason.INCONSISTENT, f"probabilities of bins add up to {sum(told):g}")
    return told


def rising_loads(value: Any, levels: Sequence[float]) -> tuple[float, ...]:
    """A load a level, never falling where levels ascend.

    >>> rising_loads((2.0, 1.0), (0.9, 0.5))
    (2.0, 1.0)
    """
    told = tuple(load_gpus(one) for one in _sequence(value, len(levels)))
    ascending = [gpus for _, gpus in sorted(zip(levels, told, strict=True))]
    if any(later < sooner for sooner, later in pairwise(ascending)):
        raise BadAnswerError(Reason.NOT_MONOTONE, f"quantiles {_shown(list(told))} fall where levels ascend")
    return told


def each_row(value: Any, rows: int) -> list[Any]:
    """What a predictor says of each row of a batch, in plain Python and not looked at yet."""
    return _sequence(value, rows)


def checked(check: Callable[..., Any], value: Any, *given: Any) -> Any:
    """What a check gives, or the `BadAnswerError` that it raises, to be kept beside good ones."""
    try:
        return check(value, *given)
    except BadAnswerError as bad:
        return bad.with_traceback(None)


def _sequence(value: Any, length: int) -> list[Any]:
    if isinstance(value, np.ndarray):
        value = value.tolist()  # a number if it has no dimension
    if value is None or isinstance(value, str | bytes):
        raise BadAnswerError(Reason.NO_NUMBER, _shown(value))
    if not isinstance(value, list | tuple) or len(value) != length:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{_shown(value)} in place of {length} answers")
    return list(value)


def _within(told: float, least: float, most: float, what: str) -> float:
    if not least <= told <= most:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{told:g} is no value of {what}")
    return told


def _shown(value: Any) -> str:
    return " ".join(reprlib.repr(value).split())
