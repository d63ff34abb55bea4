"""Jobs: what is visible of them at submission, the truth that only the engine holds, and which follows which."""

from dataclasses import dataclass, field, replace
from math import inf, nan

from jobcast.domain.training import Regime, Training


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a job asks of a cluster beside GPUs, as a scheduler of real clusters reads it.

    Attributes
    ----------
    cores, mem_gb : cores and memory in all, GB; None where the trace does not say
    account, qos, partition : as the cluster names them, empty where the trace does not say
    nodes : names of the nodes that it asks for, empty where any will do
    time_limit_s : seconds after which it is ended
    priority : as the cluster counts it, more goes first; None where the trace does not say
    """

    cores: float | None = None
    mem_gb: float | None = None
    account: str = ""
    qos: str = ""
    partition: str = ""
    nodes: tuple[str, ...] = ()
    time_limit_s: float = inf
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What anybody may know of a job from its submission on.

    Attributes
    ----------
    seq : position in the trace's order (submit time, then job id, then row), from 0; ties break by it
    job_id : unique text
    pool : the pool that it was submitted to
    submit_s : seconds from the epoch, UTC
    gpus : gang width; 0 of a job of cores alone, which no law of progress runs yet
    user, tag : whose it is and which experiment it belongs to, empty where the trace does not say
    preemptible : whether a policy may stop it once started
    training : model, epochs and batch size, where the job is one of training that reports its progress
    weight : its priority against others, 1 where nobody asked for another; EUR an hour of tardiness of ANDREAS
    due_s : when it should be over, seconds from the epoch; infinite where nobody said
    min_gpus : fewest GPUs that it runs on, at least 1: below `gpus` it is elastic; 0 where nobody said: a gang
    requirements : what else it asks for, None where the trace tells nothing of it
    """

    seq: int
    job_id: str
    pool: str
    submit_s: float
    gpus: int
    user: str = ""
    tag: str = ""
    preemptible: bool = False
    training: Training | None = None
    weight: float = 1.0
    due_s: float = inf
    min_gpus: int = 0
    requirements: Requirements | None = None

    def on(self, gpus: int) -> "Job":
        """The job with another number of GPUs; itself with its own."""
        return self if gpus == self.gpus else replace(self, gpus=gpus)

    # Forks of runs copy policies with all that they keep; thousands of jobs need not be copied.
    def __deepcopy__(self, memo: dict[int, object]) -> "Job":
        return self  # it does not change


@dataclass(frozen=True, slots=True)
class Outcome:
    """The truth about a job, which no policy sees.

    Attributes
    ----------
    duration_s : run time in seconds on the GPUs that it asked for
    regimes : of a training job, in order; their epochs are all of the job's and take `duration_s`
    start_s : when the trace says that it started, seconds from the epoch; NaN where it says nothing
    """

    duration_s: float
    regimes: tuple[Regime, ...] = ()
    # Not compared: what is not known is unequal even to itself.
    start_s: float = field(default=nan, compare=False)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool and the number of GPUs that its owners pay for."""

    name: str
    quota: int


FLAT_POOL = "all"
"""Name of the pool of all GPUs, where quotas are ignored."""


@dataclass(frozen=True, slots=True)
class Succession:
    """How a job came about: somebody awaited other jobs, thought, and submitted it.

    Attributes
    ----------
    awaited : ids of the jobs whose ends were awaited, at least one
    think_s : seconds from the last of those ends to the submission, 0 or more
    """

    awaited: tuple[str, ...]
    think_s: float
