"""JobDuration: which duration bin a submitted job will fall into. SIA, section 5.4.2."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.bad_answers import BadAnswerError, Reason
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import RegistryError
from jobcast.domain.forecasts import Question
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.domain.jobs import Job
from jobcast.features.durations import (
    WIDTH,
    burst_key,
    burst_numbers,
    column_number,
    duration_columns,
    duration_rows,
)
from jobcast.features.finished import DurationTracker
from jobcast.features.queueing import in_queues
from jobcast.models.calibration_rates import FORECASTS
from jobcast.models.care import Care
from jobcast.models.duration_booster import (
    DURATION_RULES,
    LENDERS_GPUS,
    MODEL,
    QUEUE_MODEL,
    RULES,
    UNDER_COST,
    DurationBooster,
    DurationSettings,
    Votes,
    cheapest_bin,
    last_n,
    overstays_h,
    shares,
)
from jobcast.models.duration_calibration import Calibration, calibrated_proba
from jobcast.models.duration_data import DurationData, bins_of, last_bin_told_s, out_of_fold, shares_of_bins
from jobcast.models.feature_spans import feature_spans
from jobcast.models.metadata import kept, read_metadata, read_text, take_up, write_metadata
from jobcast.models.scores import likeliest_bin
from jobcast.traces.table import Trace

PRIOR_WEIGHT = 8.0
"""Least log loss on Philly from 22 October to 5 November 2017, learnt on the three weeks before."""
FLOOR = 0.002
"""Share of a learnt forecast that is spread evenly over the bins: nothing is impossible."""
SHORTEST_S = 1.0
"""Lower edge of the first bin where its middle is sought."""
LONGEST_FACTOR = 4.0
"""Upper edge of the last bin, in lower edges, where its middle is sought."""
DIGITS = 12
"""Of probabilities that are mixed: the last bits of a booster's may depend on how many rows it is asked about."""
BLENDED = "blended"
LEARNT = (BLENDED, "lightgbm")
ALGORITHMS = (*LEARNT, *RULES)
"""Names of the algorithms, the default first."""
# What was fitted and is kept in `metadata.json` beside the parameters and the calibration.
KEPT = ("pools_", "trained_from_s_", "trained_until_s_", "rows_")
KEPT_ARRAYS = ("prior_", "bin_duration_s_", "overstay_h_")


class JobDuration:
    """Duration bins from finished jobs like the submitted one, and from what its pool has started.

    - `tag-pool-width`: majority of the last 50 finished jobs of the same tag where at least 3 have finished, else of
      the same pool and width, else of the same pool: the rule of SIA, section 5.4.2
    - `last-n`: the same without tags
    - `lightgbm`: class probabilities learnt from all columns of `features.durations.duration_columns`
    - `blended`: those and the rules that count finished jobs, mixed, tempered and shifted by what jobs have turned out
      to be, also after the training; see `duration_calibration`

    No pool, user or tag is known by name: new ones are answered like any other.

    Parameters
    ----------
    horizons_min : inner edges of the bins in minutes
    algorithm : one of the above
    under_cost : what an hour of overstaying costs `choose` on as many GPUs as all lenders have, in bins too long; 0:
        the likeliest bin is told
    use_tags : whether the group of the same tag is read
    settings : of the booster; None takes the defaults
    seed : of the booster
    prior_weight : weight, in jobs, of the training data's class shares beside the shares of finished jobs

    Attributes
    ----------
    prior_ : (B,) share of the training jobs in each bin, B = horizons + 1
    bin_duration_s_ : (B,) geometric mean of the run times of each bin's training jobs, seconds; where there is
        none, that of the bin's edges
    overstay_h_ : (B, B) see `duration_booster.overstays_h`, of the training jobs
    calibration_ : of `blended`, as the training time ended
    pools_ : names of the pools that the training jobs were submitted to, ascending
    booster_ : the booster, None for a rule
    queue_booster_ : learnt from what queues would have shown, where the trace shows none; else None; see
        `features.queueing`
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    rows_ : training jobs
    lag_s_ : seconds within which their trace told ends; see `DurationData`
    feature_spans_ : column -> least and largest value of the training rows; {} for a rule; see `feature_spans`
    """

    name: ClassVar[str] = "job-duration"
    answers: ClassVar[Question] = Question.DURATIONS
    algorithms: ClassVar[Sequence[str]] = ALGORITHMS

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
        if algorithm not in self.algorithms:
            raise RegistryError(f"algorithm {algorithm!r} is not known; choose from {', '.join(self.algorithms)}")
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
        known = trace.between(None, until_s).ends_known(until_s)
        return self.fit_data(DurationData.of(known, self.horizons_min, from_s), until_s)

    def fit_data(self, data: DurationData, until_s: float, calibration: Calibration | None = None) -> Self:
        """As `fit`, from jobs whose rows are known; what was not known before `until_s` is not read.

        `blended` takes the calibration if it is known already from forecasts out of fold.
        """
        known = data.known(until_s)
        # The first job that taught anything, not the window that was asked for.
        self.trained_from_s_ = float(known.submit_s[0])
        self.trained_until_s_ = float(until_s)
        self.rows_, self.lag_s_ = len(known), known.lag_s
        self.pools_ = tuple(map(str, np.unique(known.pool)))
        self.prior_ = shares_of_bins(known.bins, data.n_bins)
        self.bin_duration_s_ = _bin_durations_s(known, until_s)
        lasted_s = np.where(known.end_s < until_s, known.duration_s, until_s - known.start_s)  # so far
        self.overstay_h_ = overstays_h(lasted_s, known.bins, self.horizons_min)
        self.booster_ = self.queue_booster_ = None
        # Also of the other algorithms, so that every file has the same keys.
        self.calibration_ = Calibration.untaught(data.n_bins)
        self.feature_spans_ = {}
        if self.algorithm in LEARNT:
            self.booster_ = self.fitted_booster(known, until_s)
            seen = known
            # The trace shows no waiting: a second booster learns what queues would have shown.
            if known.queues is not None:
                # With and without queues, so that the spans of features cover both.
                seen = known.seen_twice()
                self.queue_booster_ = self.fitted_booster(seen, until_s)
            self.feature_spans_ = feature_spans(duration_columns(self.horizons_min), [seen.rows])
        if self.algorithm == BLENDED:
            self.calibration_ = self._calibration(known, until_s) if calibration is None else calibration
        return self

    def _calibration(self, known: DurationData, until_s: float) -> Calibration:
        """Learnt from later jobs as the parts of `blended` forecast them, having learnt from earlier ones."""
        calibration = Calibration.untaught(known.n_bins)
        result = out_of_fold(known, until_s, {"parts": self.parts_forecast})
        if len(result.bins):
            calibration.taught(result.proba["parts"], known.among(result.job), until_s)
        return calibration

    def take(self, care: Care) -> None:
        """Choose bins by another cost from now on."""
        self.under_cost = care.under_cost

    def fitted_booster(self, known: DurationData, until_s: float) -> DurationBooster:
        """A booster with this estimator's settings, trained on jobs that have all ended."""
        booster = DurationBooster(known.n_bins, self.settings or DurationSettings(), self.seed, self.use_tags)
        return booster.fit(known.rows, known.bins, until_s - known.submit_s, known.burst)

    def booster_forecast(self, known: DurationData, scored: DurationData, from_s: float) -> Floats:
        """Probabilities of later jobs by a booster that learns from earlier ones; a `Forecaster`."""
        return self.fitted_booster(known, from_s).predict_proba(scored.rows)

    def parts_forecast(self, known: DurationData, scored: DurationData, from_s: float) -> Floats:
        """What `blended` mixes, (n_scored, K, B), of later jobs, learnt from earlier ones; a `Forecaster`."""
        booster = self.booster_forecast(known, scored, from_s)
        return self.parts(scored.rows, booster, shares_of_bins(known.bins, known.n_bins))

    def parts(self, rows: Floats, booster: Floats, prior: Floats) -> Floats:
        """What `blended` mixes, (n_jobs, K, B), in the order of `FORECASTS`."""
        # Without tags the paper's rule falls back on pool and width, see `rule`.
        rules = DURATION_RULES if self.use_tags else {**DURATION_RULES, "tag_pool_width": last_n}
        parts = np.empty((len(rows), len(FORECASTS), booster.shape[1]))
        parts[:, 0] = booster
        for number, name in enumerate(FORECASTS[1:], 1):
            parts[:, number] = shares(rules[name](rows, self.horizons_min), prior, self.prior_weight)
        # Rounded, so that one row asked alone and among many teaches the calibration the same.
        return parts.round(DIGITS)

    def rule_forecast(self, known: DurationData, scored: DurationData, from_s: float) -> Floats:
        """Probabilities of later jobs by the rule; a `Forecaster`."""
        return shares(self.votes(scored.rows), shares_of_bins(known.bins, known.n_bins), self.prior_weight)

    @property
    def rule(self) -> Votes:
        """The rule by which finished jobs vote, for the learnt algorithms the paper's."""
        name = self.algorithm if self.algorithm in RULES else "tag-pool-width"
        return RULES[name if self.use_tags else "last-n"]

    def votes(self, rows: Floats) -> Floats:
        """Counts of the group that decides, (n_jobs, B): zeros where none of its jobs has finished."""
        return self.rule(rows, self.horizons_min)

    def predict_proba(self, rows: Floats) -> Floats:
        """Probabilities of the bins, (n_jobs, B), from rows (n_jobs, F)."""
        if self.booster_ is None:
            return shares(self.votes(rows), self.prior_, self.prior_weight)
        if self.algorithm == BLENDED:
            proba = calibrated_proba(self.mixed_parts(rows), rows[:, self._plain :])
        else:
            proba = self._boosted(rows[:, : self._plain])
        return np.asarray((1.0 - FLOOR) * proba + FLOOR / proba.shape[1])

    @property
    def _plain(self) -> int:
        """Columns of rows that are not of the calibration."""
        return len(duration_columns(self.horizons_min))

    def mixed_parts(self, rows: Floats) -> Floats:
        """What `blended` mixes, (n_jobs, K, B), as learnt; rows may lack the columns of the calibration."""
        plain = rows[:, : self._plain]
        return self.parts(plain, self._boosted(plain), self.prior_)

    def _boosted(self, plain: Floats) -> Floats:
        """Probabilities by the booster, (n_jobs, B), in queues by the one that has learnt what they show."""
        assert self.booster_ is not None
        if self.queue_booster_ is None:
            return self.booster_.predict_proba(plain)
        waited = in_queues(plain, self.horizons_min)
        # Of one row, as schedulers ask, there is one booster to ask.
        if waited.all():
            return self.queue_booster_.predict_proba(plain)
        proba = self.booster_.predict_proba(plain)
        # Asked for its rows alone: most rows did not wait, and trees cost by the row.
        if waited.any():
            proba[waited] = self.queue_booster_.predict_proba(plain[waited])
        return proba

    def predict(self, rows: Floats) -> Ints:
        """Index of the likeliest bin, (n_jobs,): the longer of equals. For a rule the bin with most votes."""
        if self.booster_ is not None:
            return likeliest_bin(_sound(self.predict_proba(rows)))
        # Not from probabilities: the prior mixed into those may turn a majority of one vote.
        votes = self.votes(rows)
        return likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, self.prior_))

    def choose(self, rows: Floats, lenders_gpus: ArrayLike = LENDERS_GPUS) -> Ints:
        """Index of the bin to tell a scheduler, (n_jobs,): the least expected cost; see `cheapest_bin`.

        An hour that a job stays too long costs by the share of the lenders' GPUs that it keeps from them.

        Parameters
        ----------
        rows : (n_jobs, F)
        lenders_gpus : quotas of the pools that a job could borrow from, summed up: of all jobs, or (n_jobs,) of each
        """
        # Nothing costs anything: the least cost would always be the shortest bin.
        if self.under_cost == 0.0:
            return self.predict(rows)
        gpus = np.exp2(rows[:, column_number(WIDTH, self.horizons_min)])
        cost = self.under_cost * gpus / np.asarray(lenders_gpus, np.float64)
        return cheapest_bin(_sound(self.predict_proba(rows)), self.overstay_h_, cost)

    def predict_duration_s(self, rows: Floats) -> Floats:
        """Run time in seconds that stands for the likeliest bin, (n_jobs,)."""
        return self.bin_duration_s_[self.predict(rows)]

    def tracker(self) -> DurationTracker:
        """An empty tracker of started and finished jobs, which gives rows: the live way."""
        return CalibratedTracker(self) if self.algorithm == BLENDED else DurationTracker(self.horizons_min)

    def rows(self, trace: Trace, wanted: NDArray[np.bool_] | None = None) -> Floats:
        """Rows of the jobs of a trace at their submission, (n_wanted, F): the batch way.

        Those of `blended` end with what the calibration has learnt by then from the jobs that `teaches` names.
        """
        if self.algorithm != BLENDED:
            return duration_rows(trace, self.horizons_min, wanted)
        wanted = np.ones(len(trace), np.bool_) if wanted is None else wanted
        submit_s, start_s = trace.submit_s, trace.start_s
        settled_s = last_bin_told_s(start_s, self.horizons_min, self.lag_s_)
        # Jobs that settle later teach nobody who is asked about.
        last_s = submit_s[wanted].max() if wanted.any() else -np.inf
        teaches = self.teaches(trace.jobs["pool"].to_numpy(), settled_s) & (settled_s <= last_s)
        # Rows of those that teach are needed as well, to know what had been forecast of them.
        read = wanted | teaches
        rows = duration_rows(trace, self.horizons_min, read)
        teaches, submit_s, settled_s = teaches[read], submit_s[read], settled_s[read]
        parts = np.zeros((len(rows), len(FORECASTS), len(self.prior_)))
        parts[teaches] = self.mixed_parts(rows[teaches])
        lessons = np.flatnonzero(teaches)
        lessons = lessons[np.argsort(start_s[read][lessons], kind="stable")]
        # A job that ends in the instant it is submitted counts as ending after it.
        ended = np.maximum(trace.known_s[read], np.nextafter(submit_s, np.inf)) <= settled_s
        bins = np.where(ended, bins_of(trace.duration_s[read], self.horizons_min), len(self.horizons_min))
        pool, burst = trace.jobs["pool"].to_numpy()[read], burst_numbers(trace)[read]
        # A copy: asking about a trace must not teach the model.
        known = self.calibration_.copy().replayed(parts, submit_s, lessons, settled_s, bins, burst, pool)
        return np.hstack([rows, known])[wanted[read]]

    def teaches(self, pool: ArrayLike, settled_s: ArrayLike) -> NDArray[np.bool_]:
        """Whether jobs teach the calibration after the training, (n_jobs,): those that the training could not hear.

        Parameters
        ----------
        pool, settled_s : (n_jobs,) names, and when they reached the last bin's age
        """
        unseen = np.isin(np.asarray(pool, np.str_), self.pools_, invert=True)
        # What settled before the end of the training has taught already, in the folds.
        later: NDArray[np.bool_] = np.asarray(settled_s) >= self.trained_until_s_
        return later | unseen

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of rows, (F,)."""
        plain = duration_columns(self.horizons_min)
        return (*plain, *calibration_columns(self.horizons_min)) if self.algorithm == BLENDED else plain

    @property
    def feature_importances(self) -> dict[str, float]:
        """Gain by column, of a learnt algorithm; empty for a rule."""
        return {} if self.booster_ is None else self.booster_.gain(self.horizons_min)

    def save(self, folder: Path) -> None:
        """Write `metadata.json`, and the booster as LightGBM's text."""
        result = {
            "horizons_min": list(self.horizons_min),
            "bins": bin_labels(self.horizons_min),
            "algorithm": self.algorithm,
            "under_cost": self.under_cost,
            "use_tags": self.use_tags,
            "settings": None if self.settings is None else asdict(self.settings),
            "seed": self.seed if self.algorithm in LEARNT else 0,  # rules draw nothing
            "prior_weight": self.prior_weight,
            "calibration": self.calibration_.state.tolist(),
            "shifts": {pool: shifts.tolist() for pool, shifts in sorted(self.calibration_.shifts.items())},
            "feature_spans": self.feature_spans_,
            "learnt_in_queues": self.queue_booster_ is not None,
            **kept(self, (*KEPT, *KEPT_ARRAYS)),
            # Where ends are told at once a version is what it was before there was such a key.
            **({"lag_s": self.lag_s_} if self.lag_s_ else {}),
        }
        write_metadata(folder, self.name, result)
        for file, booster in ((MODEL, self.booster_), (QUEUE_MODEL, self.queue_booster_)):
            if booster is not None:
                (folder / file).write_text(booster.to_text(), encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder does not hold such a model."""
        saved = read_metadata(folder, cls.name)
        # Later keys have defaults; without these two no answer could be given.
        if not {"calibration", "overstay_h"} <= set(saved):
            raise RegistryError(f"{folder}: a job-duration model of an older version of jobcast; train it again")
        settings = None if saved["settings"] is None else DurationSettings(**saved["settings"])
        how = (saved["under_cost"], saved["use_tags"], settings, saved["seed"], saved["prior_weight"])
        model = cls(saved["horizons_min"], saved["algorithm"], *how)
        take_up(model, saved, KEPT, KEPT_ARRAYS)
        model.booster_ = model.queue_booster_ = None
        shifts = {pool: np.array(values) for pool, values in saved["shifts"].items()}
        model.calibration_ = Calibration(np.array(saved["calibration"]), shifts)
        model.feature_spans_ = saved.get("feature_spans", {})  # versions of before have none
        model.lag_s_ = saved.get("lag_s", 0.0)
        if model.algorithm in LEARNT:
            model.booster_ = model._read_booster(folder / MODEL)
        if saved.get("learnt_in_queues", (folder / QUEUE_MODEL).is_file()):  # some versions of before do not say so
            model.queue_booster_ = model._read_booster(folder / QUEUE_MODEL)
        return model

    def _read_booster(self, file: Path) -> DurationBooster:
        return DurationBooster.from_text(read_text(file), len(self.horizons_min) + 1, self.use_tags)


def _sound(proba: Floats) -> Floats:
    """Probabilities of bins, (n_jobs, B). Raises BadAnswerError where they are none: no bin follows from them."""
    if not np.isfinite(proba).all():
        raise BadAnswerError(Reason.NOT_FINITE, "probabilities of duration bins")
    if (proba < 0.0).any() or (np.abs(proba.sum(axis=1) - 1.0) > tolerance.PROBABILITIES).any():
        raise BadAnswerError(Reason.INCONSISTENT, "probabilities of duration bins")
    return proba


class CalibratedTracker(DurationTracker):
    """As `DurationTracker`, whose rows end with what the calibration of a model has learnt: ask in order of submission.

    Parameters
    ----------
    model : a `blended` one
    """

    def __init__(self, model: JobDuration) -> None:
        super().__init__(model.horizons_min)
        self._model = model
        self._calibration = model.calibration_.copy()
        # Looked up for each job that teaches.
        self._seen = frozenset(model.pools_)
        self._taught = 0  # of the jobs that have started
        self._bursts: dict[object, int] = {}

    def row(self, job: Job) -> Floats:
        """The job's row, (F,) float64."""
        # First what is known by now, then the row that is answered with it.
        self._learn(job.submit_s)
        return np.concatenate([super().row(job), self._calibration.known(job.pool)])

    def rows(self, jobs: Sequence[Job]) -> Floats:
        """Rows of several jobs, (n_jobs, F)."""
        return np.array([self.row(job) for job in jobs]).reshape(len(jobs), len(self._model.columns))

    def _learn(self, now_s: float) -> None:
        due: list[tuple[Job, int]] = []
        while self._taught < len(self.started):
            known_s, which = self.settled(self._taught, self._model.lag_s_)
            # Jobs settle in the order of their starts, so all later ones are not settled either.
            if known_s > now_s:
                break
            job = self.started[self._taught]
            if known_s >= self._model.trained_until_s_ or job.pool not in self._seen:
                due.append((job, which))
            self._taught += 1
        if not due:
            return
        # All due jobs in one call: trees cost little more for many rows.
        result = self._model.mixed_parts(np.array([DurationTracker.row(self, job) for job, _ in due]))
        for (job, which), parts in zip(due, result, strict=True):
            asks = job.requirements
            who = job.user or (asks.account if asks else "")
            key = burst_key(job.pool, job.gpus, who, job.submit_s)
            number = self._bursts[key] = self._bursts.get(key, 0) + 1
            self._calibration.learn(parts, which, 1.0 / math.sqrt(number), job.pool)


def calibration_columns(horizons_min: Sequence[float]) -> tuple[str, ...]:
    """Names of what the calibration adds to rows: weights of the forecasts, power, shifts of the bins in log odds."""
    weights = (f"weight {name}" for name in FORECASTS)
    return (*weights, "power", *(f"shift {label}" for label in bin_labels(horizons_min)))


def _bin_durations_s(known: DurationData, until_s: float) -> Floats:
    # Jobs that still run have a bin, but no run time yet.
    known = known.among(known.end_s < until_s)
    counts = np.bincount(known.bins, minlength=known.n_bins)
    logs = np.bincount(known.bins, weights=np.log(known.duration_s), minlength=known.n_bins)
    means = np.exp(logs / np.maximum(counts, 1))
    return np.where(counts > 0, means, _middles_s(known.horizons_min))


def _middles_s(horizons_min: Sequence[float]) -> Floats:
    """Geometric means of the bins' edges, (B,), for bins that no training job fell into."""
    inner_s = MINUTE_S * np.asarray(horizons_min, np.float64)
    # The first bin begins at 0 and the last ends nowhere: both need an edge to have a middle.
    edges_s = np.array([min(SHORTEST_S, inner_s[0]), *inner_s, LONGEST_FACTOR * inner_s[-1]])
    return np.asarray(np.sqrt(edges_s[:-1] * edges_s[1:]))
