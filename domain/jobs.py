"""Jobs: what is visible of them at submission, and the truth that only the engine holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """What anybody may know of a job from its submission on.

    Attributes
    ----------
    seq : position in the trace's order (submit time, then job id, then row), from 0; ties break by it
    job_id : unique text
    pool : the pool that it was submitted to
    submit_s : seconds from the epoch, UTC
    gpus : gang width, at least 1
    user, tag : whose it is and which experiment it belongs to, empty where the trace does not say
    preemptible : whether a policy may stop it once started
    """

    seq: int
    job_id: str
    pool: str
    submit_s: float
    gpus: int
    user: str = ""
    tag: str = ""
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The truth about a job, which no policy sees: its run time in seconds on the GPUs that it asked for."""

    duration_s: float


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool and the number of GPUs that its owners pay for."""

    name: str
    quota: int
