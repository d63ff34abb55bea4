"""What a policy sees (a frozen view of the cluster) and what it may answer (a decision)."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress

ANYWHERE = -1
"""In place of a first GPU: whichever of the server are free."""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """GPUs of one server: neighbours from `first` up to, without, `first + gpus`, or any. SIA, section 5.5; HiveD.

    Attributes
    ----------
    server : position in the cluster's list of servers, from 0
    first : the first of its GPUs, from 0, or `ANYWHERE`
    gpus : how many
    """

    server: int
    first: int
    gpus: int


Facts = TypeVar("Facts")
# One for all decisions: most of them change nothing of a kind; read-only, for it is shared.
EMPTY: Mapping[int, Any] = MappingProxyType({})


class PendingJobs(Protocol):
    """Pending jobs of a pool, filed at submission under the lane and key that the policy gave them."""

    def __len__(self) -> int: ...

    @property
    def gpus(self) -> int:
        """Sum of the widths of the pending jobs."""

    def head(self, skip: Set[int] = frozenset()) -> Job | None:
        """First job by (key, seq), lanes aside; `skip` holds the `seq` of jobs to pass over."""

    def first(self, max_gpus: float, max_lane: float, skip: Set[int] = frozenset()) -> Job | None:
        """First job by (key, seq) among those at most `max_gpus` wide in lanes up to `max_lane`."""

    def key(self, job: Job) -> tuple[float, int]:
        """The (key, seq) that a pending job is filed under."""


class PoolView(Protocol):
    """One pool at an instant."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def quota(self) -> int: ...  # noqa: D102

    @property
    def allocated(self) -> float:
        """GPUs that its running jobs hold, wherever they came from."""

    @property
    def dedicated(self) -> float:
        """GPUs of `allocated` that count against its quota; the rest runs on spare GPUs."""

    @property
    def pending(self) -> PendingJobs: ...  # noqa: D102


class PoolAggregates(Protocol):
    """Sums and selections over all pools, at the instant of the view and before any start."""

    @property
    def waiting(self) -> Sequence[PoolView]:
        """Pools with jobs pending, names ascending."""

    @property
    def ready(self) -> Mapping[str, PoolView]:
        """Pools whose first pending job fits their unused quota: quota less what counts against it."""

    @property
    def pledged(self) -> float:
        """GPUs of unused quota that pending jobs lay claim to: min(pending, unused), summed up over all pools."""

    @property
    def roomy(self) -> Mapping[str, tuple[PoolView, float]]:
        """Pools whose unused quota exceeds what their pending jobs ask for, and the GPUs by which it does."""

    def narrowest(self, max_lane: float) -> float:
        """Width of the narrowest pending job in lanes up to `max_lane`; infinite where there is none."""

    def holders(self, max_gpus: float, max_lane: float) -> Mapping[str, PoolView]:
        """Pools with a pending job that is at most `max_gpus` wide, in lanes up to `max_lane`; in any order."""


class Grant(NamedTuple):
    """What a job holds from now on.

    Attributes
    ----------
    gpus : how many, more than 0
    cells : which ones, as many; none: any that are free, which the placer chooses where it matters
    dedicated : whether they count against the quota of its pool; else they are spare
    """

    gpus: float
    cells: tuple[Cell, ...] = ()
    dedicated: bool = True


class RunningJob(NamedTuple):
    """A job that holds GPUs, since when (seconds from the epoch), and which."""

    job: Job
    start_s: float
    grant: Grant

    @property
    def dedicated(self) -> bool:
        """Whether its GPUs count against its pool's quota."""
        return self.grant.dedicated

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Where it runs, empty where that does not matter."""
        return self.grant.cells


class Service(NamedTuple):
    """What a job has received so far.

    Attributes
    ----------
    held_s : seconds in which it held GPUs
    run_s : seconds that its work so far takes on the GPUs that it asked for, starts left out
    progress : of a training job, its epochs and regimes
    done : work done, in the units of its law: seconds, epochs, samples
    saved : what would be left of it if it were stopped now
    starts : how often it was given GPUs while it had none
    changes : how often GPUs that it held were taken away or changed
    """

    held_s: float
    run_s: float
    progress: Progress | None = None
    done: float = 0.0
    saved: float = 0.0
    starts: int = 0
    changes: int = 0


class View(Protocol):
    """The cluster at an instant: read-only, kept up by the engine, never rebuilt."""

    @property
    def now_s(self) -> float: ...  # noqa: D102
    @property
    def total_gpus(self) -> int: ...  # noqa: D102
    @property
    def free_gpus(self) -> float: ...  # noqa: D102

    @property
    def servers(self) -> Sequence[int]:
        """GPUs of each server; empty where GPUs are all alike and lie anywhere."""

    @property
    def pools(self) -> Mapping[str, PoolView]:
        """Pools by name, names ascending."""

    @property
    def tally(self) -> PoolAggregates:
        """What all pools come to."""

    @property
    def touched(self) -> Sequence[PoolView]:
        """Pools with an arrival or a completion since the last decision, in no order that matters."""

    @property
    def running(self) -> Mapping[int, RunningJob]:
        """Running jobs by `seq`, in the order in which they started."""

    @property
    def active(self) -> Mapping[int, Job]:
        """Jobs submitted and not finished by `seq`, in the order in which they were submitted."""

    def service(self, job: Job) -> Service:
        """What an active job has received by now; of one that has ended, `held_s` in all."""

    def facts(self, kind: type[Facts]) -> Facts:
        """What is known of all jobs beyond what every job tells, by column; raises LookupError where nothing is."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a policy is asked, beside the instant that it asked to be woken at.

    Attributes
    ----------
    on_events : at every instant at which jobs arrive, end, or report a change of what they do
    each_event : once for all ends, of jobs and of phases, of an instant, then once for each submission of it
    period_s : on a grid of instants so far apart, seconds, from the first submission on, while jobs are active
    lease_s : when nothing has happened for so long, seconds, while jobs are active
    when_empty : on events also where no job is left, for who counts what is held until then
    """

    on_events: bool = True
    each_event: bool = False
    period_s: float = inf
    lease_s: float = inf
    when_empty: bool = False


EVENTS = Trigger()


class Decision(NamedTuple):
    """What a policy changes; all else stays as it is.

    Attributes
    ----------
    change : by `seq` of active jobs, in the order in which they are started: what each holds from now on, None for a
        running job that goes back to its queue. What is taken away is free for what is given in the same decision
    wake_s : instant (seconds from the epoch) at which it is asked at the latest; infinite leaves the old one
    tasks : by task, in worlds of tasks: the GPU that it is put on, or `tasks.QUEUED`
    copies : by task that is on a GPU then: the GPU that its copy is put on, or `tasks.QUEUED` to end that
    limit : by `seq`: work after which a job ends, in the units of its law
    """

    change: Mapping[int, Grant | None] = EMPTY
    wake_s: float = inf
    tasks: Mapping[int, int] = EMPTY
    limit: Mapping[int, float] = EMPTY
    copies: Mapping[int, int] = EMPTY


NOTHING = Decision()


class Policy(Protocol):
    """A scheduler's rule: a pure decision over a view.

    A policy may say more of itself: `name`, as results call it; `trigger`, when it is asked (`EVENTS` where it does not
    say); `lane(job)` and `key(job)`, asked once a job at its submission: the lane that it is filed under in its pool's
    queue, and its rank there, smaller first, ties by `seq` (0 where it does not say).
    """

    def decide(self, view: View) -> Decision:
        """What to change now."""
