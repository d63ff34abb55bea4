"""Equation 11 in numbers: what a timetable of jobs over the rounds of a window is worth.

Work that jobs still have is regimes: how far seconds of running get each of them. Shockwave, appendix G.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints

# Epochs, seconds an epoch, batch size.
Stretch = tuple[float, float, int]
# Shorter epochs are taken to be as long: their number in a round would leave the range of numbers.
LEAST_EPOCH_S = 1e-100


@dataclass(frozen=True, slots=True)
class Work:
    """Regimes left of jobs, as arrays padded with regimes of nothing.

    Attributes
    ----------
    done : (n,) epochs that are behind each job
    epochs : (n, k) epochs of each regime that is left, in order
    epoch_s : (n, k) seconds that an epoch of it takes
    """

    done: Floats
    epochs: Floats
    epoch_s: Floats

    @property
    def left_s(self) -> Floats:
        """Seconds that each job still runs, (n,)."""
        total: Floats = (self.epochs * self.epoch_s).sum(axis=1)
        return total

    def fraction(self, run_s: Floats) -> Floats:
        """Share of its epochs that each job has behind it after running so long, (n, m) for (n, m) seconds.

        UTIL_j of equation 7; a regime counts only from where the one before ends, so that their order is kept;
        the last one goes on at its pace.

        >>> work = work_of([[(10.0, 120.0, 32), (10.0, 60.0, 64)]], [0.0])
        >>> work.fraction(np.array([[0.0, 600.0, 1200.0, 1260.0, 1860.0]])).round(2).tolist()
        [[0.0, 0.25, 0.5, 0.55, 1.05]]
        """
        ran = np.repeat(self.done[:, None], run_s.shape[1], axis=1)
        rest_s = np.maximum(run_s, 0.0)
        for epochs, epoch_s in zip(self.epochs.T[:, :, None], self.epoch_s.T[:, :, None], strict=True):
            here_s = np.minimum(rest_s, epochs * epoch_s)
            ran += here_s / epoch_s
            rest_s = rest_s - here_s
        last = np.maximum(0, (self.epochs > 0).sum(axis=1) - 1)
        # Beyond its last regime a job goes on at that pace: rounds are whole, jobs are not.
        ran += rest_s / self.epoch_s[np.arange(len(last)), last][:, None]
        share: Floats = ran / (self.done + self.epochs.sum(axis=1))[:, None]
        return share


def work_of(stretches: Sequence[Sequence[Stretch]], done: Sequence[float]) -> Work:
    """Work from what is left of each job, (epochs, seconds an epoch, batch size) in order, and its epochs so far."""
    most = max((len(one) for one in stretches), default=0)
    epochs = np.zeros((len(stretches), most))
    # Padding is divided by, so that it is 1 and not 0.
    epoch_s = np.ones((len(stretches), most))
    for row, one in enumerate(stretches):
        epochs[row, : len(one)] = [stretch[0] for stretch in one]
        epoch_s[row, : len(one)] = [max(stretch[1], LEAST_EPOCH_S) for stretch in one]
    return Work(np.asarray(done, dtype=np.float64), epochs, epoch_s)


@dataclass(frozen=True)
class Programme:
    """Maximise sum_j weight_j log((floor + UTIL_j) / (floor + 1)) / (N M) - makespan_price x H over timetables.

    A timetable is (n, rounds) of whether a job runs in a round; the widths of those that run in one fit on the
    cluster. Running so many rounds yields round_s each, less restart_s for every start after a round without GPUs.

    Attributes
    ----------
    work : (n,) jobs' regimes
    cautious_s : (n,) seconds that each job still runs, as the makespan sees it
    weights : (n,) rho^k times the job's own priority
    floor : added to each utility, so that its logarithm is finite before the first epoch
    loads : (n,) GPU load of a second left of each job, a GPU of the cluster: at most width / gpus
    widths : (n,) GPUs
    running : (n,) whether a job holds its GPUs in the round before the window
    gpus : of the cluster
    rounds : of the window
    round_s, restart_s : length of a round; what a start costs
    makespan_price : lambda / Z0, per second
    whole_as_asked : (n, 1) `whole` on the GPUs asked for, where these are others: a round's utility goes by its epochs
    """

    work: Work
    cautious_s: Floats
    weights: Floats
    floor: float
    loads: Floats
    widths: Ints
    running: Bools
    gpus: int
    rounds: int
    round_s: float
    restart_s: float
    makespan_price: float
    whole_as_asked: Floats | None = None

    @property
    def jobs(self) -> int:
        """How many."""
        return len(self.weights)

    def value(self, runs: Bools) -> float:
        """What a timetable (n, rounds) is worth, equation 11, every start charged."""
        counts, starts = runs.sum(axis=1), self.starts(runs)
        run_s = self._run_s(counts, starts)
        left_s = self.held_left_s(counts, starts)
        return float(self._welfare(run_s[:, None]).sum()) - self.makespan_price * self.makespan_s(left_s)

    def starts(self, runs: Bools) -> Ints:
        """Starts of each job after a round in which it held nothing, (n,)."""
        before = np.column_stack([self.running, runs[:, :-1]])
        count: Ints = (runs & ~before).sum(axis=1)
        return count

    def held_left_s(self, counts: Ints, starts: Ints | Bools) -> Floats:
        """Seconds, in whole rounds, for which each job still holds its GPUs after so many rounds in so many pieces.

        All are (n,), or (n, m).
        """
        started = np.maximum(starts.T, ~self.running)  # jobs last: (n,) and (m, n) alike
        # Dust of a division must not cost a whole round.
        needed = np.ceil((self.cautious_s + self.restart_s * started) / self.round_s - 1e-9)
        left: Floats = self.round_s * np.maximum(0.0, needed - counts.T)
        return left.T

    def makespan_s(self, left_s: Floats) -> float:
        """The bound of equation 10: the mean load of the GPUs, or the longest job; widths count for gangs."""
        return max(float(self.loads @ left_s), float(left_s.max(initial=0.0)))

    @cached_property
    def run_s(self) -> Floats:
        """Seconds of progress by rounds run in one piece, (n, rounds + 1): one start, none where a job runs on."""
        counts = np.arange(self.rounds + 1)
        return self._run_s(counts[None, :], (counts[None, :] > 0) & ~self.running[:, None])

    @cached_property
    def gains(self) -> Floats:
        """Welfare by rounds run in one piece, (n, rounds + 1): at least what any timetable of so many rounds gives."""
        return self._welfare(self.run_s)

    @cached_property
    def left_after_s(self) -> Floats:
        """Seconds left by rounds run in one piece, (n, rounds + 1)."""
        counts = np.arange(self.rounds + 1)[None, :]
        return self.held_left_s(counts, (counts > 0) & ~self.running[:, None])

    @cached_property
    def _most_s(self) -> Floats:
        """Progress of a job that runs to its end in one piece; its last round counts in full, as in equation 7."""
        lost_s = np.where(self.running, 0.0, self.restart_s)
        return np.ceil((self.work.left_s + lost_s) / self.round_s - 1e-9) * self.round_s - lost_s

    @cached_property
    def whole(self) -> Floats:
        """Share of its epochs that a job would have at the end of its last round, at least 1, (n, 1)."""
        whole = self.work.fraction(self._most_s[:, None])
        return np.where(whole > 0.0, whole, 1.0)  # less than dust of a round is left of a job that has not begun

    def welfare_of(self, counts: Ints, starts: Ints) -> Floats:
        """Welfare of each job for so many rounds in so many pieces, (n, m) each."""
        return self._welfare(self._run_s(counts, starts))

    def _run_s(self, counts: Ints, starts: Ints | Bools) -> Floats:
        run_s: Floats = np.clip(counts.T * self.round_s - starts.T * self.restart_s, 0.0, self._most_s)
        return run_s.T

    def _welfare(self, run_s: Floats) -> Floats:
        scale = self.weights / (self.jobs * self.gpus)
        if self.whole_as_asked is None:
            share = self.work.fraction(run_s) / self.whole
        else:  # who ends has all its utility, on whatever GPUs
            partly = np.minimum(1.0, self.work.fraction(run_s) / self.whole_as_asked)
            share = np.where(run_s >= self._most_s[:, None], 1.0, partly)
        return scale[:, None] * np.log((self.floor + share) / (self.floor + 1.0))
