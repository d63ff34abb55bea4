"""Least attained service first, and shortest remaining processing time first: jobs ranked by one number each."""

from collections.abc import Sequence

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.run_times import RunTimes


class ShortestRemaining:
    """Run the jobs that have the least left, and behind them whatever fits.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline", 1968.

    Parameters
    ----------
    estimates : tells remaining run times
    gpu_time : rank by remaining time x width, the GPU time that a job still takes, instead of the time alone
    """

    name = "srpt"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, gpu_time: bool = False) -> None:
        self._estimates = estimates
        self._gpu_time = gpu_time

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Least left first; ties go to running jobs, then by submission."""
        # Rounded keys: sums of epochs differ in their last bits from machine to machine.
        ordered = sorted(state.active, key=self._rank)
        return first_fit((active.job for active in ordered), state.total_gpus)

    def _rank(self, active: ActiveJob) -> tuple[float, bool, int]:
        left_s = self._estimates.remaining_s(active) * (active.job.gpus if self._gpu_time else 1)
        return rounded(left_s), not active.running, active.job.seq


class LeastAttained:
    """Run the jobs that have had the least GPU time for their weight, and behind them whatever fits.

    Service counts in two dimensions, time x GPUs, as in Tiresias (NSDI 2019), without its queues: each
    round ranks anew. Nothing is known of the future.
    """

    name = "las"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Least service first; ties go to running jobs, then by submission."""
        # Ties go to who runs, so that nobody is stopped for an equal.
        ordered = sorted(state.active, key=_rank)
        return first_fit((active.job for active in ordered), state.total_gpus)


def _rank(active: ActiveJob) -> tuple[float, bool, int]:
    attained = active.held_s * active.job.gpus / active.weight
    return rounded(attained), not active.running, active.job.seq
