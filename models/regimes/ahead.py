"""What is left of a job under a learned prior: the mean of its regimes, and the distribution of its run time.

Levels of intervals, corrected by how often those of finished jobs held the truth.

Where the run time is certain (nothing can follow, or hardly) an interval is a point and nearly always right. With
`open`, the others are to hold the truth as often as they say, and all intervals together hold it more often; with
`all`, all together do, and those that are no points hold it less often. The levels to compute are chosen on the jobs
that were learned from, the more closely the more jobs there are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.finished import MOST_PIECES
from jobcast.models.regimes.numbers import Numbers, Piece, survival
from jobcast.models.regimes.trajectories import POINTS, epochs_left, progress_at

NODES = 64
MOST_AHEAD = 8
"""Regimes after the running one that are looked at; the last of them goes on to the end."""
LEAST_PART = 1e-3
"""Of all epochs: regimes that are expected to take less are not told."""


def _lattice() -> tuple[Floats, Floats]:
    """Points of a Kronecker sequence (Roberts, 2018): (MOST_AHEAD + 1, NODES) normal and as many uniform."""
    from statistics import NormalDist

    dimensions = 2 * (MOST_AHEAD + 1)
    root = 2.0
    for _ in range(60):
        # The generalised golden ratio, whose powers fill a cube most evenly.
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1, dimensions + 1)
    points = (0.5 + np.arange(1, NODES + 1)[None, :] * steps[:, None]) % 1.0
    # The first dimension of such a lattice is taken exactly even.
    points[0] = (np.arange(NODES) + 0.5) / NODES
    inverse = np.vectorize(NormalDist().inv_cdf)
    return inverse(np.clip(points[: MOST_AHEAD + 1], 1e-9, 1 - 1e-9)), points[MOST_AHEAD + 1 :]


NORMALS, UNIFORMS = _lattice()
FIRST = (np.arange(NODES) + 0.5) / NODES


@dataclass(frozen=True, slots=True)
class Prior:
    """The prior of one job: what depends on its key and its epochs alone.

    Attributes
    ----------
    pieces : by order of the regime
    goes_on : probability by order that another regime follows
    """

    pieces: tuple[Piece, ...]
    goes_on: tuple[float, ...]

    @classmethod
    def of(cls, numbers: Numbers, epochs: float) -> "Prior":
        """For a job of so many epochs."""
        log_epochs = math.log(max(epochs, 1.0))
        return cls(numbers.pieces, tuple(numbers.goes_on(order, log_epochs) for order in range(MOST_PIECES)))

    def piece(self, order: int) -> Piece:
        """Of the regime of an order, from 0."""
        return self.pieces[min(order, MOST_PIECES - 1)]

    def follows(self, order: int) -> float:
        """Probability that another regime follows the one of an order, before it is seen to last."""
        return self.goes_on[min(order, MOST_PIECES - 1)]


def running(prior: Prior, order: int, left: float, done: float) -> tuple[float, float]:
    """Probability that the running regime is followed by another, and its mean epochs in all if it is.

    Parameters
    ----------
    prior : of the job
    order : of the running regime, from 0
    left : epochs that were left when it began
    done : epochs that it has lasted; Bayes' rule: had it another after it, it might have ended by now
    """
    a, b = prior.piece(order).beta(left)
    exceeds, share = survival(a, b, done / left if left > 0 else 1.0)
    before = prior.follows(order)
    # Bayes: it may be followed and has lasted this long, or is not followed at all.
    again = before * exceeds
    total = again + 1 - before
    return (again / total if total > 0 else 0.0), share * left


def mean_regimes(training: Training, progress: Progress, prior: Prior, ahead: Sequence[int]) -> tuple[Regime, ...]:
    """Mean epochs of what is left: the running regime's rest, then those ahead, over all numbers of regimes."""
    rest, now = epochs_left(training, progress), progress.regimes[-1]
    order = len(progress.regimes) - 1
    if not ahead or rest <= 0:
        return (Regime(now.batch_size, rest),)
    begun = rest + now.epochs
    follows, mean = running(prior, order, begun, now.epochs)
    # Epochs expected after the running regime, over both possibilities.
    beyond = follows * (begun - mean)
    epochs, sizes = [rest - beyond], [now.batch_size]
    left = begun - mean
    for place, size in enumerate(ahead, start=1):
        # What is left over goes to the last regime that is told.
        if beyond < LEAST_PART * training.epochs:
            break
        last = place == len(ahead)
        kept = 0.0 if last else prior.follows(order + place) * (1 - prior.piece(order + place).mean(left))
        left *= 1 - prior.piece(order + place).mean(left)
        epochs.append(beyond * (1 - kept))
        sizes.append(size)
        beyond *= kept
    # Rounding: the answer must add up to what is left.
    epochs[-1] += rest - sum(epochs)
    return tuple(Regime(size, max(0.0, lasts)) for size, lasts in zip(sizes, epochs, strict=True))


def epoch_nodes(training: Training, progress: Progress, prior: Prior, ahead: Sequence[int]) -> tuple[Floats, Floats]:
    """Epochs that are left of each regime and their weights: a lattice rule over trajectories, no draw.

    The first node is that the running regime goes on to the end. Shares are taken as logit-normal here, with the
    mean odds and the spread of their Beta distributions.

    Returns
    -------
    epochs : (1 + len(ahead), NODES + 1) of the running regime and those ahead; one node where nothing can follow
    weights : (NODES + 1,)
    """
    rest, now = epochs_left(training, progress), progress.regimes[-1]
    if not ahead or rest <= 0:
        return np.array([[rest], *([0.0] for _ in ahead)]), np.ones(1)
    order, begun = len(progress.regimes) - 1, rest + now.epochs
    follows, _ = running(prior, order, begun, now.epochs)
    lasts = _running_nodes(prior.piece(order), begun, now.epochs)
    epochs, left = np.zeros((1 + len(ahead), NODES + 1)), begun - lasts
    # The first node runs on to the end, the others end as drawn.
    epochs[0] = np.concatenate([[rest], lasts - now.epochs])
    for place in range(1, len(ahead) + 1):
        if place < len(ahead):
            piece = _nodes(prior.piece(order + place), left, NORMALS[place])
            # Another follows with its probability; else this one takes all that is left.
            lasts = np.where(UNIFORMS[place] < prior.follows(order + place), piece, left)
        else:
            lasts = left
        epochs[place, 1:] = lasts
        left = left - lasts
    weights = np.full(NODES + 1, follows / NODES)
    weights[0] = 1 - follows
    return epochs, weights


def time_nodes(training: Training, progress: Progress, prior: Prior, ahead: Sequence[int]) -> tuple[Floats, Floats]:
    """Seconds that are left and their weights, (NODES + 1,); see `epoch_nodes`."""
    epochs, weights = epoch_nodes(training, progress, prior, ahead)
    sizes = (progress.batch_size, *ahead)
    seconds = epochs[0] * training.epoch_s[sizes[0]]
    for row, size in zip(epochs[1:], sizes[1:], strict=True):
        seconds = seconds + row * training.epoch_s[size]
    return seconds, weights


def _running_nodes(piece: Piece, begun: float, done: float) -> Floats:
    """Epochs of a regime that lasts longer than `done`, (NODES,), at even probabilities."""
    from scipy.special import ndtr, ndtri

    # Truncated to what it has lasted already: quantiles of the rest only.
    centre, width = _logit_normal(piece, begun)
    share = min(max(done / begun, 0.0), 1 - 1e-9)
    below = float(ndtr((math.log(share / (1 - share)) - centre) / width)) if share > 0 else 0.0
    z = ndtri(np.minimum(below + (1 - below) * FIRST, 1 - 1e-12))
    return np.asarray(np.maximum(begun / (1 + np.exp(-(centre + width * z))), done))


def _logit_normal(piece: Piece, left: float) -> tuple[float, float]:
    a, b = piece.beta(left)
    return math.log(a / b), math.sqrt(1 / a + 1 / b)


def _nodes(piece: Piece, left: Floats, z: Floats) -> Floats:
    """Epochs of a regime to come out of what is left then, (NODES,)."""
    if piece.kind == "shares":
        centre, width = _logit_normal(piece, 1.0)
        return np.asarray(left / (1 + np.exp(-(centre + width * z))))
    part = np.clip(piece.middle / np.maximum(left, 1e-9), 1e-4, 0.9)
    return np.asarray(left / (1 + (1 - part) / part * np.exp(-piece.spread * z)))


def shortest(values: Floats, weights: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Ends of the shortest intervals that hold shares of the weight, (n_levels,) each.

    >>> low, high = shortest(np.array([1.0, 2.0, 3.0, 9.0]), np.array([0.1, 0.4, 0.4, 0.1]), np.array([0.8, 0.9]))
    >>> low.tolist(), high.tolist()
    ([2.0, 1.0], [3.0, 3.0])
    """
    rank = np.argsort(values, kind="stable")
    x, total = values[rank], np.cumsum(weights[rank])
    # Weight before each value: an interval may begin with it.
    before = np.concatenate([[0.0], total[:-1]])
    ends = np.searchsorted(total, before + levels[:, None] - 1e-9)
    # Behind the last value lies what none of them reaches.
    widths = np.append(x, np.inf)[ends] - x
    best = widths.argmin(axis=1)
    return x[best], x[np.take_along_axis(ends, best[:, None], axis=1)[:, 0]]


def quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least value that a share of the weights lies within.

    >>> values, weights = np.array([9.0, 1.0, 2.0]), np.array([0.1, 0.4, 0.5])
    >>> [quantile(values, weights, level) for level in (0.1, 0.5, 0.95)]
    [1.0, 2.0, 9.0]
    """
    rank = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[rank]), level - 1e-9))
    return float(values[rank[min(place, len(values) - 1)]])


WANTED = (0.5, 0.9)
"""Levels that are corrected; those between are interpolated."""
TRIED = np.round(np.arange(0.2, 0.991, 0.01), 2)
MOST_JOBS = 400
JOBS_TO_TRUST = 100
"""Jobs at which the correction counts as much as the level that was asked for."""
OPEN, ALL = "open", "all"
TINY = 1e-6
"""Of a job's run time: shorter intervals are points."""


class Spread(Protocol):
    """What tells the distribution of the time left."""

    def nodes(self, training: Training, progress: Progress) -> tuple[Floats, Floats]:
        """Seconds left and their weights."""


def calibrated(
    rule: Spread, jobs: Sequence[tuple[Training, tuple[Regime, ...]]], over: str = OPEN
) -> dict[float, float]:
    """Level wanted -> level to compute: the least one whose intervals held the truth that often.

    Parameters
    ----------
    rule : whose distributions are looked at
    jobs : finished ones with their regimes; of many, evenly chosen ones
    over : the intervals that are counted, open or all
    """
    looked_at = [_of_job(rule, *job, over) for job in jobs[:: -(-len(jobs) // MOST_JOBS)]]
    held = [row for rows in looked_at for row in rows]
    if not held:
        return {level: level for level in WANTED}
    # Wider intervals hold no less; counted shares may, by chance.
    share = np.maximum.accumulate(np.mean(held, axis=0))
    found = {level: float(TRIED[min(int(np.searchsorted(share, level)), len(TRIED) - 1)]) for level in WANTED}
    jobs_counted = sum(bool(rows) for rows in looked_at)
    # Few jobs hardly move a level.
    trust = jobs_counted / (jobs_counted + JOBS_TO_TRUST)
    return {level: trust * least + (1 - trust) * level for level, least in found.items()}


def _of_job(rule: Spread, training: Training, regimes: tuple[Regime, ...], over: str) -> list[Floats]:
    total_s = training.run_time_s(regimes)
    held: list[Floats] = []
    for point in POINTS:
        progress = progress_at(regimes, training.epochs * point / 100)
        values, weights = rule.nodes(training, progress)
        if over == ALL or not _is_point(values, weights, TINY * total_s):
            left_s = total_s - training.run_time_s(progress.regimes)
            held.append(_held(values, weights, left_s, TINY * total_s))
    return held


def _held(values: Floats, weights: Floats, truth_s: float, tiny_s: float) -> Floats:
    """Whether the interval of each level held the truth, (n_tried,)."""
    low_s, high_s = shortest(values, weights, TRIED)
    return ((low_s - tiny_s <= truth_s) & (truth_s <= high_s + tiny_s)).astype(np.float64)


def _is_point(values: Floats, weights: Floats, tiny_s: float) -> bool:
    low_s, high_s = shortest(values, weights, np.array(WANTED[-1:]))
    return bool(high_s[0] - low_s[0] <= tiny_s)


def stated(level: float, levels: Mapping[float, float]) -> float:
    """The level to compute for the one that is asked for.

    >>> stated(0.7, {0.5: 0.4, 0.9: 0.8})
    0.6
    """
    wanted = [0.0, *sorted(levels), 1.0]
    return float(np.interp(level, wanted, [0.0, *(levels[one] for one in sorted(levels)), 1.0]))
