"""The predictor `job-size`: how much work is in a job, from alike jobs that ended before.

What jobs that declare their sizes come to: how wrong others were, and what jobs submitted beside them declared.

Jobs of a burst are alike. Where what they declare scatters no more than declarations err, who declared more than its
neighbours was wrong rather than larger: empirical Bayes, with a normal that is fitted around each job (Efron and
Morris, 1973). Where sizes scatter widely it leaves what was declared as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.forecasts import Question
from jobcast.models.completion.intervals import RELATIVE, survival
from jobcast.models.completion.job_completions import SPREAD, SizeForecaster, pooled
from jobcast.models.completion.known_jobs import ALIKE, Key, KnownJobs
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.table import Trace

QUANTILES = (0.05, 0.5, 0.95)
"""Ends of the 90 % interval, and the median, which schedulers are told."""
LARGER = 2.0
"""What is left beyond all that was seen is taken to be so many times the largest: the median of a Pareto tail of 1."""


class JobSize(JsonModel):
    """Work of a job by what jobs of its width, user, tag and model came to, each pooled with those less alike.

    A weighted estimate of Kaplan and Meier (1958): jobs that still run count as long as they may be. Recent jobs weigh
    more where the past says that this helps (`SizeForecaster`).

    Attributes
    ----------
    settings_ : how recency counts
    past_ : the jobs that forecasts are made from
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

    name: ClassVar[str] = "job-size"
    answers: ClassVar[Question] = Question.SIZES
    algorithm: ClassVar[str] = "pooled"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def fit(self, trace: Trace, from_s: float, until_s: float) -> Self:
        """Learn from the jobs of [from_s, until_s), of which nothing later is read. Raises as `KnownJobs.enough`."""
        past = KnownJobs.enough(trace, from_s, until_s)
        ended = past.ended
        settings = SizeForecaster().fit(past.work_s[ended], past.most[ended])
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        return self._of(settings, past)

    def _of(self, settings: SizeForecaster, past: KnownJobs) -> Self:
        self.settings_, self.past_ = settings, past
        order = np.lexsort((~past.ended, past.work_s))
        sample = settings.sample(past.work_s, past.ended, past.most)
        self._size_s, self._ended, self._weight = sample.size_s, sample.ended, sample.weight
        # In the order of the sample, which is by size.
        self._alike = [np.array([key[place] for key in past.keys])[order] for place in range(len(ALIKE) + 1)]
        self._known: dict[Key, Floats] = {}
        return self

    def forecast(
        self, keys: Sequence[Key], done_s: Floats | None = None, levels: Sequence[float] = QUANTILES
    ) -> Floats:
        """Quantiles of work, (n_jobs, n_levels) seconds on one GPU where g GPUs are g times as fast.

        Parameters
        ----------
        keys : (n_jobs,) of `known_jobs.keys_of`
        done_s : (n_jobs,) work that each has done already; None: nothing
        levels : shares of the jobs below
        """
        begun = np.zeros(len(keys)) if done_s is None else done_s
        answers = np.empty((len(keys), len(levels)))
        for row, (key, done) in enumerate(zip(keys, begun.tolist(), strict=True)):
            left = self._survival(key)
            first = np.searchsorted(self._size_s, done, side="right")
            target = (1.0 - np.asarray(levels)) * left[first]
            chosen = np.searchsorted(-left, -target, side="right") - 1
            beyond = LARGER * max(done, float(self._size_s[-1]))
            found = np.where(
                chosen < len(self._size_s), self._size_s[np.minimum(chosen, len(self._size_s) - 1)], beyond
            )
            # One standard deviation of what no two jobs share: outwards from the median, which stays.
            found = found * np.exp(SPREAD * np.sign(np.asarray(levels) - 0.5))
            answers[row] = np.maximum(found, max(done, 1.0))
        return answers

    def _survival(self, key: Key) -> Floats:
        """Of jobs like this one, pooled from all jobs on to those that are alike in everything that is told."""
        if key not in self._known:
            weight, alike = self._weight, np.ones(len(self._weight), dtype=bool)
            for column, name in zip(self._alike, key, strict=True):
                # What a job does not say makes it like nobody.
                if name != "":
                    alike &= column == name
                    # From the coarsest on: each finer group is pooled with the one around it.
                    weight = pooled(weight, alike)
            self._known[key] = survival(weight, self._ended)
        return self._known[key]

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {"settings": self.settings_.as_dict(), "past": self.past_.as_dict()}

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        settings, past = SizeForecaster.read(saved["settings"]), KnownJobs.read(saved["past"])
        return cls()._of(settings, past)


class ServedJobSize(ServedModel):
    """One row a job: its width, what it is, and the work that it has done; answers quantiles of its work."""

    inputs: Mapping[str, str] = {"gpus": "long", **dict.fromkeys(ALIKE, "string"), "done_s": "double"}
    outputs: Mapping[str, str] = dict.fromkeys(("low_s", "size_s", "high_s"), "double")

    shown: Mapping[str, Sequence[Any]] = {"gpus": [1, 8], **{name: ["", ""] for name in ALIKE}, "done_s": [0.0, 60.0]}
    predictor: JobSize

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """See `ServedModel`."""
        names = (frame[name].fillna("").astype(str).tolist() for name in ALIKE)
        keys = list(zip(frame["gpus"].astype(int).tolist(), *names, strict=True))
        result = self.predictor.forecast(keys, frame["done_s"].to_numpy(np.float64))
        return result.T


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
