"""AlloX: the least average completion time, by matching jobs to places in the queues of GPUs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.run_times import RunTimes


class AlloX:
    """Match jobs to (GPU, place counted from the end of its queue) and run the heads of the queues.

    AlloX (EuroSys 2020). A job in the k-th place from the end delays itself and the k - 1 behind it, so
    that it costs k x its time; the cheapest matching has the least sum of completion times.

    Reduced to gangs and rounds as in Gavel's AlloX: a gang of g GPUs that has 1 / g of the time stands for one GPU, on
    which it takes g x its remaining time. Every round matches anew, running jobs too, with the restart added to the
    time of those that do not run; heads run first, shortest first, then the rest by place.

    Parameters
    ----------
    estimates : tells remaining run times
    filter : share of the active jobs that are matched, those that had the least of what they might have had; at least
        as many as GPUs are. 1 matches all, the default of Gavel's AlloX; the others fill up what stays free
    """

    name = "allox"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, filter: float = 1.0) -> None:
        self._estimates = estimates
        self._filter = filter

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Heads of the queues, then later places, then jobs that the filter left out."""
        if not state.active:
            return []
        # Fairness is filtered by first: who had least of its time is matched, whatever its length.
        poorest = sorted(
            state.active, key=lambda active: (rounded(attained_share(active, state.now_s)), active.job.seq)
        )
        # Fewer matched jobs than GPUs would leave the choice of the rest to the filter order alone.
        count = max(int(self._filter * len(poorest)), min(state.total_gpus, len(poorest)))
        times = np.array([self._gpu_s(active, state) for active in poorest[:count]])
        places = queue_places(times, state.total_gpus)
        # The highest place of a queue is its head, since places count from the end.
        order = sorted(range(count), key=lambda index: (-places[index], times[index], poorest[index].job.seq))
        matched = [poorest[index].job for index in order]
        return first_fit([*matched, *(active.job for active in poorest[count:])], state.total_gpus)

    def _gpu_s(self, active: ActiveJob, state: RoundState) -> float:
        # A waiting job would pay its restart, so that a running one of like length goes first.
        restart_s = 0.0 if active.running else state.restart_s
        return rounded(active.job.gpus * (self._estimates.remaining_s(active) + restart_s))


def attained_share(active: ActiveJob, now_s: float) -> float:
    """Share of its time since submission in which a job held its GPUs, for its weight; 0 on arrival."""
    entitled_s = (now_s - active.job.submit_s) * active.weight
    return active.held_s / entitled_s if entitled_s > 0 else 0.0


def queue_places(times: NDArray[np.float64], gpus: int) -> NDArray[np.int64]:
    """Place from the end of its GPU's queue for each job, (n,), from 1; the highest place of a queue runs first.

    GPUs are alike, so that no queue need be longer than the jobs spread evenly: each GPU offers that many places.

    Parameters
    ----------
    times : (n,) GPU time that each job takes
    gpus : of the cluster

    >>> queue_places(np.array([30.0, 10.0, 20.0]), 1).tolist()
    [1, 3, 2]
    """
    from scipy.optimize import linear_sum_assignment

    longest = -(-len(times) // gpus)
    place = 1 + np.repeat(np.arange(longest), gpus)
    order = np.argsort(-times, kind="stable")  # longest first, the matching is found a hundred times faster
    _, columns = linear_sum_assignment(np.outer(times[order], place))
    places = np.empty(len(times), dtype=np.int64)
    places[order] = place[columns]
    return places
