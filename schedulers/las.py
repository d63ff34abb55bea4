"""Least attained service first."""

from collections.abc import Sequence

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit


class LeastAttained:
    """Run the jobs that have had the least GPU time for their weight, and behind them whatever fits.

    Service counts in two dimensions, time x GPUs, as in Tiresias (NSDI 2019), without its queues: each
    round ranks anew. Nothing is known of the future.
    """

    name = "las"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Least service first; ties go to running jobs, then by submission."""
        ordered = sorted(state.active, key=_rank)
        return first_fit((active.job for active in ordered), state.total_gpus)


def _rank(active: ActiveJob) -> tuple[float, bool, int]:
    attained = active.held_s * active.job.gpus / active.weight
    return rounded(attained), not active.running, active.job.seq
