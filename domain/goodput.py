"""Jobs that run on any number of GPUs: how well they do on each."""

from dataclasses import dataclass


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


class Goodputs(dict[int, tuple[float, ...]]):
    """By `seq` of active jobs: goodput by GPUs, from one on, as measured at the moment, up to the most they can use."""
