"""Max sum of throughput: the jobs that advance fastest a GPU run, the others wait."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.rounds import ActiveJob, RoundState

EPOCHS, STEPS = "epochs", "steps"
ALIKE = 1e-9  # relative difference below which two rates a GPU are taken to be equal


class MaxSumThroughput:
    """Shares of time that maximise the sum of throughputs. Gavel (OSDI 2020); Shockwave, section 8.2.

    The linear programme "maximise rates x shares subject to widths x shares <= GPUs, 0 <= shares <= 1" is a fractional
    knapsack: the highest rates a GPU get all of their time, those at the margin share what is left alike, as an
    interior-point solver leaves them.

    Parameters
    ----------
    unit : of rates. `EPOCHS`: epochs / s, the progress that Shockwave's utility counts (equation 7). `STEPS`: steps / s
        at the running batch size, Gavel's unit, which adds up steps of unlike size and needs the sizes of data sets.

    Notes
    -----
    Reactive: a rate is that of the batch size at the moment. A job without training, or whose data set's size is
    wanted and not known, reports no rate and runs on what the others leave.
    """

    name = "mst"

    def __init__(self, unit: str = EPOCHS) -> None:
        self._unit = unit

    def shares(self, state: RoundState) -> Sequence[float]:
        """Share of the time for each active job, (n_active,)."""
        widths = np.array([active.job.gpus for active in state.active], dtype=np.float64)
        rates = np.array([self.rate(active) for active in state.active], dtype=np.float64)
        shares: list[float] = fractional_knapsack(rates, widths, float(state.total_gpus)).tolist()
        return shares

    def rate(self, active: ActiveJob) -> float:
        """Epochs, or steps, a second at the batch size of the moment; 0 where nothing is known."""
        training = active.job.training
        if training is None:
            return 0.0
        batch_size = training.batch_size if active.progress is None else active.progress.batch_size
        work = 1.0 if self._unit == EPOCHS else (training.samples or 0) / batch_size
        return work / training.epoch_s[batch_size]


def fractional_knapsack(values: Floats, widths: Floats, gpus: float) -> Floats:
    """Shares that maximise values x shares on so many GPUs, (n,); items of equal value a GPU get equal shares.

    >>> fractional_knapsack(np.array([3.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0]), 2.0).tolist()
    [1.0, 0.5, 0.5]
    """
    shares = np.zeros(len(values))
    density = values / widths
    order = np.argsort(-density, kind="stable")
    # Where the rate falls by more than rounding a new group of equals begins.
    falls = np.flatnonzero(np.diff(density[order]) < -ALIKE * np.abs(density[order][:-1])) + 1
    left = gpus
    for alike in np.split(order, falls):
        if not len(alike) or left <= 0:
            break
        shares[alike] = min(1.0, left / float(widths[alike].sum()))
        left -= float(widths[alike] @ shares[alike])
    return shares
