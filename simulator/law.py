"""What the engine asks of a law of progress: what jobs reach when, what a change costs, what may be known of them."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant, Service

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation

Milestone = tuple[float, int, int]
"""(instant in seconds from the epoch, number of the start, seq of the job): when and in which order things happen."""
by_start = itemgetter(1)
"""Orders milestones of one instant: by the number of the start."""


class Law(Protocol):
    """How the jobs of a run progress. One is made for each run, and copied where the run is forked.

    A law in which jobs slow one another has more: `pass_time(run, from_s, until_s)`, called when time passes in which
    nothing changes; `settle(run, decision)`, called when all changes of a decision were made, for limits, tasks and
    rates. One that counts events has `count(run)`, called at each. One in which nodes matter has `place(run, starts)`,
    which gives those that name no nodes some, and leaves out what does not fit.

    Attributes
    ----------
    name : one of those of `domain.law`
    patience : decisions in a row in which no job may get on, while none will arrive, before a run is given up
    """

    name: str
    patience: int

    def bind(self, run: "Simulation") -> None:
        """Make room for a run's jobs, before any of them arrives."""

    def next_s(self) -> float:
        """Instant of the next milestone if nothing changes, infinite where there is none."""

    def due(self, limit_s: float, most: int | None = None) -> Sequence[Milestone]:
        """Milestones up to an instant, taken out, in order of the instants; the first `most` of them alone."""

    def arrive(self, run: "Simulation", job: Job) -> None:
        """A job arrives: its first milestone. In the workload's tables its row is `run.stream.row(job)`."""

    def reach(self, run: "Simulation", job: Job) -> bool:
        """A job is at its milestone: True where it is over, else its next regime, stage, phase begins."""

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """Why a job cannot be given that, None where it can."""

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A job holds something else from now on: what that costs, and how fast it gets on."""

    def stand(self, run: "Simulation", job: Job, done: float) -> None:
        """A job has done so much where the run begins, and what it holds it has held before."""

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over; its GPUs are free."""

    def got_on(self, run: "Simulation") -> bool:
        """Whether any job got further, since this was asked last, than it ever was."""

    def service(self, run: "Simulation", job: Job) -> Service:
        """What an active job has received by now."""

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """Facts of all jobs by column; raises LookupError where there are none of that kind."""

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """Fields of the log that this law knows better, and `columns`, `totals`."""

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Put what is believed in the place of the truth: run times alone, seconds by job, or what jobs declare."""

    def fork(self) -> "Law":
        """A copy that goes its own way."""
