"""CurveForecast: where many training curves are going, with intervals, from fits of their seen parts.

Cuts of the learning rate: a curve jumps after each, by a share of its way to the best value; declared cuts, and what
is to be expected where none are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.curves.fitting import Fits
from jobcast.models.curves.numbers import SPREAD_SHARES, CurveNumbers, KnownApps
from jobcast.models.curves.prior import NAMES
from jobcast.models.curves.scaling import BASE, LAST, LENGTH, ORIGIN, PER_V, SHARE

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
    return np.where(chance > TAIL, size * np.maximum(beyond, 0.0) / TAIL_QUANTILE, 0.0)


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


LEVEL = 0.9
GRID = 65
"""Epochs at which it is asked when a target is reached, evenly spaced from the last seen to the last."""


@dataclass(frozen=True, eq=False)
class CurveForecast:
    """Forecasts of n curves: a normal distribution at each epoch, wider on the one side than on the other.

    Attributes
    ----------
    numbers : learnt
    fits : of the stretches that the curves are in
    weights : (n, 11) of families
    seen, epochs : (n,) the last epoch seen, and the last of the whole run
    direction : (n,) 1 where the metric rises, -1 where it falls
    sure : (n,) whether the direction is known; with one value of an unknown application it is not
    low, high : (n,) least and largest possible metric, infinite where unknown
    cuts : declared cuts of the learning rate that are still to come
    known : what is known of the applications
    """

    numbers: CurveNumbers
    fits: Fits
    weights: Floats
    seen: Ints
    epochs: Ints
    direction: Floats
    sure: NDArray[np.bool_]
    low: Floats
    high: Floats
    cuts: Cuts
    known: KnownApps

    def __len__(self) -> int:
        """Number of curves."""
        return len(self.seen)

    def at(self, epochs: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Forecasts at some epochs.

        Parameters
        ----------
        epochs : (n, e) epochs of each curve, later than those seen, or the last of these: its value is known

        Returns
        -------
        mean, below, above : (n, e) the mean, and the standard deviations of lower and of higher values
        """

        epoch = np.atleast_2d(np.asarray(epochs, np.float64))
        metric, sd, worse, better = self.parts(epoch)
        # Calibrated widening, by how much of the run is seen.
        spread = np.interp(self.seen / self.epochs, SPREAD_SHARES, self.numbers.spread)[:, None] * sd
        lower, upper = np.hypot(spread, worse), np.hypot(spread, better)
        # In the order better and worse; turned into higher and lower only after it.
        metric, lower, upper = self.known.combined(epoch, metric, lower, upper, self.seen, self.epochs)
        metric, below, above = self._either_way(metric, lower, upper)
        metric = np.clip(metric, self.low[:, None], self.high[:, None])
        # The last value seen is no forecast.
        known = epoch == self.seen[:, None]
        metric = np.where(known, self.fits.scale[:, LAST, None], metric)
        return metric, np.where(known, 0.0, below), np.where(known, 0.0, above)

    def parts(self, epoch: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """What `at` is made of: the mean, its standard deviation, and those that cuts add for the worse and better."""
        from jobcast.models.curves.combination import TEMPER, Mixture, Rise, combine
        from jobcast.models.curves.rates import rises_ahead

        fits, scale = self.fits, self.fits.scale
        # Families know the present stretch; what follows a cut is added as jumps.
        within = np.minimum(epoch, self.cuts.until[:, None])
        share = np.clip((within - 1 - scale[:, ORIGIN, None]) / scale[:, LENGTH, None], 0.0, 1.0)
        share = np.ascontiguousarray(share)
        rise = Rise(np.empty(share.shape), np.empty(share.shape))
        rises_ahead(fits.points, scale, self.numbers.rate, TEMPER, share, *rise)
        untold = untold_sd(scale[:, SHARE], share, self.numbers.cut_sizes)
        # Who declares a schedule has no other one.
        untold[self.cuts.declared] = 0.0
        families = Mixture(self.weights, *fits.families_at(share))
        annealing = self.numbers.annealing
        mean, sd, jump_sd = combine(scale, fits.points.used, families, rise, annealing, untold, share)
        unit = np.abs(scale[:, PER_V, None])
        metric = scale[:, BASE, None] + scale[:, PER_V, None] * mean
        # In the metric's own unit, for jumps are shares of the way to its bound.
        metric, sd, declared = self.cuts.added(epoch, metric, unit * sd, self.direction)
        return metric, sd, declared, np.hypot(declared, unit * jump_sd)

    def _either_way(self, metric: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Better and worse turned into higher and lower; where the direction is not known, both are possible."""
        up = self.direction[:, None] > 0
        below, above = np.where(up, lower, upper), np.where(up, upper, lower)
        if self.sure.all():
            return metric, below, above
        last = self.fits.scale[:, BASE, None] + self.fits.scale[:, PER_V, None]
        change, rising = np.abs(metric - last), self.numbers.rising
        either = np.hypot(change, np.maximum(lower, upper))
        unsure = ~self.sure[:, None]
        return (
            np.where(unsure, last + (2 * rising - 1) * change, metric),
            np.where(unsure, either, below),
            np.where(unsure, either, above),
        )

    @cached_property
    def final_mean(self) -> Floats:
        """(n,) mean of the metric at the last epoch."""
        return self.at(self.epochs[:, None])[0][:, 0]

    @cached_property
    def _final_interval(self) -> tuple[Floats, Floats]:
        low, high = self.interval(LEVEL)
        return low[:, 0], high[:, 0]

    @property
    def final_low(self) -> Floats:
        """(n,) lower end of the 90 % interval of the metric at the last epoch."""
        return self._final_interval[0]

    @property
    def final_high(self) -> Floats:
        """(n,) upper end of it."""
        return self._final_interval[1]

    def interval(self, level: float = LEVEL, epochs: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Central interval that holds the metric with some probability, both ends (n, e).

        Parameters
        ----------
        level : probability, in (0, 1)
        epochs : (n, e); None asks for the last, (n, 1)
        """
        from scipy.special import ndtri

        mean, below, above = self.at(self.epochs[:, None] if epochs is None else epochs)
        z = float(ndtri(0.5 + level / 2))
        low, high = self.low[:, None], self.high[:, None]
        return np.clip(mean - z * below, low, high), np.clip(mean + z * above, low, high)

    def probability_at(self, epochs: ArrayLike, target: ArrayLike) -> Floats:
        """(n, e) probability that the metric is as good as a target (scalar or (n,)) at some epochs (n, e)."""
        from scipy.special import ndtr

        mean, below, above = self.at(epochs)
        wanted = np.broadcast_to(np.asarray(target, np.float64), (len(self),))[:, None]
        # The side of the mean that the target lies on.
        sd = np.where(wanted < mean, below, above)
        at_least = ndtr((mean - wanted) / np.maximum(sd, np.finfo(float).tiny))
        way = self.direction[:, None]
        found: Floats = np.where(way > 0, at_least, 1 - at_least)
        return np.where(sd > 0, found, way * (mean - wanted) >= 0)

    def reach_probability(self, target: ArrayLike) -> Floats:
        """(n,) probability that the target is reached by the last epoch; a scalar or (n,)."""
        return self._reached_by(target)[1][:, -1]

    def reach_epoch(self, target: ArrayLike, quantile: float = 0.5) -> Floats:
        """(n,) first epoch by which the target is reached with probability `quantile`; inf if by none of the run.

        What was seen before does not count: a run whose metric was at the target already is at it again at once.
        """
        epoch, reached = self._reached_by(target)
        enough = reached >= quantile
        # 0 also where none is enough, which the last line turns to infinity.
        first = enough.argmax(axis=1)
        rows = np.arange(len(self))
        found = epoch[rows, first]
        before = np.maximum(first - 1, 0)
        rise = reached[rows, first] - reached[rows, before]
        part = np.where(rise > 0, (quantile - reached[rows, before]) / np.where(rise > 0, rise, 1.0), 1.0)
        between = epoch[rows, before] + np.clip(part, 0.0, 1.0) * (found - epoch[rows, before])
        return np.where(enough.any(axis=1), np.ceil(np.where(first > 0, between, found)), np.inf)

    def _reached_by(self, target: ArrayLike) -> tuple[Floats, Floats]:
        """Epochs (n, GRID) and the probability that the target was reached by then."""
        start = np.minimum(self.seen + 1, self.epochs).astype(float)
        epoch = np.linspace(start, self.epochs, GRID, axis=1)
        # Reached once is reached: noise later does not take it back.
        return epoch, np.maximum.accumulate(self.probability_at(epoch, target), axis=1)

    @cached_property
    def family_finals(self) -> Mapping[str, Floats]:
        """Family -> (n,) the metric at the last epoch by its fit alone, without cuts and without other applications."""
        scale = self.fits.scale
        value, _ = self.fits.families_at(np.ones((len(self), 1)))
        metric = np.clip(
            scale[:, BASE, None] + scale[:, PER_V, None] * value[:, :, 0], self.low[:, None], self.high[:, None]
        )
        return {name: metric[:, row] for row, name in enumerate(NAMES)}
