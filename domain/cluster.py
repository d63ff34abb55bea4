"""What a policy sees (a frozen view of the cluster) and what it may answer (a decision)."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from jobcast.domain.cells import Cell
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress


class PendingJobs(Protocol):
    """Pending jobs of a pool, filed at submission under the lane and key that the policy gave them."""

    def __len__(self) -> int: ...

    @property
    def gpus(self) -> int:
        """Sum of the widths of the pending jobs."""
        ...

    def head(self, skip: Set[int] = frozenset()) -> Job | None:
        """First job by (key, seq), lanes aside; `skip` holds the `seq` of jobs to pass over."""
        ...

    def first(self, max_gpus: float, max_lane: float, skip: Set[int] = frozenset()) -> Job | None:
        """First job by (key, seq) among those at most `max_gpus` wide in lanes up to `max_lane`."""
        ...

    def key(self, job: Job) -> tuple[float, int]:
        """The (key, seq) that a pending job is filed under."""
        ...


class PoolView(Protocol):
    """One pool at an instant."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def quota(self) -> int: ...  # noqa: D102

    @property
    def allocated(self) -> float:
        """GPUs that its running jobs hold, wherever they came from."""
        ...

    @property
    def dedicated(self) -> float:
        """GPUs of `allocated` that count against its quota; the rest runs on spare GPUs."""
        ...

    @property
    def pending(self) -> PendingJobs: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds GPUs, since when (seconds from the epoch), and where, on a cluster of servers."""

    job: Job
    start_s: float
    dedicated: bool
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """What a job has received so far.

    Attributes
    ----------
    held_s : seconds in which it held its GPUs
    run_s : seconds of `held_s` in which it made progress; the rest went into starts
    progress : of a training job, its epochs and regimes
    """

    held_s: float
    run_s: float
    progress: Progress | None = None


class ClusterView(Protocol):
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
        ...

    @property
    def pools(self) -> Mapping[str, PoolView]:
        """Pools by name, names ascending."""
        ...

    @property
    def touched(self) -> Sequence[PoolView]:
        """Pools with an arrival or a completion since the last decision, in no order that matters."""
        ...

    @property
    def running(self) -> Mapping[int, RunningJob]:
        """Running jobs by `seq`, in the order in which they started."""
        ...

    @property
    def active(self) -> Mapping[int, Job]:
        """Jobs submitted and not finished by `seq`, in the order in which they were submitted."""
        ...

    def service(self, job: Job) -> Service:
        """What an active job has received by now."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Start a pending job now; `dedicated` jobs count against their pool's quota, others run on spare GPUs.

    On a cluster of servers `cells` name the GPUs that it is given, as many as it is wide; elsewhere there are none.
    """

    job: Job
    dedicated: bool = True
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Changes that a policy asks for; all else stays as it is.

    Attributes
    ----------
    start : jobs to start, in this order, after `stop` has been carried out
    stop : running preemptible jobs to put back into their queue; the work done is kept
    promote : jobs that run on spare GPUs and count against their pool's quota from now on
    wake_at : instant (seconds from the epoch) to be called again at the latest; the newest replaces the old one
    """

    start: Sequence[Start] = ()
    stop: Sequence[Job] = ()
    wake_at: float | None = None
    promote: Sequence[Job] = ()


class Policy(Protocol):
    """A scheduler's rule: a pure decision over a view."""

    def lane(self, job: Job) -> int:
        """Lane that a job is filed under, asked once at submission."""
        ...

    def key(self, job: Job) -> float:
        """Rank of a job in its queue, smaller first, asked once at submission; ties go by `seq`."""
        ...

    def decide(self, view: ClusterView) -> Decision:
        """What to change now."""
        ...
