"""Runs of the engine that somebody else decides, choice by choice, in place of a policy."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from jobcast.domain.arrays import Floats
from jobcast.domain.policy import EVENTS, NOTHING, Decision, Trigger, View
from jobcast.simulator.engine import Simulation


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What there is to pick from, two things or more.

    Attributes
    ----------
    head : of what kind they are
    rows : (n, n_features) what is read of each
    taught : which one a heuristic would pick, from 0
    """

    head: str
    rows: Floats
    taught: int


Picks = Generator[Choice, int, Decision]
"""A decision made pick by pick: choices are yielded, rows that were picked are sent, what was decided is returned."""


class Round(NamedTuple):
    """A decision and what came of it until the next.

    Attributes
    ----------
    time_s : when it was made, seconds from the epoch
    state : (n_numbers,) how things stood before it
    earned : (n_objectives,) what it added to each objective
    """

    time_s: float
    state: Floats
    earned: Floats


@dataclass(frozen=True, slots=True)
class Learning:
    """Stands for the policy in messages of the engine, and says when it is asked; whoever drives the course decides."""

    name: str = "learner"
    trigger: Trigger = EVENTS

    def decide(self, view: View) -> Decision:
        """Nothing."""
        return NOTHING


class Course(ABC):
    """A run, choice by choice, to the end of all jobs or beyond an instant.

    Parameters
    ----------
    run : what is run, under `Learning`
    until_s : nothing is decided later than this, seconds from the epoch

    Attributes
    ----------
    rounds : decisions that were carried out
    """

    def __init__(self, run: Simulation, until_s: float = inf) -> None:
        self.rounds: list[Round] = []
        self._run, self._until_s = run, until_s
        self._picks: Picks | None = None
        self._picked: Any = None
        self._view: View | None = run.look()

    @property
    def over(self) -> bool:
        """Whether all jobs have ended."""
        return self._view is None

    def next(self) -> Choice | None:
        """The next choice, of this decision or a later one; None at the end."""
        while self._view is not None and self._view.now_s <= self._until_s:
            if self._picks is None:
                # A generator that has not begun takes nothing but None.
                self._picks, self._picked = self.open(self._view), None
            try:
                return self._picks.send(self._picked)
            except StopIteration as decided:
                self._run.carry_out(decided.value)
            # The round is closed after the engine has gone on to the next decision: what it earned is known then.
            self._picks, self._view = None, self._run.look()
            self.rounds.append(self.close(self._view))
        return None

    def take(self, picked: int) -> None:
        """Answer the latest choice."""
        self._picked = picked

    @abstractmethod
    def open(self, view: View) -> Picks:
        """A decision is due."""

    @abstractmethod
    def close(self, view: View | None) -> Round:
        """It was carried out; this is what is seen when the next one is due, None where all jobs have ended."""
