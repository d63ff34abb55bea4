"""The predictor `job-size`: how much work is in a job, from alike jobs that ended before."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.questions import Question
from jobcast.models.completion.intervals import survival
from jobcast.models.completion.job_completions import SPREAD, SizeForecaster, pooled
from jobcast.models.completion.known_jobs import ALIKE, Key, KnownJobs
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import ServedModel
from jobcast.traces.table import Trace

if TYPE_CHECKING:
    import pandas as pd

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

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `models.pyfunc.Served`."""
        import pandas as pd

        names = (frame[name].fillna("").astype(str).tolist() for name in ALIKE)
        keys = list(zip(frame["gpus"].astype(int).tolist(), *names, strict=True))
        result = self.predictor.forecast(keys, frame["done_s"].to_numpy(np.float64))
        return pd.DataFrame(dict(zip(self.outputs, result.T, strict=True)), index=frame.index)
