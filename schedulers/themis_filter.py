"""Themis by rounds: of the jobs that are treated worst, those that gain the most."""

from collections.abc import Sequence
from math import ceil, log

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit, most_valuable
from jobcast.schedulers.run_times import RunTimes

# Share of the jobs that a round is offered to: 1 - f with the fairness knob f = 0.8 of Themis (NSDI 2020).
FILTER = 0.2


class ThemisFilter:
    """Offer each round to the share of jobs of the worst finish-time fairness. Themis (NSDI 2020); Shockwave, 2.1.

    A job's fairness is (age + remaining time x contention) / (total time x contention), with the contention of the
    moment, jobs / GPUs, at least 1 (Shockwave, equation 9). Among the filtered jobs the winners maximise the product of
    valuations, 1 / fairness, over the sets that fit: the proportional fairness of Themis's partial allocation. Not to
    run delays the estimated completion by a round, so that a job's gain is log((completion + round) / completion); the
    best set is a knapsack, solved exactly. What they leave goes to the others, worst treated first, where Themis draws.

    Parameters
    ----------
    estimates : tells run times as they are forecast at the moment
    filter : share of jobs that are offered the round, Shockwave's f (Table 1 tries 1/3, 2/3 and 1)
    """

    name = "themis_filter"
    memoryless = True  # its choice depends on the state alone: it may be asked about free GPUs in between

    def __init__(self, estimates: RunTimes, filter: float = FILTER) -> None:
        self._estimates = estimates
        self._filter = filter

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Winners among the filtered, then whoever fits, worst treated first."""
        if not state.active:
            return []
        # Below one job a GPU nobody waits, so that sharing slows nobody.
        contention = max(1.0, len(state.active) / state.total_gpus)
        ordered = sorted(state.active, key=lambda active: self._rank(active, state.now_s, contention))
        offered = ordered[: ceil(self._filter * len(ordered))]
        gains = [self._gain(active, state, contention) for active in offered]
        won = most_valuable(gains, [active.job.gpus for active in offered], state.total_gpus)
        winners = [offered[index].job for index in won]
        taken = {job.seq for job in winners}
        others = (active.job for active in ordered if active.job.seq not in taken)
        return first_fit([*winners, *others], state.total_gpus)

    def _completion_s(self, active: ActiveJob, now_s: float, contention: float) -> float:
        return now_s - active.job.submit_s + self._estimates.remaining_s(active) * contention

    def _rank(self, active: ActiveJob, now_s: float, contention: float) -> tuple[float, bool, int]:
        fair_s = self._estimates.total_s(active) * contention
        unfairness = active.job.weight * self._completion_s(active, now_s, contention) / fair_s
        return -rounded(unfairness), not active.running, active.job.seq

    def _gain(self, active: ActiveJob, state: RoundState, contention: float) -> float:
        # At least a round, so that a job which is about to end has no infinite gain.
        completion_s = max(self._completion_s(active, state.now_s, contention), state.round_s)
        return rounded(active.job.weight * log((completion_s + state.round_s) / completion_s))
