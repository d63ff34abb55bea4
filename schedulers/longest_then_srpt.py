"""Longest jobs first while they decide when all is over, the shortest remaining time first among the others."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded_all
from jobcast.domain.rounds import RoundState
from jobcast.schedulers.ossp import makespan_bound_s
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.run_times import RunTimes

# Of the makespan's bound: jobs that have as much left cannot wait.
SHARE = 0.8


class LongestThenSrpt:
    """A rule of two lines that keeps the makespan near its bound and the mean completion time near its least.

    Jobs that have at least `share` of max(mean load, longest remaining time) left, Shockwave's equation 10, come first,
    the longest before the others; then who has the least left. Behind them goes whatever fits.

    Parameters
    ----------
    estimates : tells remaining run times
    share : in (0, 1]; at 1 jobs are begun when nothing else would do, the smaller the earlier
    """

    name = "longest_then_srpt"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, share: float = SHARE) -> None:
        self._estimates, self._share = estimates, share

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs that bind the makespan, then the shortest; ties go to running jobs, then by submission."""
        if not state.active or state.total_gpus <= 0:
            return []
        left_s = rounded_all(np.array([self._estimates.remaining_s(one) for one in state.active]))
        widths = np.array([one.job.gpus for one in state.active])
        binding = left_s >= self._share * makespan_bound_s(left_s, widths, state.total_gpus)
        rows = zip(np.where(binding, -left_s, left_s), ~binding, state.active, strict=True)
        ranked = sorted(rows, key=lambda row: (row[1], row[0], not row[2].running, row[2].job.seq))
        return first_fit((one.job for _, _, one in ranked), state.total_gpus)
