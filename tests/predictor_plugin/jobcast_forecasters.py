"""A predictor of each question of pools and jobs: the package brings what learns, jobcast the rows and the rest."""

import json

import numpy as np

from jobcast.features.arrivals import feature_names
from jobcast.models.learners import LearnedArrivals, LearnedDurations, LearnedLoads

WIDTHS = 8


class Kept:
    """Attributes that are lists of numbers, as bytes."""

    def to_bytes(self):
        """JSON, the same for the same numbers."""
        return json.dumps(vars(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, told):
        """Read it."""
        one = cls()
        vars(one).update(json.loads(told))
        return one


class Recency(Kept):
    """How often jobs came, by how long ago the last one had."""

    column = feature_names().index("log_since_arrival_s")

    def fit(self, X, y):
        """Shares in ten groups of equal size, with one hit and one miss more."""
        since = np.nan_to_num(X[:, self.column], nan=99.0)
        self.edges = np.quantile(since, np.linspace(0.1, 0.9, 9)).tolist()
        group = np.searchsorted(self.edges, since)
        hits, rows = np.bincount(group, weights=y, minlength=10), np.bincount(group, minlength=10)
        self.shares = ((hits + 1.0) / (rows + 2.0)).tolist()
        return self

    def predict_proba(self, X):
        """The group's share."""
        since = np.nan_to_num(X[:, self.column], nan=99.0)
        return np.array(self.shares)[np.searchsorted(self.edges, since)]


class RecentArrivals(LearnedArrivals):
    """Will jobs arrive?"""

    name = "recent-arrivals"
    learner = Recency


class Quantiles(Kept):
    """What came in all windows of the past."""

    def fit(self, X, y):
        """At each percent."""
        self.percents = np.quantile(y, np.linspace(0.0, 1.0, 101)).tolist()
        return self

    def predict_quantiles(self, X, levels):
        """The same for every window."""
        gpus = np.interp(levels, np.linspace(0.0, 1.0, 101), self.percents)
        return np.tile(gpus, (len(X), 1))


class PastLoads(LearnedLoads):
    """How many GPUs will they ask for?"""

    name = "past-loads"
    learner = Quantiles


class Widths(Kept):
    """Shares of the duration bins, by the job's width, which is the last column."""

    def fit(self, X, y, bins):
        """Counts by width, and one more of every bin."""
        counts = np.ones((WIDTHS, bins))
        np.add.at(counts, (self.width(X), y), 1.0)
        self.shares = (counts / counts.sum(axis=1, keepdims=True)).tolist()
        return self

    def predict_proba(self, X):
        """The width's shares."""
        return np.array(self.shares)[self.width(X)]

    @staticmethod
    def width(X):
        """Of 1, 2, 4, ... GPUs: 0, 1, 2, ..."""
        return np.clip(X[:, -1].round(), 0, WIDTHS - 1).astype(int)


class WidthDurations(LearnedDurations):
    """How long will a job run?"""

    name = "width-durations"
    learner = Widths
