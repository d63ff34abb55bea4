"""Runs of the engine that somebody else decides, choice by choice, in place of a policy."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

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


class Draft(Protocol):
    """A decision that is made pick by pick."""

    def next(self) -> Choice | None:
        """The next choice; None when there is nothing left to pick."""
        ...

    def take(self, picked: int) -> None:
        """Answer the latest choice."""
        ...

    def decision(self) -> Decision:
        """What was picked."""
        ...


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
        self._draft: Draft | None = None
        self._view: View | None = run.look()

    @property
    def over(self) -> bool:
        """Whether all jobs have ended."""
        return self._view is None

    def next(self) -> Choice | None:
        """The next choice, of this decision or a later one; None at the end."""
        while self._view is not None and self._view.now_s <= self._until_s:
            if self._draft is None:
                self._draft = self.open(self._view)
            choice = self._draft.next()
            if choice is not None:
                return choice
            self._run.carry_out(self._draft.decision())
            self._draft, self._view = None, self._run.look()
            self.rounds.append(self.close(self._view))
        return None

    def take(self, picked: int) -> None:
        """Answer the latest choice."""
        assert self._draft is not None
        self._draft.take(picked)

    @abstractmethod
    def open(self, view: View) -> Draft:
        """A decision is due."""

    @abstractmethod
    def close(self, view: View | None) -> Round:
        """It was carried out; this is what is seen when the next one is due, None where all jobs have ended."""
