"""What a forecast must look like: each check gives the answer as plain numbers, or raises `BadAnswerError`."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, isfinite
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.bad_answers import BadAnswerError, BadAnswers, Reason

MOST_GPUS = 1e9
"""No pool is asked for more: a load beyond it is a slip of whoever forecasts it."""
MOST_SECONDS = 100 * 366 * 86400.0
"""No job runs for longer than a century."""
MOST_SHOWN = 100
"""Characters of an answer that are told."""


def number(value: Any) -> float:
    """A finite real number.

    >>> number(np.float32(0.5))
    0.5
    """
    # The common case first: forecasts are asked at every event of a run.
    if type(value) is not float:
        value = _as_float(value)
    if not isfinite(value):
        raise BadAnswerError(Reason.NOT_FINITE, f"{value}")
    return float(value)


def _as_float(value: Any) -> float:
    if isinstance(value, np.ndarray | list | tuple | set | dict):
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{shown(value)} in place of one number")
    # A truth value would pass for 0 or 1, and hide a slip of the forecaster.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadAnswerError(Reason.NO_NUMBER, shown(value))
    try:
        return float(value)
    # A whole number beyond floats; infinity is refused by the caller with a reason that fits.
    except OverflowError:
        return inf


def flag(value: Any) -> bool:
    """Yes or no, as a truth value or as 1 or 0."""
    # As most sources answer; numpy's truth values and 1 or 0 are taken below.
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    result = number(value)
    if result not in (0.0, 1.0):
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{result:g} in place of yes or no")
    return bool(result)


def probability(value: Any) -> float:
    """A number in [0, 1]."""
    return _within(number(value), 0.0, 1.0, "a probability")


def load_gpus(value: Any) -> float:
    """GPUs, 0 or more; more than any quota is no mistake."""
    return _within(number(value), 0.0, MOST_GPUS, "a load")


def run_time_s(value: Any) -> float:
    """Seconds, more than 0."""
    result = _within(number(value), 0.0, MOST_SECONDS, "a run time")
    # Policies divide by run times.
    if result == 0.0:
        raise BadAnswerError(Reason.OUT_OF_RANGE, "a run time of 0 s")
    return result


def bin_index(value: Any, bins: int) -> int:
    """Index of one of some bins."""
    # The way of nearly every answer, without the detour over floats.
    if type(value) is int and 0 <= value < bins:
        return value
    result = _within(number(value), 0.0, bins - 1.0, "a duration bin")
    if not result.is_integer():
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{result:g} is no duration bin")
    return int(result)


def bin_probabilities(value: Any, bins: int) -> tuple[float, ...]:
    """A probability a bin, adding up to 1."""
    result = tuple(probability(one) for one in each_row(value, bins))
    if abs(sum(result) - 1.0) > tolerance.PROBABILITIES:
        raise BadAnswerError(Reason.INCONSISTENT, f"probabilities of bins add up to {sum(result):g}")
    return result


def rising_loads(value: Any, levels: Sequence[float]) -> tuple[float, ...]:
    """A load a level, never falling where levels ascend.

    >>> rising_loads((2.0, 1.0), (0.9, 0.5))
    (2.0, 1.0)
    """
    result = tuple(load_gpus(one) for one in each_row(value, len(levels)))
    ascending = [gpus for _, gpus in sorted(zip(levels, result, strict=True))]
    if any(later < sooner for sooner, later in pairwise(ascending)):
        raise BadAnswerError(Reason.NOT_MONOTONE, f"quantiles {shown(str(result))} fall where levels ascend")
    return result


def checked(check: Callable[..., Any], value: Any, *given: Any) -> Any:
    """What a check gives, or the `BadAnswerError` that it raises, to be kept beside good ones."""
    try:
        return check(value, *given)
    except BadAnswerError as bad:
        # A traceback would keep the whole frame alive, with every array of the batch in it.
        return bad.with_traceback(None)


def floats_of(answer: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An answer as an array of a shape. Raises BadAnswerError for one that holds no numbers, or is of another shape.

    >>> floats_of([1, 2], (2,)).tolist(), float(floats_of(3, ()))
    ([1.0, 2.0], 3.0)
    """
    numbers = np.asarray(answer)
    if numbers.dtype.kind not in "fiu":
        raise BadAnswerError(Reason.NO_NUMBER, f"{shown(answer)}, of type {numbers.dtype}")
    if numbers.shape != shape:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"numbers of shape {numbers.shape}, asked for were {shape}")
    # What is too large for float64 becomes infinite, which the caller's own limits refuse.
    with np.errstate(over="ignore"):
        return numbers.astype(np.float64)


def failed(tally: BadAnswers, kind: str, error: Exception, where: str = "", answers: int = 1) -> None:
    """Count answers of a kind that `BadAnswerError` says are bad, or in whose place anything else was raised."""
    reason, what = (error.reason, error.what) if isinstance(error, BadAnswerError) else (Reason.RAISED, shown(error))
    tally.bad(kind, reason, f"{where}{what}", answers)


def shown(answer: object) -> str:
    """An answer, or what was raised in its place, in short: alike in every process, no control characters.

    >>> shown(-1.5), shown("a\\n"), shown(object()), shown(ValueError("no\\nnumber"))
    ('-1.5', "'a\\\\n'", 'object', 'ValueError: no number')
    """
    try:
        if isinstance(answer, BaseException):
            text = f"{type(answer).__name__}: {answer}".removesuffix(": ")
        else:
            text = repr(answer) if answer is None or isinstance(answer, str | Number) else type(answer).__name__
    except Exception:  # somebody else's text, or a number of too many digits: its type says enough
        text = type(answer).__name__
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= MOST_SHOWN else f"{plain[: MOST_SHOWN - 3]}..."


def each_row(value: Any, length: int) -> list[Any]:
    """As many answers as there are rows, in plain Python; each is still to be looked at."""
    if isinstance(value, np.ndarray):
        value = value.tolist()  # a number if it has no dimension
    # A string has a length, too, and would be told to be of the wrong shape.
    if value is None or isinstance(value, str | bytes):
        raise BadAnswerError(Reason.NO_NUMBER, shown(value))
    if not isinstance(value, list | tuple) or len(value) != length:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{shown(value)} in place of {length} answers")
    return list(value)


def _within(value: float, least: float, most: float, what: str) -> float:
    if not least <= value <= most:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"{value:g} is no value of {what}")
    return value
