"""JobDuration: which duration bin a submitted job will fall into. SIA, section 5.4.2."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.features.durations import GROUPS, LAST_FINISHED, duration_history
from jobcast.features.finished import FinishedTracker
from jobcast.models.metadata import read_metadata, write_metadata
from jobcast.models.scores import likeliest_bin
from jobcast.traces.table import Trace

MINUTE_S = 60.0
PRIOR_WEIGHT = 8.0
"""Least log loss on Philly from 22 October to 5 November 2017, learnt on the three weeks before."""
SHORTEST_S = 1.0
"""Lower edge of the first bin where its middle is sought."""
LONGEST_FACTOR = 4.0
"""Upper edge of the last bin, in lower edges, where its middle is sought."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class JobDuration:
    """Majority among the last finished jobs most like the submitted one.

    Like means: of the same experiment tag where at least `min_same_tag` of them have finished, else of the same
    pool and width, else of the same pool, else any job of the training data. Of equally frequent bins the longer one is
    the forecast: a job that outlasts its bin holds GPUs that their owners come for.

    Parameters
    ----------
    horizons_min : inner edges of the bins in minutes
    last_n : how many finished jobs of a group count
    min_same_tag : how many of them the tag's group needs
    prior_weight : weight, in jobs, of the training data's class shares in the probabilities

    Attributes
    ----------
    prior_ : (B,) share of the training jobs in each bin, B = horizons + 1
    bin_duration_s_ : (B,) geometric mean of the run times of each bin's training jobs, seconds; where there is
        none, that of the bin's edges
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    rows_ : training jobs
    """

    name: ClassVar[str] = "job-duration"

    def __init__(
        self,
        horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN,
        last_n: int = LAST_FINISHED,
        min_same_tag: int = 3,
        prior_weight: float = PRIOR_WEIGHT,
    ):
        self.horizons_min = tuple(horizons_min)
        self.last_n = last_n
        self.min_same_tag = min_same_tag
        self.prior_weight = prior_weight

    def fit(self, trace: Trace, until_s: float) -> Self:
        """Learn class shares and the bins' run times from the jobs that ended before an instant.

        Parameters
        ----------
        trace : jobs; may reach past `until_s`, and what ends then is not read
        until_s : seconds from the epoch

        Raises
        ------
        TrainingError
            No job ended before `until_s`.
        """
        ended = trace.end_s < until_s
        duration_s = trace.duration_s[ended]
        if not len(duration_s):
            raise TrainingError(f"{self.name}: no job of {trace.name} ended in the training time; widen the window")
        self.trained_from_s_ = float(trace.submit_s[ended].min())
        self.trained_until_s_ = float(until_s)
        self.rows_ = len(duration_s)
        bins = bins_of(duration_s, self.horizons_min)
        n_bins = len(self.horizons_min) + 1
        counts = np.bincount(bins, minlength=n_bins)
        self.prior_ = counts / counts.sum()
        logs = np.bincount(bins, weights=np.log(duration_s), minlength=n_bins)
        means = np.exp(logs / np.maximum(counts, 1))
        self.bin_duration_s_ = np.where(counts > 0, means, _middles_s(self.horizons_min))
        return self

    def votes(self, counts: NDArray[Any]) -> Ints:
        """Counts of the group that decides, (n_jobs, B): zeros where none of its jobs has finished.

        Parameters
        ----------
        counts : (n_jobs, 4, B), finished jobs by group and bin; see `features.durations.DurationHistory`
        """
        counts = np.asarray(counts, np.int64)
        by_group = {group: counts[:, GROUPS.index(group)] for group in ("tag", "pool_width", "pool")}
        tag, pool_width = by_group["tag"], by_group["pool_width"]
        wider = np.where(pool_width.any(axis=1, keepdims=True), pool_width, by_group["pool"])
        return np.where(tag.sum(axis=1, keepdims=True) >= self.min_same_tag, tag, wider)

    def predict_proba(self, counts: NDArray[Any]) -> Floats:
        """Probabilities of the bins, (n_jobs, B): (votes + weight x prior) / (all votes + weight)."""
        votes = self.votes(counts)
        total = votes.sum(axis=1, keepdims=True)
        proba: Floats = (votes + self.prior_weight * self.prior_) / (total + self.prior_weight)
        return proba

    def predict(self, counts: NDArray[Any]) -> Ints:
        """Index of the bin with most votes, (n_jobs,): the longer of equals; the training data's where none voted."""
        votes = self.votes(counts)
        return likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, self.prior_))

    def predict_duration_s(self, counts: NDArray[Any]) -> Floats:
        """Run time in seconds that stands for the forecast bin, (n_jobs,)."""
        durations: Floats = self.bin_duration_s_[self.predict(counts)]
        return durations

    def tracker(self) -> FinishedTracker:
        """An empty tracker of finished jobs whose rows `predict` reads: the live way."""
        return FinishedTracker(self.horizons_min, self.last_n)

    def counts(self, trace: Trace) -> Ints:
        """Rows of every job of a trace at its submission, (n_jobs, 4, B): the batch way."""
        return group_counts(trace, self.horizons_min, self.last_n)

    def save(self, folder: Path) -> None:
        """Write `metadata.json`, which is all of it."""
        told = {
            "horizons_min": list(self.horizons_min),
            "bins": bin_labels(self.horizons_min),
            "last_n": self.last_n,
            "min_same_tag": self.min_same_tag,
            "prior_weight": self.prior_weight,
            "prior": self.prior_.tolist(),
            "bin_duration_s": self.bin_duration_s_.tolist(),
            "trained_from_s": self.trained_from_s_,
            "trained_until_s": self.trained_until_s_,
            "rows": self.rows_,
        }
        write_metadata(folder, self.name, told)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder does not hold such a model."""
        told = read_metadata(folder, cls.name)
        model = cls(told["horizons_min"], told["last_n"], told["min_same_tag"], told["prior_weight"])
        model.prior_, model.bin_duration_s_ = np.array(told["prior"]), np.array(told["bin_duration_s"])
        model.trained_from_s_, model.trained_until_s_ = told["trained_from_s"], told["trained_until_s"]
        model.rows_ = told["rows"]
        return model


def group_counts(trace: Trace, horizons_min: Sequence[float], last_n: int) -> Ints:
    """Finished jobs like each job at its submission, by group and bin, (n_jobs, 4, B)."""
    tagged = "tag" in trace.jobs.columns
    tags = trace.jobs["tag"].fill_null("").to_list() if tagged else [""] * len(trace)
    pools = trace.jobs["pool"].to_list()
    return duration_history(
        trace.submit_s, trace.end_s, trace.duration_s, trace.gpus, pools, tags, horizons_min, last_n
    ).counts


def bins_of(duration_s: NDArray[Any], horizons_min: Sequence[float]) -> Ints:
    """Indices of the duration bins, shape of `duration_s`; see `domain.horizons.duration_bin`.

    >>> bins_of(np.array([300.0, 300.5, 43201.0]), (5, 60, 720)).tolist()
    [0, 1, 3]
    """
    return np.searchsorted(MINUTE_S * np.asarray(horizons_min, np.float64), duration_s, side="left").astype(np.int64)


def _middles_s(horizons_min: Sequence[float]) -> Floats:
    """Geometric means of the bins' edges, (B,), for bins that no training job fell into."""
    inner_s = MINUTE_S * np.asarray(horizons_min, np.float64)
    edges_s = np.array([min(SHORTEST_S, inner_s[0]), *inner_s, LONGEST_FACTOR * inner_s[-1]])
    middles: Floats = np.sqrt(edges_s[:-1] * edges_s[1:])
    return middles
