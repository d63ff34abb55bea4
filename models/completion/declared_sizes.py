"""What jobs that declare their sizes come to: how wrong others were, and what jobs submitted beside them declared.

Jobs of a burst are alike. Where what they declare scatters no more than declarations err, who declared more than its
neighbours was wrong rather than larger: empirical Bayes, with a normal that is fitted around each job (Efron and
Morris, 1973). Where sizes scatter widely it leaves what was declared as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.completion.intervals import RELATIVE

NEIGHBOURS = 60
"""Jobs of the same width, submitted before and after one, that it is compared with."""
REACH = 2.0
"""How far around a declaration others count, in standard deviations of the errors."""
MOST_ALIKE = 0.85
"""Share of what a job declared that its neighbours' may take the place of, at most."""
LEAST_S = 1e-3
"""Work that is left at least of a job that has not ended."""


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredSizes:
    """Of jobs in order of submission; arrays (n_jobs,).

    Attributes
    ----------
    told_s : as declared, seconds on one GPU
    centre, scale : a job's log size is `centre` + `scale` x an error
    shared : standard deviation of what neighbours' centres are wrong by together
    error : (n_ended,) ascending, log sizes that came out less those declared, around their mean; none where
        declarations are right
    """

    told_s: Floats
    centre: Floats
    scale: Floats
    shared: Floats
    error: Floats

    @classmethod
    def of(cls, told_s: Floats, size_s: Floats, width: Floats) -> "DeclaredSizes":
        """From what jobs declared, came to (NaN where they have not ended), and how wide they are; (n_jobs,)."""
        result = np.log(told_s)
        error = np.log(np.maximum(size_s, LEAST_S)) - result
        error = error[np.isfinite(error)]
        if not (np.abs(error) > RELATIVE).any():
            return cls(told_s, result, np.ones(len(result)), np.zeros(len(result)), np.zeros(0))
        # Users may ask for too much on the whole.
        unbiased, error = result + error.mean(), np.sort(error - error.mean())
        return cls(told_s, *_shrunk(unbiased, width, float(error.var())), error)

    @property
    def exact(self) -> bool:
        """Whether jobs are as large as they declare."""
        return not len(self.error)

    def draw(self, row: Ints, done_s: Floats, rng: np.random.Generator) -> Floats:
        """Sizes of some jobs in one future, seconds on one GPU, each more than the work done; (n,)."""
        told_s, least_s = self.told_s[row], done_s + LEAST_S
        if self.exact:
            return np.where(done_s >= told_s, least_s, told_s)
        scale, error = self.scale[row], self.error
        centre = self.centre[row] + self.shared[row] * rng.standard_normal()
        # Only errors count under which the job has not ended yet.
        first = np.searchsorted(error, (np.log(least_s) - centre) / scale, side="right")
        at = first + (rng.uniform(size=len(row)) * (len(error) - first)).astype(np.int64)
        # Who has outlived all of them goes on by as much as declarations err.
        beyond = least_s * np.exp(float(error.std()) * np.abs(rng.standard_normal(len(row))))
        drawn = np.exp(centre + scale * error[np.minimum(at, len(error) - 1)])
        return np.where(at < len(error), np.maximum(drawn, least_s), beyond)


def _shrunk(value: Floats, width: Floats, variance: float) -> tuple[Floats, Floats, Floats]:
    """`centre`, `scale` and `shared` of jobs, from what they declared, without bias, and their neighbours did."""
    found = np.array([value, np.ones(len(value)), np.zeros(len(value))])
    for one in np.unique(width):
        mine = np.flatnonzero(width == one)
        near = np.arange(len(mine))[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS + 1)
        there = (near >= 0) & (near < len(mine))
        found[:, mine] = _around(value[mine], value[mine[np.clip(near, 0, len(mine) - 1)]], there, variance)
    centre, scale, shared = found
    return centre, scale, shared


def _around(value: Floats, near: Floats, there: NDArray[np.bool_], variance: float) -> tuple[Floats, Floats, Floats]:
    """The same of some jobs, (n,), each with its neighbours, (n, n_near), as far as these are there."""
    reach = REACH**2 * variance
    weight = np.where(there, np.exp(-0.5 * np.square(near - value[:, None]) / reach), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight * near).sum(axis=1)
    # What the kernel itself adds to the precision, and pulls towards the job, is taken off.
    precision = 1.0 / np.maximum((weight * np.square(near - mean[:, None])).sum(axis=1), RELATIVE) - 1.0 / reach
    count = 1.0 / np.square(weight).sum(axis=1)
    # At most as alike as if they were all of one size, which their mean tells as well as they are many.
    share = np.clip(variance * precision, 0.0, np.minimum(MOST_ALIKE, 1.0 - 1.0 / count))
    around = np.where(precision > 0.0, mean + (mean - value) / np.maximum(reach * precision, RELATIVE), value)
    return value + share * (around - value), np.sqrt(1.0 - share), share * np.sqrt(variance / count)
