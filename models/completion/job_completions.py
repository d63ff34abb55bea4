"""What forecasts of completion times draw from: sizes of jobs, arrivals to come, and intervals calibrated by outcomes.

Sizes of jobs that nobody declares: drawn from jobs that finished before, the alike and the recent ones first.

Arrivals to come: blocks of past ones, so that bursts, widths, models and sizes stay together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.completion.intervals import survival


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Jobs in order of submission; arrays (n_jobs,).

    Attributes
    ----------
    gap_s : seconds since the submission before
    row : position of the past job that each is drawn from
    """

    gap_s: Floats
    row: Ints

    def __len__(self) -> int:
        return len(self.row)


PACE = 0.8
"""Standard deviation of the logarithm of how much faster or slower than in the past jobs arrive in a future."""


class ArrivalDraws:
    """Arrivals of one future, over-dispersed on every scale as queues' bursts are.

    A stretch that comes is the last so many arrivals once more, their number log-uniform between 1 and all: a burst
    goes on about as long as it has lasted, and may stop or return (self-similar arrivals: Paxson and Floyd, Wide-Area
    Traffic: The Failure of Poisson Modeling, 1995). All gaps of a future share a factor, whose rate is mixed
    log-normally. Blocks that lie in one piece keep bursts, widths, models and sizes together (Kuensch, 1989).

    Parameters
    ----------
    gap_s : seconds between past submissions, at least one gap
    rng : of the future
    """

    def __init__(self, gap_s: Floats, rng: np.random.Generator) -> None:
        self._gap_s, self._rng = gap_s, rng
        self._slower = float(np.exp(PACE * rng.standard_normal()))
        self._rows = np.zeros(0, dtype=np.int64)

    def draw(self, count: int) -> Arrivals:
        """The next `count` arrivals: asking twice goes on where the first stopped."""
        past, rows = len(self._gap_s), [self._rows]
        while sum(map(len, rows)) < count:
            last = min(past, int(np.exp(self._rng.uniform(0.0, np.log(past + 1.0)))))
            rows.append(np.arange(past - last, past))
        row = np.concatenate(rows)
        row, self._rows = row[:count], row[count:]
        # A gap belongs to the later of two submissions.
        return Arrivals(self._slower * self._gap_s[row], row + 1)


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
CANDIDATES = 16
"""Sizes of which one is taken where it is known how likely each of some bins is."""
LEAST_SHARE = 1e-6
"""Bins are at least so likely."""
SCORED = 400
"""Jobs at the end of the past that settings are scored on."""
BLOCK = 20
"""Jobs whose mean size is compared with what was forecast of them."""


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
        # argmax takes the first of equals: without recency, where it does not help.
        self.recency_, self.recent_share_ = settings[int(np.argmax(scores))]
        self.shift_ = _shift(logs, self.recency_, self.recent_share_)
        return self

    def as_dict(self) -> dict[str, float]:
        """What it has chosen, as JSON can hold it."""
        return {"recency": self.recency_, "recent_share": self.recent_share_, "shift": self.shift_}

    @classmethod
    def read(cls, saved: Mapping[str, float]) -> "SizeForecaster":
        """From what `told` gave."""
        made = cls()
        made.recency_, made.recent_share_, made.shift_ = saved["recency"], saved["recent_share"], saved["shift"]
        return made

    def sample(self, size_s: Floats, ended: NDArray[np.bool_], width: Ints) -> SizeSample:
        """What is known at an instant of jobs in order of submission, arrays (n,); see `SizeSample`."""
        weight = _weights(len(size_s), self.recency_, self.recent_share_)
        # Kaplan and Meier: at a tie, who ended was still at risk of ending before the other was lost.
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
        # Exponential weights, normalised, are a Dirichlet draw.
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
        # By width: survival is the same for all jobs of one.
        for one in np.unique(width).tolist():
            mine = width == one
            drawn[mine] = self._of_width(one, done_s[mine])
        return drawn

    def draw_in_bins(self, width: Ints, done_s: Floats, edges_s: Floats, odds: Floats) -> Floats:
        """As `draw`, where it is known how likely sizes are to lie in each of some bins.

        Each is one of `CANDIDATES` draws, taken in proportion to what its bin is worth there over here (sampling,
        importance resampling: Rubin, 1987).

        Parameters
        ----------
        edges_s, odds : (n_bins - 1,) upper edges of all bins but the last, and (n_jobs, n_bins)
        """
        drawn = np.array([self.draw(width, done_s) for _ in range(CANDIDATES)])
        place = np.searchsorted(edges_s, drawn)
        worth, jobs = np.empty(drawn.shape), np.arange(len(width))
        for one in np.unique(width).tolist():
            mine = jobs[width == one]
            left = self._survival(one)[np.searchsorted(self._sample.size_s, edges_s)]
            share = -np.diff(np.concatenate([[1.0], left, [0.0]]))
            worth[:, mine] = odds[mine, place[:, mine]] / np.maximum(share, LEAST_SHARE)[place[:, mine]]
        # A gamble of Gumbel noise takes each with the probability that it is worth.
        noise = self._rng.gumbel(size=drawn.shape)
        taken = np.argmax(np.log(np.maximum(worth, LEAST_SHARE)) + noise, axis=0)
        return np.asarray(drawn[taken, jobs])

    def _of_width(self, width: int, done_s: Floats) -> Floats:
        survival, size_s, count = self._survival(width), self._sample.size_s, len(done_s)
        # Around the sizes seen, and a factor that all jobs of this future share.
        noise = self._factor * np.exp(SPREAD * self._rng.standard_normal(count))
        # Given the work done: only sizes beyond it can be drawn.
        first = np.searchsorted(size_s, done_s / noise, side="right")
        target = self._rng.uniform(size=count) * survival[first]
        # Survival falls, and searchsorted wants it to rise.
        chosen = np.searchsorted(-survival, -target, side="right") - 1
        inside = chosen < len(size_s)
        drawn = size_s[np.minimum(chosen, len(size_s) - 1)] * noise
        more = np.minimum(self._rng.pareto(TAIL, count), MOST_BEYOND)
        beyond = np.maximum(done_s, size_s[-1]) * (1.0 + more)
        return np.where(inside & (drawn > done_s), drawn, beyond)

    def _survival(self, width: int) -> Floats:
        """See `survival`; of jobs of a width and of all."""
        if width not in self._known:
            weight = pooled(self._weight, self._sample.width == width)
            self._known[width] = survival(weight, self._sample.ended)
        return self._known[width]


def pooled(weight: Floats, alike: NDArray[np.bool_]) -> Floats:
    """Weights of alike jobs and of all, in proportion to how many alike ones there are."""
    count = int(alike.sum())
    mixed: Floats = weight * (PRIOR_JOBS / (count + PRIOR_JOBS)) / weight.sum()
    if count:
        mixed = mixed + np.where(alike, weight, 0.0) * (count / (count + PRIOR_JOBS)) / weight[alike].sum()
    return mixed


def _weights(count: int, recency: float, share: float) -> Floats:
    if not count:
        return np.zeros(0)
    recent = np.exp(-np.arange(count)[::-1] / recency)
    return np.asarray(share * recent / recent.sum() + (1.0 - share) / count)


def _score(logs: Floats, width: Ints, recency: float, share: float) -> float:
    """Mean log density of the last jobs, each by a mixture of normals around those before it."""
    total, scored = 0.0, 0
    for i in range(max(2, len(logs) - SCORED), len(logs)):
        weight = pooled(_weights(i, recency, share), width[:i] == width[i])
        # Normal densities up to a constant, which all settings share.
        density = weight @ np.exp(-0.5 * ((logs[i] - logs[:i]) / SPREAD) ** 2) / SPREAD
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
    # A mean of BLOCK jobs scatters by that much without any shift.
    within = float(np.var(logs[-SCORED:])) / BLOCK
    return float(np.sqrt(max(float(np.mean(np.square(errors))) - within, 0.0)))
