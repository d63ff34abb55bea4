"""Budgets of jobs: their finish-time fairness, forecast over each job's own life. Shockwave, equation 9."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.rounds import RoundState
from jobcast.schedulers.shockwave.work import Floats


class Budgets:
    """Keeps how contended each job's life was, and with which fairness it was started.

    A job that runs keeps at least the fairness that it was started with: it falls while it runs, and without that each
    new plan would stop whom the last one started, and scatter everybody's rounds.
    """

    def __init__(self) -> None:
        self._contended: dict[int, tuple[float, int]] = {}  # sum of jobs / GPUs, rounds; by seq
        self._kept: dict[int, float] = {}

    def observe(self, state: RoundState) -> None:
        """Take in a round: jobs that ask for GPUs / GPUs, for the jobs that live in it."""
        now = len(state.active) / state.total_gpus
        before = self._contended
        self._contended = {}
        for active in state.active:
            total, rounds = before.get(active.job.seq, (0.0, 0))
            self._contended[active.job.seq] = total + now, rounds + 1

    def contention(self, state: RoundState) -> Floats:
        """N_avg: mean jobs / GPUs over each job's life so far, at least 1, (n,)."""
        sums = np.array([self._contended[active.job.seq] for active in state.active])
        mean: Floats = np.maximum(1.0, sums[:, 0] / sums[:, 1])
        return mean

    def fairness(self, state: RoundState, left_s: Floats) -> Floats:
        """Rho of each job, (n,), from the seconds that it still runs, (n,).

        Attained service and waiting time together are the time since submission.
        """
        age_s = np.array([state.now_s - active.job.submit_s for active in state.active])
        total_s = left_s + np.array([active.run_s for active in state.active])
        rho = forecast_fairness(age_s, left_s, total_s, self.contention(state))
        kept = [self._kept.get(active.job.seq, 0.0) if active.running else 0.0 for active in state.active]
        rho = np.maximum(rounded_all(rho), kept)
        self._kept = {active.job.seq: float(one) for active, one in zip(state.active, rho, strict=True)}
        return rho


def forecast_fairness(age_s: Floats, left_s: Floats, total_s: Floats, contention: Floats) -> Floats:
    """(L + W + R N) / (P N), equation 9.

    >>> forecast_fairness(np.array([600.0]), np.array([300.0]), np.array([400.0]), np.array([2.0])).tolist()
    [1.5]
    """
    rho: Floats = (age_s + left_s * contention) / (total_s * contention)
    return rho
