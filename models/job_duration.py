"""JobDuration: which duration bin a submitted job will fall into. SIA, section 5.4.2."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.answer_checks import SUM_TOLERANCE
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.bad_answers import BadAnswerError, Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.features.durations import WIDTH, duration_columns, duration_rows
from jobcast.features.finished import DurationTracker
from jobcast.models.care import Care
from jobcast.models.duration_booster import (
    MODEL,
    RULES,
    UNDER_COST,
    Blend,
    DurationBooster,
    DurationSettings,
    Rule,
    best_blend,
    cheapest_bin,
    shares,
)
from jobcast.models.duration_data import DurationData, OutOfFold, out_of_fold, shares_of_bins
from jobcast.models.feature_spans import feature_spans
from jobcast.models.metadata import read_metadata, read_text, write_metadata
from jobcast.models.scores import likeliest_bin
from jobcast.traces.table import Trace

MINUTE_S = 60.0
PRIOR_WEIGHT = 8.0
"""Least log loss on Philly from 22 October to 5 November 2017, learnt on the three weeks before."""
FLOOR = 0.002
"""Share of a learnt forecast that is spread evenly over the bins: nothing is impossible."""
SHORTEST_S = 1.0
"""Lower edge of the first bin where its middle is sought."""
LONGEST_FACTOR = 4.0
"""Upper edge of the last bin, in lower edges, where its middle is sought."""
LEARNT = ("blended", "lightgbm")
ALGORITHMS = (*LEARNT, *RULES)
"""Names of the algorithms, the default first."""


class JobDuration:
    """Duration bins from finished jobs like the submitted one, and from what its pool has started.

    - `tag-pool-width`: majority of the last 50 finished jobs of the same tag where at least 3 have finished, else of
      the same pool and width, else of the same pool: the rule of SIA, section 5.4.2
    - `last-n`: the same without tags
    - `lightgbm`: class probabilities learnt from all columns of `features.durations.duration_columns`
    - `blended`: those, tempered and blended with the shares of the rule's jobs, as did best on later jobs

    No pool, user or tag is known by name: new ones are answered like any other.

    Parameters
    ----------
    horizons_min : inner edges of the bins in minutes
    algorithm : one of the above
    under_cost : what a bin too short costs `choose`, in bins too long, of each GPU of the job
    use_tags : whether the group of the same tag is read
    settings : of the booster; None takes the defaults
    seed : of the booster
    prior_weight : weight, in jobs, of the training data's class shares beside the shares of finished jobs

    Attributes
    ----------
    prior_ : (B,) share of the training jobs in each bin, B = horizons + 1
    bin_duration_s_ : (B,) geometric mean of the run times of each bin's training jobs, seconds; where there is
        none, that of the bin's edges
    blend_ : how booster and shares go together
    booster_ : the booster, None for a rule
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    rows_ : training jobs
    feature_spans_ : column -> least and largest value of the training rows; {} for a rule; see `feature_spans`
    """

    name: ClassVar[str] = "job-duration"

    def __init__(
        self,
        horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN,
        algorithm: str = ALGORITHMS[0],
        under_cost: float = UNDER_COST,
        use_tags: bool = True,
        settings: DurationSettings | None = None,
        seed: int = 0,
        prior_weight: float = PRIOR_WEIGHT,
    ):
        if algorithm not in ALGORITHMS:
            raise RegistryError(f"algorithm {algorithm!r} is not known; choose from {', '.join(ALGORITHMS)}")
        self.horizons_min = tuple(horizons_min)
        self.algorithm = algorithm
        self.under_cost = under_cost
        self.use_tags = use_tags
        self.settings = settings
        self.seed = seed
        self.prior_weight = prior_weight

    def fit(self, trace: Trace, until_s: float, from_s: float | None = None) -> Self:
        """Learn from the jobs submitted from one instant on that ended before another.

        Parameters
        ----------
        trace : jobs; may reach past `until_s`, and what ends then is not read
        until_s, from_s : seconds from the epoch; earlier jobs are history of the later ones

        Raises
        ------
        TrainingError
            No job ended before `until_s`.
        """
        return self.fit_data(DurationData.of(trace.between(None, until_s), self.horizons_min, from_s), until_s)

    def fit_data(self, data: DurationData, until_s: float, blend: Blend | None = None) -> Self:
        """As `fit`, from jobs whose rows are known; those that ended at or after `until_s` are not read.

        `blended` takes the blend if it is known already from forecasts out of fold.
        """
        known = data.ended(until_s)
        self.trained_from_s_ = float(known.submit_s[0])
        self.trained_until_s_ = float(until_s)
        self.rows_ = len(known)
        self.prior_ = shares_of_bins(known.bins, data.n_bins)
        self.bin_duration_s_ = _bin_durations_s(known)
        self.booster_, self.blend_ = None, Blend()
        self.feature_spans_ = feature_spans(self.columns, [known.rows]) if self.algorithm in LEARNT else {}
        if self.algorithm in LEARNT:
            self.booster_ = self.fitted_booster(known, until_s)
        if self.algorithm == "blended":
            self.blend_ = self.best_blend(self.out_of_fold(known, until_s)) if blend is None else blend
        return self

    def take(self, care: Care) -> None:
        """Choose bins by another cost from now on."""
        self.under_cost = care.under_cost

    def fitted_booster(self, known: DurationData, until_s: float) -> DurationBooster:
        """A booster with this estimator's settings, trained on jobs that have all ended."""
        booster = DurationBooster(known.n_bins, self.settings or DurationSettings(), self.seed, self.use_tags)
        return booster.fit(known.rows, known.bins, until_s - known.submit_s)

    def out_of_fold(self, data: DurationData, until_s: float) -> OutOfFold:
        """Later jobs as the parts of `blended` forecast them, having learnt from earlier ones: `booster`, `shares`."""
        return out_of_fold(data, until_s, {"booster": self.booster_forecast, "shares": self.rule_forecast})

    @staticmethod
    def best_blend(scored: OutOfFold) -> Blend:
        """The blend that does best on what `out_of_fold` gave."""
        return best_blend(scored.proba["booster"], scored.proba["shares"], scored.bins)

    def booster_forecast(self, known: DurationData, scored: DurationData, from_s: float) -> Floats:
        """Probabilities of later jobs by a booster that learns from earlier ones; a `Forecaster`."""
        return self.fitted_booster(known, from_s).predict_proba(scored.rows)

    def rule_forecast(self, known: DurationData, scored: DurationData, from_s: float) -> Floats:
        """Probabilities of later jobs by the rule; a `Forecaster`."""
        return shares(self.votes(scored.rows), shares_of_bins(known.bins, known.n_bins), self.prior_weight)

    @property
    def rule(self) -> Rule:
        """The rule by which finished jobs vote, for the learnt algorithms the paper's."""
        name = self.algorithm if self.algorithm in RULES else "tag-pool-width"
        return RULES[name if self.use_tags else "last-n"]

    def votes(self, rows: Floats) -> Floats:
        """Counts of the group that decides, (n_jobs, B): zeros where none of its jobs has finished."""
        return self.rule(rows, len(self.horizons_min) + 1)

    def predict_proba(self, rows: Floats) -> Floats:
        """Probabilities of the bins, (n_jobs, B), from rows (n_jobs, F)."""
        if self.booster_ is None:
            return shares(self.votes(rows), self.prior_, self.prior_weight)
        booster = self.booster_.predict_proba(rows)
        voted = shares(self.votes(rows), self.prior_, self.prior_weight) if self.blend_.weight else np.zeros(1)
        proba: Floats = (1.0 - FLOOR) * self.blend_(booster, voted) + FLOOR / booster.shape[1]
        return proba

    def predict(self, rows: Floats) -> Ints:
        """Index of the likeliest bin, (n_jobs,): the longer of equals. For a rule the bin with most votes."""
        if self.booster_ is not None:
            return likeliest_bin(_sound(self.predict_proba(rows)))
        votes = self.votes(rows)
        return likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, self.prior_))

    def choose(self, rows: Floats) -> Ints:
        """Index of the bin to tell a scheduler, (n_jobs,): the least expected cost; see `duration_costs`.

        A job that stays too long keeps all its GPUs from their owners, so that wide ones are told longer bins.
        """
        gpus = np.exp2(rows[:, self.columns.index(WIDTH)])
        return cheapest_bin(_sound(self.predict_proba(rows)), self.under_cost * gpus)

    def predict_duration_s(self, rows: Floats) -> Floats:
        """Run time in seconds that stands for the likeliest bin, (n_jobs,)."""
        durations: Floats = self.bin_duration_s_[self.predict(rows)]
        return durations

    def tracker(self) -> DurationTracker:
        """An empty tracker of finished jobs, which gives rows: the live way."""
        return DurationTracker(self.horizons_min)

    def rows(self, trace: Trace, wanted: NDArray[np.bool_] | None = None) -> Floats:
        """Rows of the jobs of a trace at their submission, (n_wanted, F): the batch way."""
        return duration_rows(trace, self.horizons_min, wanted)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of rows, (F,)."""
        return duration_columns(self.horizons_min)

    @property
    def feature_importances(self) -> dict[str, float]:
        """Gain by column, of a learnt algorithm; empty for a rule."""
        return {} if self.booster_ is None else self.booster_.gain(self.horizons_min)

    def save(self, folder: Path) -> None:
        """Write `metadata.json`, and the booster as LightGBM's text."""
        told = {
            "horizons_min": list(self.horizons_min),
            "bins": bin_labels(self.horizons_min),
            "algorithm": self.algorithm,
            "under_cost": self.under_cost,
            "use_tags": self.use_tags,
            "settings": None if self.settings is None else asdict(self.settings),
            "seed": self.seed,
            "prior_weight": self.prior_weight,
            "blend": asdict(self.blend_),
            "prior": self.prior_.tolist(),
            "bin_duration_s": self.bin_duration_s_.tolist(),
            "trained_from_s": self.trained_from_s_,
            "trained_until_s": self.trained_until_s_,
            "rows": self.rows_,
            "feature_spans": self.feature_spans_,
        }
        write_metadata(folder, self.name, told)
        if self.booster_ is not None:
            (folder / MODEL).write_text(self.booster_.to_text(), encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder does not hold such a model."""
        told = read_metadata(folder, cls.name)
        if "algorithm" not in told:
            raise RegistryError(f"{folder}: a job-duration model of an older version of jobcast; train it again")
        settings = None if told["settings"] is None else DurationSettings(**told["settings"])
        how = (told["under_cost"], told["use_tags"], settings, told["seed"], told["prior_weight"])
        model = cls(told["horizons_min"], told["algorithm"], *how)
        model.prior_, model.bin_duration_s_ = np.array(told["prior"]), np.array(told["bin_duration_s"])
        model.trained_from_s_, model.trained_until_s_ = told["trained_from_s"], told["trained_until_s"]
        model.rows_, model.blend_, model.booster_ = told["rows"], Blend(**told["blend"]), None
        model.feature_spans_ = told.get("feature_spans", {})  # versions of before have none
        if model.algorithm in LEARNT:
            text = read_text(folder / MODEL)
            model.booster_ = DurationBooster.from_text(text, len(model.horizons_min) + 1, model.use_tags)
        return model


def _sound(proba: Floats) -> Floats:
    """Probabilities of bins, (n_jobs, B). Raises BadAnswerError where they are none: no bin follows from them."""
    if not np.isfinite(proba).all():
        raise BadAnswerError(Reason.NOT_FINITE, "probabilities of duration bins")
    if (proba < 0.0).any() or (np.abs(proba.sum(axis=1) - 1.0) > SUM_TOLERANCE).any():
        raise BadAnswerError(Reason.INCONSISTENT, "probabilities of duration bins")
    return proba


def _bin_durations_s(known: DurationData) -> Floats:
    counts = np.bincount(known.bins, minlength=known.n_bins)
    logs = np.bincount(known.bins, weights=np.log(known.duration_s), minlength=known.n_bins)
    means = np.exp(logs / np.maximum(counts, 1))
    return np.where(counts > 0, means, _middles_s(known.horizons_min))


def _middles_s(horizons_min: Sequence[float]) -> Floats:
    """Geometric means of the bins' edges, (B,), for bins that no training job fell into."""
    inner_s = MINUTE_S * np.asarray(horizons_min, np.float64)
    edges_s = np.array([min(SHORTEST_S, inner_s[0]), *inner_s, LONGEST_FACTOR * inner_s[-1]])
    middles: Floats = np.sqrt(edges_s[:-1] * edges_s[1:])
    return middles
