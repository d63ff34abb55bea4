"""Sizes of jobs that nobody declares: drawn from jobs that finished before, the alike and the recent ones first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RECENCIES = (10.0, 30.0, 100.0, 1000.0)
"""Jobs after which a job's weight has fallen to 1 / e; the best on the past is kept."""
RECENT_SHARES = (0.0, 0.25, 0.5, 0.75)
"""How much of the weight goes by recency; the rest is spread evenly."""
PRIOR_JOBS = 20.0
"""Jobs of a width that weigh as much as those of all widths together: partial pooling."""
SPREAD = 0.25
"""Standard deviation of log sizes around those seen: no two jobs are quite the same."""
TAIL = 1.0
"""Pareto index of what is left of a job that already ran longer than any seen: its median is as much again ..."""
MOST_BEYOND = 3.0
"""... and at most so many times as much."""
BLOCK = 20
"""Jobs whose sizes are taken to shift together: those of a burst are of one kind."""
SCORED = 400
"""Jobs at the end of the past that settings are scored on."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeSample:
    """What is known of sizes at one instant.

    Attributes
    ----------
    size_s : (n,) seconds on one GPU, ascending: sizes of jobs that ended, work done so far by others
    ended : (n,) which of the two
    width : (n,) the most GPUs of those jobs
    weight : (n,) by recency of their submission, adding up to 1
    shift : standard deviation of log sizes that all jobs of a future share
    """

    size_s: Floats
    ended: NDArray[np.bool_]
    width: Ints
    weight: Floats
    shift: float


class SizeForecaster:
    """Distribution of a job's size given the most GPUs that it can use and the work that it has done.

    Attributes after `fit`
    ----------------------
    recency_, recent_share_ : settings that gave the past's last jobs the highest mean log density in time order
    shift_ : standard deviation of what a block's mean log size comes to against that forecast from the jobs before it
    """

    def fit(self, size_s: Floats, width: Ints) -> "SizeForecaster":
        """Choose the settings on jobs in order of submission, each scored by those before it.

        Parameters
        ----------
        size_s : (n_jobs,) seconds on one GPU
        width : (n_jobs,) the most GPUs of each

        Raises ValueError without jobs.
        """
        if not len(size_s):
            raise ValueError("sizes are forecast from finished jobs, of which there are none")
        logs = np.log(np.maximum(size_s, 1.0))
        settings = [(recency, share) for recency in RECENCIES for share in RECENT_SHARES]
        scores = [_score(logs, width, recency, share) for recency, share in settings]
        self.recency_, self.recent_share_ = settings[int(np.argmax(scores))]
        self.shift_ = _shift(logs, self.recency_, self.recent_share_)
        return self

    def sample(self, size_s: Floats, ended: NDArray[np.bool_], width: Ints) -> SizeSample:
        """What is known at an instant of jobs in order of submission, arrays (n,); see `SizeSample`."""
        weight = _weights(len(size_s), self.recency_, self.recent_share_)
        order = np.lexsort((~ended, size_s))  # at equal sizes those that ended first
        return SizeSample(size_s[order], ended[order], width[order], weight[order], self.shift_)


class SizeDraws:
    """Draws of one future.

    All its jobs share weights drawn anew (Bayesian bootstrap), so that what is not known of the distribution itself is
    not averaged away over a long queue. Rubin, The Bayesian Bootstrap, 1981.

    Parameters
    ----------
    sample : see `SizeForecaster.sample`
    rng : of the future
    """

    def __init__(self, sample: SizeSample, rng: np.random.Generator) -> None:
        self._sample, self._rng = sample, rng
        self._weight = sample.weight * rng.standard_exponential(len(sample.weight))
        self._factor = float(np.exp(sample.shift * rng.standard_normal()))
        self._known: dict[int, Floats] = {}

    def draw(self, width: Ints, done_s: Floats) -> Floats:
        """Sizes, seconds on one GPU, each more than the work done; (n_jobs,).

        Parameters
        ----------
        width : (n_jobs,) the most GPUs of each
        done_s : (n_jobs,) seconds on one GPU
        """
        drawn = np.empty(len(width))
        for one in np.unique(width).tolist():
            mine = width == one
            drawn[mine] = self._of_width(one, done_s[mine])
        return drawn

    def _of_width(self, width: int, done_s: Floats) -> Floats:
        survival, size_s, count = self._survival(width), self._sample.size_s, len(done_s)
        noise = self._factor * np.exp(SPREAD * self._rng.standard_normal(count))
        first = np.searchsorted(size_s, done_s / noise, side="right")
        target = self._rng.uniform(size=count) * survival[first]
        chosen = np.searchsorted(-survival, -target, side="right") - 1
        inside = chosen < len(size_s)
        drawn = size_s[np.minimum(chosen, len(size_s) - 1)] * noise
        more = np.minimum(self._rng.pareto(TAIL, count), MOST_BEYOND)
        beyond = np.maximum(done_s, size_s[-1]) * (1.0 + more)
        return np.where(inside & (drawn > done_s), drawn, beyond)

    def _survival(self, width: int) -> Floats:
        """Share of jobs that are larger than the sizes before the i-th, (n + 1,); the last one is larger than all seen.

        The estimate of Kaplan and Meier (1958) with weights: a job that has not ended counts as long as it may be.
        """
        if width not in self._known:
            sample = self._sample
            weight = _pooled(self._weight, sample.width == width)
            at_risk = np.cumsum(weight[::-1])[::-1]
            hazard = np.where(sample.ended, weight / at_risk, 0.0)
            self._known[width] = np.concatenate([[1.0], np.cumprod(1.0 - np.minimum(hazard, 1.0))])
        return self._known[width]


def _pooled(weight: Floats, alike: NDArray[np.bool_]) -> Floats:
    """Weights of jobs of one width and of all, in proportion to how many of that width there are."""
    count = int(alike.sum())
    pooled: Floats = weight * (PRIOR_JOBS / (count + PRIOR_JOBS)) / weight.sum()
    if count:
        pooled = pooled + np.where(alike, weight, 0.0) * (count / (count + PRIOR_JOBS)) / weight[alike].sum()
    return pooled


def _weights(count: int, recency: float, share: float) -> Floats:
    if not count:
        return np.zeros(0)
    recent = np.exp(-np.arange(count)[::-1] / recency)
    weights: Floats = share * recent / recent.sum() + (1.0 - share) / count
    return weights


def _score(logs: Floats, width: Ints, recency: float, share: float) -> float:
    """Mean log density of the last jobs, each by a mixture of normals around those before it."""
    total, scored = 0.0, 0
    for i in range(max(2, len(logs) - SCORED), len(logs)):
        pooled = _pooled(_weights(i, recency, share), width[:i] == width[i])
        density = pooled @ np.exp(-0.5 * ((logs[i] - logs[:i]) / SPREAD) ** 2) / SPREAD
        total += float(np.log(density + 1e-6))
        scored += 1
    return total / scored if scored else 0.0


def _shift(logs: Floats, recency: float, share: float) -> float:
    """Of blocks of the last jobs; beyond what the scatter of single jobs explains."""
    errors = []
    for begin in range(max(BLOCK, len(logs) - SCORED), len(logs) - BLOCK + 1, BLOCK):
        forecast = _weights(begin, recency, share) @ logs[:begin]
        errors.append(logs[begin : begin + BLOCK].mean() - forecast)
    if not errors:
        return 0.0
    within = float(np.var(logs[-SCORED:])) / BLOCK
    return float(np.sqrt(max(float(np.mean(np.square(errors))) - within, 0.0)))
