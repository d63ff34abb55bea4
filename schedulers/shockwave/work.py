"""Work that jobs still have, as regimes: how far seconds of running get each of them. Shockwave, appendix G.1."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain.arrays import Floats

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
