"""Contention of jobs: the mean number of active ones over the events since a job's submission. PCS, section 5.1."""

from typing import TYPE_CHECKING, Self

from jobcast.simulator.laws.separable import column

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

COLUMNS = ("told", "first", "before", "since")


class Contention:
    """Counted as events come.

    Parameters
    ----------
    count : jobs of the run
    """

    def __init__(self, count: int) -> None:
        self.events, self.active = 0, 0.0  # events so far, and the sum over them of the jobs active before each
        self.told, self.first, self.before, self.since = (column(count) for _ in COLUMNS)

    def count(self, run: "Simulation") -> None:
        """An event: those who were active before it count."""
        self.active += len(run.cluster.active)
        self.events += 1

    def arrive(self, run: "Simulation", seq: int) -> None:
        """A job is there from now on."""
        self.first[seq], self.before[seq], self.since[seq] = len(run.cluster.active), self.active, self.events

    def leave(self, seq: int) -> None:
        """It is over: what it met stays as it is."""
        self.told[seq] = self.of(seq)

    def of(self, seq: int) -> float:
        """Mean number of active jobs: those at an active job's submission, and before each event since."""
        met = self.active - self.before[seq]
        return (self.first[seq] + met) / (1.0 + self.events - self.since[seq])

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name in COLUMNS:
            setattr(copy, name, getattr(self, name)[:])
        return copy
