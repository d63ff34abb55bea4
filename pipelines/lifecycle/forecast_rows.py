"""Forecasts beside what came, row by row: sliced by week, pool and day, and joined where versions take turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.clock import HOUR_S, MINUTE_S
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import SCORED, STEP_S, active_grid, build_corpus
from jobcast.features.durations import edges_s
from jobcast.features.targets import load_within
from jobcast.models import scores
from jobcast.models.duration_data import bins_of, last_bin_told_s
from jobcast.models.evaluation.intervals import DayDraws
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.scores import Figure
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.traces.history import histories_of
from jobcast.traces.table import Trace

PINBALL_QUANTILE = 0.95
"""Quantile that load estimates of all versions are held to where one figure must tell them apart."""
CERTAIN = 1e-6
"""Probabilities nearer to 0 or 1 count as that near, for one row must not outweigh all others."""
Parts = dict[str, tuple[Floats, Floats]]
ALL_JOBS = "jobs"
"""Name of the one block of a predictor without horizons."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What every predictor's rows hold, all arrays of shape (n_rows,) or (n_rows, ...).

    Attributes
    ----------
    time_s : when the forecast was made, seconds from the epoch
    known_s : when its truth was known: the end of the window, or of the job
    pool : names
    """

    MAIN: ClassVar[str]
    """The figure that versions are compared by."""
    MAIN_IS_LOSS: ClassVar[bool] = True
    """Whether less of it is better."""
    time_s: Floats
    known_s: Floats
    pool: NDArray[Any]

    def __len__(self) -> int:
        return len(self.time_s)

    def of(self, mask: NDArray[Any]) -> Self:
        """The rows of a mask (n_rows,)."""
        return replace(self, **{one.name: getattr(self, one.name)[mask] for one in fields(self)})

    def between(self, from_s: float, until_s: float) -> Self:
        """Rows whose forecast was made in [from_s, until_s)."""
        return self.of((self.time_s >= from_s) & (self.time_s < until_s))

    def as_of(self, known_s: float) -> Self:
        """The rows with what an instant tells of those whose truth was not known by then; most say nothing."""
        return self

    def known_by(self, known_s: float) -> Self:
        """Rows whose truth was known at an instant, or decided by then."""
        rows = self.as_of(known_s)
        return rows.of(rows.known_s <= known_s)

    def decided(self, figure: str, known_s: float) -> Bools:
        """(n_rows,) of which rows an instant has decided a figure, whatever their truth is."""
        return np.zeros(len(self), dtype=np.bool_)

    def decided_beside(self, other: Self, known_s: float) -> Bools:
        """(n_rows,) which rows an instant decides of two versions, both as of then."""
        return (self.known_s <= known_s) & (other.known_s <= known_s)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Rows of several stretches of time, one after the other."""
        # By fields, so that a kind of rows adds columns and nothing else.
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    def figures(self) -> dict[str, Figure]:
        """Figures of all rows; None where undefined."""
        raise NotImplementedError

    def parts(self) -> "Parts":
        """Figures that are ratios of sums over rows, by name: what is summed above and below, (n_rows,) each.

        The main one is among them, or `main_draws` is another.
        """
        return {}

    @property
    def owner(self) -> NDArray[Any] | None:
        """(n_rows,) whose rows hang together beyond a day; None where days are all."""
        return None

    def expected(self) -> dict[str, Figure]:
        """Figures that the forecasts expect of themselves before any truth is known; {} where they tell no chances."""
        return {}

    def cost(self) -> dict[str, float]:
        """What the mistakes cost whoever decides by the forecasts, by what is lost; {} where that is not told."""
        return {}

    def main_draws(self, days: DayDraws) -> Floats:
        """The main figure in each draw of days, shape (draws,)."""
        return days.ratio(*self.parts()[self.MAIN])


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalRows(Rows):
    """Windows of one horizon: whether jobs came, the probability, and what both thresholds made of it."""

    MAIN: ClassVar[str] = "pr_auc"
    MAIN_IS_LOSS: ClassVar[bool] = False
    arrives: Bools
    probability: Floats
    declared: Bools
    passed: Bools

    def figures(self) -> dict[str, Figure]:
        """See `scores`; `bias` is the mean forecast less the base rate."""
        base, forecast = scores.mean(self.arrives), scores.mean(self.probability)
        found = scores.detection(self.arrives, self.declared)
        return {
            "n": len(self),
            "base_rate": base,
            "pr_auc": scores.pr_auc(self.arrives, self.probability),
            **{name: found[name] for name in ("precision", "recall", "f1")},
            "accuracy": scores.mean(self.arrives == self.declared),
            "ece": scores.ece(self.arrives, self.probability),
            "bias": None if base is None or forecast is None else forecast - base,
            "surprise": scores.mean((self.probability - self.arrives) * self._logit()),
            **scores.gate(self.arrives, self.passed),
        }

    def parts(self) -> "Parts":
        """`bias`, `surprise` (Spiegelhalter's test, Statistics in Medicine 5, 1986), and the gate's misses."""
        all_rows: Floats = np.ones(len(self))
        return {
            "bias": (self.probability - self.arrives, all_rows),
            "surprise": ((self.probability - self.arrives) * self._logit(), all_rows),
            "miss_rate": ((self.arrives & ~self.passed).astype(np.float64), self.arrives.astype(np.float64)),
        }

    def expected(self) -> dict[str, Figure]:
        """Counts of a confusion matrix as their probabilities add up: CBPE, Kivimaki et al., arXiv:2505.05295."""
        p, said = self.probability, self.declared
        hit, told, came = float(p[said].sum()), float(said.sum()), float(p.sum())
        right = float(np.where(said, p, 1.0 - p).sum())
        return {
            "precision": hit / told if told else None,
            "recall": hit / came if came else None,
            "f1": 2.0 * hit / (told + came) if told + came else None,
            "accuracy": right / len(self) if len(self) else None,
            "miss_rate": float(p[~self.passed].sum()) / came if came else None,
        }

    def cost(self) -> dict[str, float]:
        """Hours of pools, lent when their owners came and held for nobody; a row stands for a step of the grid."""
        step_h = STEP_S / HOUR_S
        missed, held = self.arrives & ~self.passed, ~self.arrives & self.passed
        return {"pool_hours_lent_wrongly": step_h * missed.sum(), "pool_hours_held_in_vain": step_h * held.sum()}

    def _logit(self) -> Floats:
        """Of the probabilities, where they are certain of what a row in a million would contradict."""
        p = np.clip(self.probability, CERTAIN, 1.0 - CERTAIN)
        logit: Floats = np.log(p / (1.0 - p))
        return logit

    def main_draws(self, days: DayDraws) -> Floats:
        """PR-AUC."""
        return days.pr_auc(self.arrives, self.probability)


@dataclass(frozen=True, slots=True, eq=False)
class LoadRows(Rows):
    """Windows of one horizon: GPUs that came and GPUs that were estimated."""

    MAIN: ClassVar[str] = "pinball"
    load_gpus: Floats
    estimate_gpus: Floats

    def figures(self) -> dict[str, Figure]:
        """See `scores.coverage`; `pinball` is the loss at the 0.95 quantile over the load that came."""
        # Over the load that came, so that busy and idle weeks can be compared.
        total = float(self.load_gpus.sum())
        return {
            "n": len(self),
            **scores.coverage(self.load_gpus, self.estimate_gpus),
            "pinball": float(self._pinball().sum()) / total if total else None,
            "mean_load": scores.mean(self.load_gpus),
        }

    def parts(self) -> "Parts":
        """`coverage`; `pinball`, over the load that came."""
        held = (self.load_gpus <= self.estimate_gpus).astype(np.float64)
        return {"coverage": (held, np.ones(len(self))), "pinball": (self._pinball(), self.load_gpus)}

    def cost(self) -> dict[str, float]:
        """GPU-hours that came above what was reserved, and that were reserved for nobody."""
        short = (self.load_gpus - self.estimate_gpus) * STEP_S / HOUR_S
        return {
            "gpu_hours_lent_wrongly": float(np.maximum(short, 0.0).sum()),
            "gpu_hours_held_in_vain": float(np.maximum(-short, 0.0).sum()),
        }

    def _pinball(self) -> Floats:
        short = self.load_gpus - self.estimate_gpus
        # The larger of the two is the one whose sign fits.
        loss: Floats = np.maximum(PINBALL_QUANTILE * short, (PINBALL_QUANTILE - 1.0) * short)
        return loss


@dataclass(frozen=True, slots=True, eq=False)
class DurationRows(Rows):
    """Jobs by their bins.

    Attributes
    ----------
    truth, forecast, chosen : the true bin, the likeliest one, the one that schedulers are told
    probability : (n_rows, B)
    least : the shortest bin that a job which still runs may fall into; 0 of those that were over
    beyond_gpu_h, before_gpu_h : GPU-hours that a job ran on after the bin that was told, or ended before it began
    user : names; of jobs whose user is not told their pool
    """

    MAIN: ClassVar[str] = "log_loss"
    truth: NDArray[np.int64]
    forecast: NDArray[np.int64]
    chosen: NDArray[np.int64]
    probability: Floats
    least: NDArray[np.int64]
    beyond_gpu_h: Floats
    before_gpu_h: Floats
    user: NDArray[Any]

    @property
    def owner(self) -> NDArray[Any]:
        """Who submits alike for days is on no two of them another witness."""
        return self.user

    def figures(self) -> dict[str, Figure]:
        """See `scores.bin_scores`; `chosen_under` is the share told a bin that is too short."""
        labels = [str(index) for index in range(self.probability.shape[1])]
        result = scores.bin_scores(self.truth, self.forecast, self.probability, labels)
        # One figure must tell versions apart; bins are for `evaluate`.
        del result["by_bin"]
        whole = {name: scores.mean(above) for name, (above, _) in self.parts().items()}
        return {**result, "chosen_under": scores.mean(self.chosen < self.truth), **whole}

    def parts(self) -> "Parts":
        """`bias`: expected less true bin; `surprise`: log loss less what the forecasts expect of it; and the scores."""
        p, rows, ones = self.probability, np.arange(len(self)), np.ones(len(self))
        # The smallest number in place of 0: an event that was told to be impossible is not infinitely bad.
        loss = -np.log(np.maximum(p, np.finfo(np.float64).tiny))
        mine = loss[rows, self.truth]
        return {
            "bias": (p @ np.arange(p.shape[1]) - self.truth, ones),
            "surprise": (mine - (p * loss).sum(axis=1), ones),
            "accuracy": (1.0 * (self.forecast == self.truth), ones),
            "log_loss": (mine, ones),
        }

    def cost(self) -> dict[str, float]:
        """GPU-hours kept after the time that lenders were told, and refused since the time told was too long."""
        return {
            "gpu_hours_kept_too_long": float(self.beyond_gpu_h.sum()),
            "gpu_hours_held_in_vain": float(self.before_gpu_h.sum()),
        }

    def expected(self) -> dict[str, Figure]:
        """`accuracy` and `log_loss` by the probabilities themselves, of what is left of them while a job runs."""
        p = np.where(np.arange(self.probability.shape[1]) >= self.least[:, None], self.probability, 0.0)
        p /= np.maximum(p.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        loss = -np.log(np.maximum(self.probability, np.finfo(np.float64).tiny))
        return {
            "accuracy": scores.mean(p[np.arange(len(self)), self.forecast]),
            "log_loss": scores.mean((p * loss).sum(axis=1)),
        }


Blocks = dict[str, Rows]
"""Rows by horizon, or of all jobs."""


def known_of_both(ours: Blocks, theirs: Blocks, known_s: float) -> tuple[Blocks, Blocks]:
    """Rows of two versions of the same forecasts that an instant decides, the same of both where both have a block."""
    ours, theirs = ({name: rows.as_of(known_s) for name, rows in blocks.items()} for blocks in (ours, theirs))
    known = {name: rows.decided_beside(theirs.get(name, rows), known_s) for name, rows in ours.items()}
    known |= {name: rows.decided_beside(rows, known_s) for name, rows in theirs.items() if name not in known}
    mine, other = ({name: rows.of(known[name]) for name, rows in blocks.items()} for blocks in (ours, theirs))
    return mine, other


def joined(parts: Sequence[Blocks]) -> Blocks:
    """Blocks of several stretches of time, one after the other."""
    first = parts[0] if parts else {}
    return {name: type(rows).joined([part[name] for part in parts]) for name, rows in first.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """What a version forecasts, to be held against what came.

    Attributes
    ----------
    trace : jobs, from long before `from_s` on
    from_s, until_s : when the forecasts are made, seconds from the epoch
    known_s : no truth of later than that is in the rows
    pools : those that count
    facts : table of the jobs, for a predictor that learns from one
    given : what `--set` told
    """

    trace: Trace
    from_s: float
    until_s: float
    known_s: float
    pools: Sequence[str]
    facts: Any = None
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def submitted(self) -> NDArray[np.bool_]:
        """(n_jobs,) which jobs of the trace were submitted meanwhile, to pools that count."""
        # np.isin needs fixed-width text.
        names, submit_s = self.trace.jobs["pool"].to_numpy().astype(str), self.trace.submit_s
        mask: NDArray[np.bool_] = (submit_s >= self.from_s) & (submit_s < self.until_s) & np.isin(names, self.pools)
        return mask

    @property
    def histories(self) -> dict[str, PoolHistory]:
        """Events of the pools that count."""
        return histories_of(self.trace, self.pools)

    @property
    def done(self) -> NDArray[np.bool_]:
        """(n_jobs,) which of the jobs of `submitted` were over when truth ends."""
        mask: NDArray[np.bool_] = self.submitted & self.trace.ended & (self.trace.known_s <= self.known_s)
        return mask

    @property
    def jobs(self) -> Trace:
        """The jobs of `submitted`."""
        return replace(self.trace, jobs=self.trace.jobs.filter(self.submitted))

    @property
    def over(self) -> Trace:
        """Those of `done`."""
        return replace(self.trace, jobs=self.trace.jobs.filter(self.done))


def arrival_rows(model: WillJobsArrive, sample: Sample) -> Blocks:
    """Windows of each horizon. Raises RegistryError where the model reads other features than this code builds."""
    histories = sample.histories
    corpus = build_corpus(histories, sample.from_s, sample.until_s, model.horizons_min_, copies=SCORED)
    # A model of other features would take these for its own, without any error.
    model.check_features(corpus.feature_names)
    # Models refuse empty input; weeks without jobs are usual.
    probability = model.predict_proba(corpus.X) if len(corpus) else np.empty((0, len(model.horizons_min_)))
    names = np.array(corpus.pools, dtype=str)[corpus.pool_index]
    return {
        horizon_label(k): ArrivalRows(
            corpus.tick_s,
            corpus.tick_s + MINUTE_S * k,
            names,
            corpus.arrives[:, column],
            probability[:, column],
            probability[:, column] >= model.thresholds_f1_[column],
            probability[:, column] >= model.thresholds_gate_[column],
        )
        for column, k in enumerate(model.horizons_min_)
    }


def load_rows(model: NewLoad, sample: Sample) -> Blocks:
    """Windows of each horizon."""
    histories = sample.histories
    horizons_s = MINUTE_S * np.asarray(model.horizons_min_, np.float64)
    ticks_s = active_grid(histories, sample.from_s, sample.until_s, horizon_s=horizons_s.max())
    # For weeks without pools, of which nothing could be concatenated.
    none = np.empty((0, len(horizons_s)))
    loads = np.concatenate([none, *(load_within(one, ticks_s, horizons_s) for one in histories.values())])
    estimates = np.concatenate([none, *(model.predict(one, ticks_s) for one in histories.values())])
    time_s = np.tile(ticks_s, len(histories))
    names = np.repeat(np.array(list(histories), dtype=str), len(ticks_s))
    return {
        horizon_label(k): LoadRows(time_s, time_s + MINUTE_S * k, names, loads[:, column], estimates[:, column])
        for column, k in enumerate(model.horizons_min_)
    }


def duration_rows(model: JobDuration, sample: Sample) -> Blocks:
    """Jobs."""
    trace, wanted = sample.trace, sample.submitted
    # The shape must fit the other weeks that this is joined with.
    if not wanted.any():
        return {ALL_JOBS: _no_jobs(len(model.horizons_min) + 1)}
    features = model.rows(trace, wanted)
    duration_s, start_s = trace.duration_s[wanted], trace.start_s[wanted]
    begins_s = np.concatenate([[0.0], edges_s(model.horizons_min)])
    known_s = trace.known_s[wanted]
    runs, chosen = ~(known_s <= sample.known_s), model.choose(features)
    # One of which nothing is heard may have ended as long ago as ends take to be told.
    so_far_s = np.maximum(sample.known_s - model.lag_s_ - start_s, 0.0)
    ends_s, gpu_h = np.append(begins_s[1:], np.inf), trace.gpus[wanted] / HOUR_S
    lasted_s = np.where(runs, so_far_s, duration_s)
    # The bin of a job that outlives the last edge is known then, however long it goes on.
    told_s = np.fmin(known_s, last_bin_told_s(start_s, model.horizons_min, model.lag_s_))
    known_s = np.where(lasted_s > begins_s[-1], told_s, known_s)
    return {
        ALL_JOBS: DurationRows(
            trace.submit_s[wanted],
            known_s,
            trace.jobs["pool"].to_numpy().astype(str)[wanted],
            bins_of(lasted_s, model.horizons_min),
            model.predict(features),
            chosen,
            model.predict_proba(features),
            np.where(runs, bins_of(so_far_s, model.horizons_min), 0),
            gpu_h * np.maximum(lasted_s - ends_s[chosen], 0.0),
            gpu_h * np.maximum(begins_s[chosen] - lasted_s, 0.0),
            _users(trace)[wanted],
        )
    }


def _users(trace: Trace) -> NDArray[Any]:
    """(n_jobs,) names; of jobs whose user is not told their pool."""
    known = "user" in trace.jobs.columns
    named: NDArray[Any] = trace.jobs.select(pl.coalesce("user", "pool") if known else "pool").to_series().to_numpy()
    return named.astype(str)


def _no_jobs(bins: int) -> DurationRows:
    times, whole, names = np.empty(0), np.empty(0, np.int64), np.empty(0, "U1")
    return DurationRows(times, times, names, whole, whole, whole, np.empty((0, bins)), whole, times, times, names)
