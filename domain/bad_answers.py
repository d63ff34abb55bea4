"""Forecasts that cannot be trusted: which answers were bad, why, and how often, as results tell it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jobcast.domain.errors import JobcastError

ARRIVALS, LOADS, DURATIONS = "arrivals", "loads", "durations"
REGIMES, CURVES, EPOCHS = "regimes", "curves", "epochs"
SIZES, GOODPUTS, WAITS = "sizes", "goodput", "waits"
"""What may be forecast."""


class Reason(StrEnum):
    """Why an answer was not used."""

    RAISED = "raised"
    NO_NUMBER = "no number"
    WRONG_SHAPE = "wrong shape"
    NOT_FINITE = "not finite"
    OUT_OF_RANGE = "out of range"
    NOT_MONOTONE = "not monotone"
    INCONSISTENT = "inconsistent"
    DEGRADED = "degraded"
    """There was nobody to ask: a registry, version or schema that is missing or does not fit."""
    BREAKER = "breaker open"
    """Not asked: bad answers about the same thing came before."""


class BadAnswerError(JobcastError):
    """An answer that is not to be used.

    Attributes
    ----------
    reason : why
    what : the answer, or what happened instead of one, in a few words
    """

    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(f"{reason}: {what}")
        self.reason, self.what = reason, what

    # Pickle calls an exception with its `args`, here one text, where `__init__` wants two arguments.
    def __reduce__(self) -> tuple[type["BadAnswerError"], tuple[Reason, str]]:
        return BadAnswerError, (self.reason, self.what)


@dataclass(slots=True)
class BadAnswers:
    """The tally of one run: every answer that was replaced by the conservative one.

    Examples
    --------
    >>> tally = BadAnswers()
    >>> tally.checked(ARRIVALS, 3)
    >>> tally.bad(ARRIVALS, Reason.NOT_FINITE, "pool a, 60 min: nan")
    >>> tally.figures()["arrivals"]["reasons"]
    {'not finite': 1}
    >>> tally.lines()
    ['arrivals: 1 of 3 answers were bad and took the conservative value (not finite 1; first: pool a, 60 min: nan)']
    """

    _checked: Counter[str] = field(default_factory=Counter)
    _bad: dict[str, Counter[Reason]] = field(default_factory=dict)
    _first: dict[str, str] = field(default_factory=dict)
    _opened: dict[str, Counter[str]] = field(default_factory=dict)

    def checked(self, kind: str, answers: int = 1) -> None:
        """Note answers that were looked at, good and bad ones."""
        self._checked[kind] += answers

    def bad(self, kind: str, reason: Reason, what: str, answers: int = 1) -> None:
        """Note answers that were replaced; `what` says which, of the first of a kind it is kept."""
        self._bad.setdefault(kind, Counter())[reason] += answers
        # One example is enough to find the cause; keeping all would grow with the run.
        self._first.setdefault(kind, what)

    def opened(self, kind: str, what: str) -> None:
        """Note that a breaker opened: what it is about is not asked for a while."""
        self._opened.setdefault(kind, Counter())[what] += 1

    def figures(self) -> dict[str, Any]:
        """By kind: answers checked, answers replaced, these by reason, and the first of them; {} where none was bad.

        `breakers`, where any opened: what they are about -> how often.
        """
        return {
            kind: {
                "checked": self._checked[kind],
                "bad": sum(reasons.values()),
                "reasons": {str(reason): count for reason, count in sorted(reasons.items())},
                "first": self._first[kind],
                **({"breakers": dict(sorted(self._opened[kind].items()))} if kind in self._opened else {}),
            }
            for kind, reasons in sorted(self._bad.items())
        }

    def lines(self) -> list[str]:
        """A line a kind for people, none where no answer was bad."""
        return bad_lines(self.figures())


def bad_lines(figures: Mapping[str, Any]) -> list[str]:
    """What `BadAnswers.figures` tells, a line a kind for people."""
    return [
        f"{kind}: {seen['bad']:,} of {seen['checked']:,} answers were bad and took the conservative value "
        f"({', '.join(f'{reason} {count:,}' for reason, count in seen['reasons'].items())}; first: {seen['first']})"
        for kind, seen in figures.items()
    ]
