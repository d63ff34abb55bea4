"""Cuts of the learning rate: a curve jumps after each, by a share of its way to the best value; declared cuts, and what
is to be expected where none are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints

AT_ONCE = 0.85
"""Share of a jump that comes with the first epoch after the cut; the rest comes evenly until the next."""

UNTOLD = 0.2
"""Probability that a run without a schedule has one all the same."""
FIRST_CUTS = (0.3, 0.75)
"""Shares of a run between which the first cut lies, evenly: .3 (wide ResNets on CIFAR: 60 of 200 epochs), a third
(ImageNet: 30 of 90), a half (ResNets on CIFAR), two thirds (Mask R-CNN: 60,000 of 90,000 steps), three quarters."""
UNTOLD_DECAY = 3.0
"""Jumps get smaller by exp(-1) from cut to cut, see `numbers.CUT_SIZES`, and three make a schedule."""
UNTOLD_SIZE_SD = 0.5
"""Standard deviation of all jumps together, as a share of these."""
TAIL, TAIL_QUANTILE = 0.05, 1.6449
"""What a 90 % interval leaves out above, and the normal quantile there."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Cuts that are still to come.

    Attributes
    ----------
    until : (n,) the last epoch of the stretch that each curve is in
    declared : (n,) whether a schedule is known
    after : (n, c) epochs after which the rate will be cut, infinite where there are fewer
    ends : (n, c) the last epoch that each cut's stretch has
    size, sd : (n, c) jumps as shares of the way from where the curve then is to its bound
    bound : (n,) best value
    """

    until: Ints
    declared: NDArray[np.bool_]
    after: Floats
    ends: Floats
    size: Floats
    sd: Floats
    bound: Floats

    def added(self, epoch: Floats, metric: Floats, sd: Floats, direction: Floats) -> tuple[Floats, Floats, Floats]:
        """Forecasts (n, e) with the jumps that come before these epochs, their standard deviation, and the jumps'."""
        jump_sd = np.zeros(metric.shape)
        for column in range(self.after.shape[1]):
            after, ends = self.after[:, column, None], self.ends[:, column, None]
            passed = epoch > after
            # Cuts that a curve lacks are at infinity, where this is NaN and not used.
            with np.errstate(invalid="ignore", divide="ignore"):
                later = np.where(ends > after + 1, (epoch - after - 1) / (ends - after - 1), 1.0)
            done = np.where(passed, AT_ONCE + (1 - AT_ONCE) * np.clip(np.nan_to_num(later), 0.0, 1.0), 0.0)
            # Of where the curve is after the cuts before, so jumps get smaller.
            gap = np.maximum(direction[:, None] * (self.bound[:, None] - metric), 0.0)
            metric = metric + direction[:, None] * done * self.size[:, column, None] * gap
            wider = done * self.sd[:, column, None] * gap
            kept = 1 - done * self.size[:, column, None]
            # A jump closes a share of the gap, and with it of what is uncertain below it.
            sd, jump_sd = kept * sd, np.hypot(kept * jump_sd, wider)
        return metric, sd, jump_sd


def untold_sd(seen: Floats, share: Floats, sizes: Sequence[float]) -> Floats:
    """What cuts that nobody declared may add by some time, as shares of the way to the bound, (n, e).

    With a small probability a jump comes, a large one: a mixture, whose upper end is that of no jump as long as the
    probability is below TAIL, and a quantile of the jump beyond. Answered is the standard deviation of the normal
    distribution that reaches as far.

    Parameters
    ----------
    seen : (n,) share of the run that is seen; as far as that, no first cut came
    share : (n, e) share of the run
    sizes : of the first, the second, ... cut

    >>> untold_sd(np.array([0.2]), np.array([[0.3, 0.41, 0.5, 1.0]]), (0.4, 0.15, 0.05)).round(2).tolist()
    [[0.0, 0.0, 0.29, 0.42]]
    """
    from scipy.special import ndtri

    begin, until = FIRST_CUTS
    gone, came = (np.clip((one - begin) / (until - begin), 0.0, 1.0) for one in (seen[:, None], share))
    # Given that none came so far (Bayes).
    chance = UNTOLD * np.maximum(came - gone, 0.0) / (1.0 - UNTOLD * gone)
    beyond = 1.0 + UNTOLD_SIZE_SD * ndtri(1.0 - TAIL / np.maximum(chance, TAIL * (1 + 1e-9)))
    size = (1.0 - np.prod(1.0 - np.asarray(sizes))) * np.exp(-UNTOLD_DECAY * gone)
    found: Floats = np.where(chance > TAIL, size * np.maximum(beyond, 0.0) / TAIL_QUANTILE, 0.0)
    return found


def stretch_of(seen: int, epochs: int, milestones: Sequence[int]) -> tuple[int, int]:
    """The epoch that a curve's present stretch begins after, and the last of it.

    >>> stretch_of(18, 90, (30, 60)), stretch_of(30, 90, (30, 60)), stretch_of(31, 90, (30, 60)), stretch_of(5, 9, ())
    ((0, 30), (0, 30), (30, 60), (0, 9))
    """
    # A cut at the last epoch seen is still to come: the next epoch shows it.
    begin = max((cut for cut in milestones if cut < seen), default=0)
    until = min((cut for cut in milestones if cut >= seen), default=epochs)
    return begin, min(until, epochs)


def cuts_of(
    seen: Sequence[int],
    epochs: Sequence[int],
    milestones: Sequence[Sequence[int]],
    bound: Floats,
    sizes: Sequence[float],
    sds: Sequence[float],
) -> Cuts:
    """Cuts to come of each curve.

    Parameters
    ----------
    seen, epochs : (n,) last epoch seen, last of the run
    milestones : n schedules, empty where none is known
    bound : (n,) best value
    sizes, sds : of the first, the second, ... cut; the last stand for all further ones
    """
    n = len(seen)
    coming = [
        [(order, cut) for order, cut in enumerate(sorted(cuts)) if now <= cut < end]
        for now, end, cuts in zip(seen, epochs, milestones, strict=True)
    ]
    # Padded to the longest schedule.
    most = max((len(cuts) for cuts in coming), default=0)
    after, ends = np.full((n, most), np.inf), np.full((n, most), np.inf)
    size, sd = np.zeros((n, most)), np.zeros((n, most))
    for row, cuts in enumerate(coming):
        for column, (order, cut) in enumerate(cuts):
            after[row, column] = cut
            ends[row, column] = cuts[column + 1][1] if column + 1 < len(cuts) else epochs[row]
            size[row, column], sd[row, column] = sizes[min(order, len(sizes) - 1)], sds[min(order, len(sds) - 1)]
    until = np.array([stretch_of(*one)[1] for one in zip(seen, epochs, milestones, strict=True)], np.int64)
    declared = np.array([len(cuts) > 0 for cuts in milestones], bool)
    return Cuts(until, declared, after, ends, size, sd, bound)
