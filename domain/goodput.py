"""Jobs that run on any number of GPUs: how well they do on each, and who shares the GPUs out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a job's work in which its goodput does not change. Goodput: Pollux (OSDI 2021).

    Attributes
    ----------
    until : work done at its end, in samples as useful as those of the initial batch size
    goodput : by GPUs, from one on, work a second at the best batch size
    batch_size : by GPUs, that batch size
    """

    until: float
    goodput: tuple[float, ...]
    batch_size: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScalableJob:
    """An active job as a goodput policy sees it.

    Attributes
    ----------
    seq : position in order of submission; ties break by it
    age_s : seconds since it was submitted
    held_gpus : that it holds now, 0 while it waits
    restarts : how often its GPUs were changed so far
    goodput : by GPUs, from one on, as measured at the moment; as long as it can use more
    """

    seq: int
    age_s: float
    held_gpus: int
    restarts: int
    goodput: tuple[float, ...]


class GoodputPolicy(Protocol):
    """A rule that shares GPUs out among jobs that run on any number of them."""

    def allocate(self, jobs: Sequence[ScalableJob], total_gpus: int) -> Sequence[int]:
        """GPUs for each job, (n_jobs,), 0 and up to the length of its goodput; together they fit on the cluster."""
        ...
