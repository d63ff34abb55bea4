"""What sharing did to jobs: GPU-seconds that they held, and the mean number of active ones over the events since each
was submitted. PCS, section 5.1.
"""

from array import array
from typing import TYPE_CHECKING, Self

from jobcast.domain.policy import Grant
from jobcast.simulator.laws.separable import column

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

COLUMNS = ("told", "first", "before", "since", "held", "held_from_s")


class Contention:
    """Counted as events come.

    Parameters
    ----------
    count : jobs of the run
    """

    def __init__(self, count: int) -> None:
        self.events, self.active = 0, 0.0  # events so far, and the sum over them of the jobs active before each
        for name in COLUMNS:
            setattr(self, name, column(count))

    told: "array[float]"
    first: "array[float]"
    before: "array[float]"
    since: "array[float]"
    held: "array[float]"
    held_from_s: "array[float]"

    def count(self, run: "Simulation") -> None:
        """An event: those who were active before it count."""
        self.active += len(run.cluster.active)
        self.events += 1

    def arrive(self, run: "Simulation", seq: int) -> None:
        """A job is there from now on."""
        self.first[seq], self.before[seq], self.since[seq] = len(run.cluster.active), self.active, self.events

    def change(self, run: "Simulation", seq: int, old: Grant | None) -> None:
        """It holds something else from now on."""
        if old is not None:
            self.held[seq] += old.gpus * (run.now_s - self.held_from_s[seq])
        self.held_from_s[seq] = run.now_s

    def leave(self, run: "Simulation", seq: int, held: Grant | None) -> None:
        """It is over: what it met stays as it is."""
        self.change(run, seq, held)
        self.told[seq] = self.of(seq)

    def gpu_s(self, run: "Simulation", seq: int) -> float:
        """GPU-seconds that a job has held by now."""
        held = run.cluster.running.get(seq)
        return self.held[seq] + (held.grant.gpus * (run.now_s - self.held_from_s[seq]) if held is not None else 0.0)

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
