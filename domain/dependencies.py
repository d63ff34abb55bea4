"""Which job follows which: what a closed-loop replay needs to know of the people behind a trace."""

from dataclasses import dataclass


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
