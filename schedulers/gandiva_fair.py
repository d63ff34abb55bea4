"""Gandiva-Fair: shares by tickets, handed out by stride or lottery."""

from collections.abc import Mapping, Sequence

import numpy as np

from jobcast.domain.jobs import Job
from jobcast.domain.rounding import rounded
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.schedulers.packing import first_fit

WIDTH = "width"


class GandivaFair:
    """Give each job GPU time in proportion to its tickets. Gandiva-Fair (EuroSys 2020); Waldspurger, 1995.

    A stride scheduler runs the jobs of the smallest pass; a job's pass grows with its GPU time / its tickets. A job
    that arrives begins at the smallest pass of those present, so that it neither catches up nor waits. A lottery draws
    the order of each round with chances in proportion to the tickets. Both fill up with whatever fits.

    Parameters
    ----------
    tickets : `width`, a ticket a GPU (Shockwave, section 8.5: the default of Gandiva-Fair), or `equal`, one a job;
        either times the job's weight
    lottery : draw the order instead of keeping passes
    seed : of draws, and of ties between passes

    Notes
    -----
    As a share policy (`shares`) every job may run min(1, GPUs / jobs) of the time, whatever its width, as the
    published simulator of Shockwave has it. With jobs wider than one GPU these shares claim more than the cluster;
    the mechanism that follows them normalises. They are a pure function of the state.
    """

    name = "gandiva_fair"

    def __init__(self, tickets: str = WIDTH, lottery: bool = False, seed: int = 0) -> None:
        self._by_width = tickets == WIDTH
        self._lottery = lottery
        self._seed = seed
        self._began: Mapping[int, float] = {}

    def shares(self, state: RoundState) -> Sequence[float]:
        """min(1, GPUs / jobs) for each active job, (n_active,)."""
        count = len(state.active)
        return [min(1.0, state.total_gpus / count)] * count if count else []

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs of the smallest pass, or in drawn order."""
        if not state.active:
            return []
        ranks = self._drawn(state) if self._lottery else self._passes(state)
        ties = [self._tie(active) for active in state.active]
        order = sorted(range(len(ranks)), key=lambda index: (ranks[index], ties[index]))
        return first_fit((state.active[index].job for index in order), state.total_gpus)

    def _tickets(self, active: ActiveJob) -> float:
        return active.weight * (active.job.gpus if self._by_width else 1)

    def _passes(self, state: RoundState) -> list[float]:
        """(n_active,) passes; remembers at which pass each active job began."""
        grown = [active.held_s * active.job.gpus / self._tickets(active) for active in state.active]
        seqs = [active.job.seq for active in state.active]
        present = [self._began[seq] + more for seq, more in zip(seqs, grown, strict=True) if seq in self._began]
        # Who comes begins where the furthest behind stands: time before its arrival is not made up for.
        entry = min(present, default=0.0)
        self._began = {seq: self._began.get(seq, entry) for seq in seqs}
        return [rounded(self._began[seq] + more) for seq, more in zip(seqs, grown, strict=True)]

    def _drawn(self, state: RoundState) -> list[float]:
        """Exponential draws at the rates of the tickets, (n_active,): their order is a lottery without replacement."""
        # The round is part of the seed: draws do not depend on how often somebody asked before.
        rng = np.random.default_rng([self._seed, state.index])
        draws = rng.exponential(size=len(state.active))
        tickets = np.array([self._tickets(active) for active in state.active])
        drawn: list[float] = (draws / tickets).tolist()
        return drawn

    def _tie(self, active: ActiveJob) -> tuple[bool, float, int]:
        """Running jobs first, then a number drawn for the job, then submission."""
        # Drawn by job and not by position, so that a tie falls the same way in every round.
        return not active.running, float(np.random.default_rng([self._seed, active.job.seq]).random()), active.job.seq
