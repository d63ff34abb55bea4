"""Answers as arrays of numbers, and bad ones in words."""

from numbers import Number

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.bad_answers import BadAnswerError, BadAnswers, Reason

MOST_SHOWN = 100
"""Characters of an answer that are told."""


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
    with np.errstate(over="ignore"):
        return numbers.astype(np.float64)


def failed(told: BadAnswers, kind: str, error: Exception, where: str = "", answers: int = 1) -> None:
    """Count answers of a kind that `BadAnswerError` says are bad, or in whose place anything else was raised."""
    reason, what = (error.reason, error.what) if isinstance(error, BadAnswerError) else (Reason.RAISED, shown(error))
    told.bad(kind, reason, f"{where}{what}", answers)


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
