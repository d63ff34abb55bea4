"""How the published round mechanism follows shares of time: priorities, deficits and allocations that lag behind.

Gavel (OSDI 2020), section 5, as its simulator has it.
"""

from collections.abc import Sequence

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import RoundState, SharePolicy

RESET_S = 1_000.0
"""Allocations are computed anew at most so often."""


class FollowShares:
    """Chooses the jobs of each round by allocation / fraction of the job-seconds since the last reset.

    A reset computes the allocations anew, where jobs came or went since the last one and that is 1,000 s ago or was at
    the very beginning. A job that arrived since then has no allocation: it is chosen last, if it fits, yet does not
    run, and the GPUs that it was chosen for stay idle.

    Parameters
    ----------
    policy : says the shares
    round_s : length of a round; every job is taken to have run for half of one at a reset
    """

    def __init__(self, policy: SharePolicy, round_s: float) -> None:
        self._policy = policy
        self._head_start_s = 0.5 * round_s
        self._reset_s = 0.0
        self._received_s: dict[int, float] = {}  # by seq, since the last reset, the head start included
        self._deficits_s: dict[int, float] = {}
        self._shares: dict[int, float] = {}
        self._stale = False

    def arrive(self, job: Job) -> None:
        """A job is there."""
        self._received_s[job.seq], self._deficits_s[job.seq] = self._head_start_s, 0.0
        self._stale = True

    def ran(self, job: Job, run_s: float) -> None:
        """A job has run for so many seconds."""
        self._received_s[job.seq] += run_s

    def leave(self, job: Job) -> None:
        """A job has ended."""
        del self._received_s[job.seq], self._deficits_s[job.seq]
        self._shares.pop(job.seq, None)
        self._stale = True

    def choose(self, state: RoundState, clock_s: float) -> Sequence[Job]:
        """Jobs that run in a round, which begins `clock_s` after the replay began."""
        since_s = clock_s - self._reset_s
        if self._stale and (since_s >= RESET_S or self._reset_s == 0.0):
            self._reset(state, since_s)
            self._reset_s = clock_s
        jobs = [active.job for active in state.active]
        ranked = sorted(jobs, key=lambda job: self._rank(job.seq), reverse=True)  # equals stay in order of arrival
        free, chosen = state.total_gpus, []
        for job in ranked:
            if job.gpus <= free:
                free -= job.gpus
                chosen.append(job)
        return [job for job in chosen if job.seq in self._shares]

    def _reset(self, state: RoundState, since_s: float) -> None:
        for seq, received_s in self._received_s.items():
            self._deficits_s[seq] += self._shares.get(seq, 0.0) * since_s - (received_s - self._head_start_s)
            self._received_s[seq] = self._head_start_s
        shares = self._policy.shares(state)
        self._shares = {active.job.seq: share for active, share in zip(state.active, shares, strict=True)}
        self._stale = False

    def _rank(self, seq: int) -> tuple[float, float, float]:
        """Priority, deficit, allocation. The job-seconds of all jobs divide every fraction alike, so they are left out.

        Without an allocation the priority is 0.
        """
        share = self._shares.get(seq, 0.0)
        return share / self._received_s[seq], self._deficits_s[seq], share
