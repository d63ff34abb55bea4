"""The predictor `queue-wait`: how long a pending job will go on waiting, from the state of its queue.

Waits are told by discrete hazards, the chance of each stretch of time that a job which still waits starts within it:
Singer and Willett, "It's about time", Journal of Educational Statistics 1993. What has not started yet counts for the
stretches that it has waited through, so that nothing need be left out or made up.

Hazards are learnt from queues as long as they were. A rule of one column stands beside them, which goes with queues of
any length: waits are so many times as long as the queue takes to drain. It answers unless hazards are better beyond
doubt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jobcast.domain.answer_checks import MOST_SECONDS, failed, floats_of
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.bad_answers import WAITS, BadAnswers, Reason
from jobcast.domain.clock import WEEK_S
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.domain.memory import need_memory
from jobcast.features.queue_state import DRAINS, queue_columns
from jobcast.features.wait_rows import WaitRows
from jobcast.models.completion.intervals import survival
from jobcast.models.forecast_combination import pinball_losses
from jobcast.models.metadata import (
    booster_data,
    booster_of,
    kept,
    read_metadata,
    read_text,
    take_up,
    trained_booster,
    write_metadata,
)
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.table import Trace

THREADS = 1
"""Sums of gradients depend on how rows are shared out."""
ENDS = (0.003, 0.999)
"""Shares of the known waits below the first and the last stretch's outer ends."""
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class HazardSettings:
    """Of the boosted trees.

    Attributes
    ----------
    stretches : of time, each with an equal share of the known waits
    trees, leaves, learning_rate, l2, column_share, row_share, least_rows : see LightGBM
    """

    stretches: int = 14
    trees: int = 200
    leaves: int = 31
    learning_rate: float = 0.08
    l2: float = 0.0
    column_share: float = 0.3
    row_share: float = 0.5
    least_rows: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class WaitHazard:
    """A fitted hazard.

    Attributes
    ----------
    ends : (K + 1,) ends of the stretches, log10 of seconds, ascending
    booster : of LightGBM: a row and the number of a stretch -> log odds that it starts within; None where K is 1
    """

    ends: Floats
    booster: Any

    @classmethod
    def fit(
        cls,
        X: NDArray[np.float32],
        log_wait: Floats,
        started: Bools,
        weight: Floats,
        settings: HazardSettings,
        seed: int,
    ) -> Self:
        """Learn from rows of which one at least started.

        Parameters
        ----------
        X, weight : (n, F), (n,)
        log_wait, started : (n,) log10 of the seconds waited, and whether the wait was over then
        """
        known = log_wait[started]
        inner = np.unique(np.quantile(known, np.arange(1, settings.stretches) / settings.stretches))
        low, high = np.quantile(known, ENDS)
        ends = np.array([min(low, inner[0]), *inner, max(high, inner[-1])])
        row, stretch, label = passed(np.searchsorted(inner, log_wait, side="right"), started, len(inner))
        if label.all() or not label.any():
            return cls(ends, None)
        need_memory(FLOAT_BYTES * len(row) * (X.shape[1] + 1), f"{len(row):,} rows of waits", "train on a shorter time")
        rows = np.column_stack([X[row], stretch.astype(np.float32)])
        more = {
            "objective": "binary",
            "min_data_in_leaf": settings.least_rows,
            "bagging_fraction": settings.row_share,
            "bagging_freq": 1,
        }
        data = booster_data(rows, label, weight[row])
        return cls(ends, trained_booster(data, settings, settings.trees, seed, THREADS, more))

    def below(self, X: NDArray[np.float32]) -> Floats:
        """Probability that a job has started by the end of each stretch, (n, K + 1), from 0 to 1."""
        inner = len(self.ends) - 2
        result, left = np.zeros((len(X), inner + 2)), np.ones(len(X))
        result[:, -1] = 1.0
        if self.booster is None or not len(X):
            result[:, 1:-1] = np.arange(1, inner + 1) / (inner + 1)
            return result
        rows = np.column_stack([X, np.zeros(len(X), np.float32)])
        for stretch in range(inner):
            rows[:, -1] = stretch
            left = left * (1.0 - self.booster.predict(rows, num_threads=THREADS))
            result[:, stretch + 1] = 1.0 - left
        return result

    def quantiles(self, X: NDArray[np.float32], levels: Sequence[float]) -> Floats:
        """log10 of the seconds by which shares of such jobs have started, (n, levels), linear within a stretch."""
        below = self.below(X)
        result = np.empty((len(X), len(levels)))
        for place, level in enumerate(levels):
            # The stretch that the level falls into: the last that begins below it.
            after = np.clip((below < level).sum(axis=1), 1, len(self.ends) - 1)
            start, end = (np.take_along_axis(below, one[:, None], axis=1)[:, 0] for one in (after - 1, after))
            share = (level - start) / np.maximum(end - start, np.finfo(np.float64).tiny)
            result[:, place] = self.ends[after - 1] + np.clip(share, 0.0, 1.0) * np.diff(self.ends)[after - 1]
        return result

    def as_dict(self) -> dict[str, Any]:
        """What JSON holds of it; the trees are beside."""
        return {"ends": self.ends.tolist(), "trees": self.booster is not None}

    @classmethod
    def read(cls, saved: Mapping[str, Any], text: str) -> Self:
        """From what `told` gave, and the text of the trees."""
        return cls(np.array(saved["ends"]), booster_of(text) if saved["trees"] else None)


def passed(last: Ints, started: Bools, inner: int) -> tuple[Ints, Ints, Bools]:
    """Stretches that jobs waited into: row, number of the stretch, and whether it started within, (m,) each.

    Parameters
    ----------
    last : (n,) number of the stretch in which a job started, or was last seen to wait, which it has not waited through
    inner : number of the last stretch, which all start within that have come so far

    >>> [one.tolist() for one in passed(np.array([1, 1]), np.array([True, False]), 3)]
    [[0, 0, 1], [0, 1, 0], [False, True, False]]
    """
    through = np.minimum(last + started, inner)
    row = np.repeat(np.arange(len(last)), through)
    stretch = np.arange(len(row)) - np.repeat(np.cumsum(through) - through, through)
    return row, stretch, started[row] & (stretch == last[row])


def known_quantile(values: Floats, known: Bools, weight: Floats, level: float) -> float:
    """The least value that a share of all lies at or below, as far as is known.

    Parameters
    ----------
    values, known, weight : (n,) values, of those that are not `known` lower bounds; see `survival`

    >>> known_quantile(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), np.ones(3), 0.5)
    3.0
    """
    order = np.lexsort((~known, values))
    above = survival(weight[order], known[order])[1:]
    # Rounded: the product of three hazards that leave a half must reach it.
    reached = np.flatnonzero(np.round(above, 12) <= round(1.0 - level, 12))
    return float(values[order][reached[0] if len(reached) else -1])


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Shares of such jobs that have started by an answer's quantiles."""
MEDIAN, BOUND = LEVELS.index(0.5), LEVELS.index(0.9)
"""The point that is told, and the end of the one-sided 90 % interval."""
FOLDS = 2
"""Last parts of the training time that what is told is calibrated on, each forecast from what was known before it."""
LEAST_PARTS = 4
"""Parts that a training time shorter than so many weeks is cut into."""
LEAST_ROWS = 50
"""Rows with a known wait that a training needs, and a fold to be calibrated on."""
DAYS = 7
"""Parts of a fold whose losses are told apart: days where it is a week."""
DOUBT = 0.05
"""Share of the intervals of what hazards save that may miss."""
MODEL = "hazard.txt"
KEPT = ("trained_from_s_", "trained_until_s_", "pool_medians_s_", "calibrated_rows_", "by_drain_", "drain_ratios_")
KEPT_ARRAYS = ("shifts_", "prior_")
DRAIN = queue_columns().index(DRAINS[0])
"""The column of how long the pool takes to start the jobs ahead, at the pace of its last day; log10 of days."""


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Rows of a part of the training time, (n,) each, and what had been forecast of them, (n, levels) log10 s.

    Attributes
    ----------
    forecast, drained : by hazards, and by the drain time
    """

    rows: WaitRows
    forecast: Floats
    drained: Floats


class QueueWait:
    """Discrete hazards by boosted trees, whose quantiles are moved by what the last weeks showed.

    A quantile is moved by the same of the distances of what came from it, in log10, over the rows of the last weeks of
    the training time, each week forecast from what was known before it: a split-conformal margin (Lei et al., 2018), of
    Kaplan and Meier's estimate where waits are not over. The median is not moved.

    Trees tell no wait that is longer than those they learnt from. Where a handful of users make a few long queues,
    these weeks' moves tell little of the next ones', and the drain time tells more: see `drain_is_better`.

    Attributes
    ----------
    hazard_ : fitted on all of the training time
    shifts_ : (levels,) by which quantiles are moved, log10
    by_drain_ : whether the drain time answers in place of the hazards
    drain_ratios_ : see `drain_ratios`
    prior_ : (levels,) log10 s of all waits of the training time: the conservative answer
    pool_medians_s_ : median wait by pool, of those with `LEAST_ROWS` known ones; "" is of all
    calibrated_rows_ : rows that shifts are from
    folds_ : parts of the training time as they were forecast; not kept
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

    by_drain_: bool
    drain_ratios_: tuple[float, ...] | None
    name: ClassVar[str] = "queue-wait"
    answers: ClassVar[Question] = Question.WAITS
    algorithm: ClassVar[str] = "hazard"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def __init__(self, settings: HazardSettings | None = None, seed: int = 0) -> None:
        self.settings, self.seed = settings or HazardSettings(), seed

    def fit(self, trace: Trace, from_s: float, until_s: float) -> Self:
        """Learn from what was known of the queue's instants in [from_s, until_s) by `until_s`.

        Raises TrainingError where too few waits were over.
        """
        rows = WaitRows.of(trace, from_s, until_s)
        if (known := int(rows.started(until_s).sum())) < LEAST_ROWS:
            raise TrainingError(
                f"{trace.source.path}: {known} pending jobs whose wait was over, {LEAST_ROWS} are needed; give a "
                "longer time of a trace that has starts, or a table of snapshots"
            )
        return self.fit_rows(rows, trace.jobs["pool"].to_numpy().astype(str)[rows.job], from_s, until_s)

    def fit_rows(self, rows: WaitRows, pool: NDArray[Any], from_s: float, until_s: float) -> Self:
        """As `fit`, from the rows themselves; `pool` are their names, (n,)."""
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        logs, known = rows.log_wait(until_s), rows.started(until_s)
        self.folds_ = self._folds(rows, from_s, until_s)
        self.shifts_ = shifts_of(self.folds_, until_s)
        self.calibrated_rows_ = sum(len(fold.rows) for fold in self.folds_)
        self.by_drain_ = drain_is_better(self.folds_, until_s)
        self.prior_, self.drain_ratios_ = all_waits(rows, until_s), drain_ratios(rows, until_s)
        self.pool_medians_s_ = {"": float(10.0 ** np.median(logs[known]))}
        for name in np.unique(pool[known]).tolist():
            if (known & (pool == name)).sum() >= LEAST_ROWS:
                self.pool_medians_s_[name] = float(10.0 ** np.median(logs[known & (pool == name)]))
        self.hazard_ = self._hazard(rows, until_s)
        return self

    def _hazard(self, rows: WaitRows, known_s: float) -> WaitHazard:
        """Of what was known at an instant."""
        logs, started = rows.log_wait(known_s), rows.started(known_s)
        # The square root again: less than calibration evens out accounts, which counts each of them alike.
        return WaitHazard.fit(rows.X, logs, started, np.sqrt(rows.weight), self.settings, self.seed)

    def _folds(self, rows: WaitRows, from_s: float, until_s: float) -> list[Fold]:
        length_s, folds = min(WEEK_S, (until_s - from_s) / LEAST_PARTS), []
        for begin_s in (until_s - length_s * np.arange(FOLDS, 0, -1)).tolist():
            before, part = rows.between(from_s, begin_s), rows.between(begin_s, begin_s + length_s)
            if before.started(begin_s).sum() >= LEAST_ROWS and part.started(until_s).sum() >= LEAST_ROWS:
                drained = by_drain(part.X, drain_ratios(before, begin_s), all_waits(before, begin_s))
                folds.append(Fold(part, self._hazard(before, begin_s).quantiles(part.X, LEVELS), drained))
        return folds

    def forecast(self, X: NDArray[np.float32]) -> Floats:
        """Quantiles of the wait from the instant of a row on, (n, levels) s, ascending; levels are `LEVELS`."""
        if self.by_drain_:
            logs = by_drain(X, self.drain_ratios_, self.prior_)
        else:
            logs = moved(self.hazard_.quantiles(X, LEVELS), self.shifts_)
        return np.asarray(10.0**logs)

    def pool_medians(self, pools: NDArray[Any]) -> Floats:
        """The median wait of each pool that was known in training, (n,) s: the rule without a model."""
        names, place = np.unique(pools, return_inverse=True)
        medians = [self.pool_medians_s_.get(name, self.pool_medians_s_[""]) for name in names.tolist()]
        return np.array(medians)[place]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of rows."""
        return queue_columns()

    @property
    def conservative_s(self) -> Floats:
        """(levels,) s: what is told in place of an answer that cannot be one."""
        return np.asarray(10.0**self.prior_)

    def save(self, folder: Path) -> None:
        """Write `metadata.json`, and the trees as LightGBM's text."""
        result = {"columns": list(self.columns), "settings": asdict(self.settings), "seed": self.seed}
        write_metadata(
            folder, self.name, {**result, "hazard": self.hazard_.as_dict(), **kept(self, (*KEPT, *KEPT_ARRAYS))}
        )
        if self.hazard_.booster is not None:
            (folder / MODEL).write_text(self.hazard_.booster.model_to_string(), encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder does not hold such a model, or one of other columns."""
        # Of before drain times were asked.
        hazards: dict[str, Any] = {"by_drain": False, "drain_ratios": None}
        saved = hazards | read_metadata(folder, cls.name)
        if tuple(saved["columns"]) != queue_columns():
            raise RegistryError(
                f"{folder}: reads other columns of the queue than this version of jobcast; train it again"
            )
        model = cls(HazardSettings(**saved["settings"]), saved["seed"])
        take_up(model, saved, KEPT, KEPT_ARRAYS)
        text = read_text(folder / MODEL) if saved["hazard"]["trees"] else ""
        model.hazard_, model.folds_ = WaitHazard.read(saved["hazard"], text), []
        return model


def shifts_of(folds: Sequence[Fold], known_s: float) -> Floats:
    """By how much quantiles are to be moved, (levels,) log10, by what was known of folds; 0 without any."""
    shifts = np.zeros(len(LEVELS))
    if not folds:
        return shifts
    rows = [fold.rows for fold in folds]
    logs, known = (
        np.concatenate(one) for one in zip(*((r.log_wait(known_s), r.started(known_s)) for r in rows), strict=True)
    )
    result, weight = np.concatenate([fold.forecast for fold in folds]), np.concatenate([part.weight for part in rows])
    for place, level in enumerate(LEVELS):
        if place != MEDIAN:
            shifts[place] = known_quantile(logs - result[:, place], known, weight, level)
    return shifts


def all_waits(rows: WaitRows, known_s: float) -> Floats:
    """(levels,) log10 s of the waits as far as they were known."""
    return _quantiles(rows, rows.log_wait(known_s), known_s)


def drain_ratios(rows: WaitRows, known_s: float) -> tuple[float, ...] | None:
    """By level: log10 of the seconds waited a day of drain time, as far as was known; None where no row tells one."""
    told = rows.among(np.isfinite(rows.X[:, DRAIN]))
    if not len(told):
        return None
    return tuple(_quantiles(told, told.log_wait(known_s) - told.X[:, DRAIN], known_s).tolist())


def _quantiles(rows: WaitRows, values: Floats, known_s: float) -> Floats:
    known = rows.started(known_s)
    return np.array([known_quantile(values, known, rows.weight, level) for level in LEVELS])


def by_drain(X: NDArray[np.float32], ratios: Sequence[float] | None, prior: Floats) -> Floats:
    """Quantiles of waits by the drain time of rows, (n, levels) log10 s; `prior` (levels,) where it is not told."""
    if ratios is None:
        return np.tile(prior, (len(X), 1))
    logs = X[:, DRAIN : DRAIN + 1].astype(np.float64) + np.asarray(ratios)
    return np.where(np.isfinite(logs), logs, prior)


def drain_is_better(folds: Sequence[Fold], known_s: float) -> bool:
    """Whether hazards are not better beyond doubt by pinball loss of what was over; False without folds.

    Hazards of a fold are moved by what the others showed. They have much to learn, and may be better by chance in a few
    long queues; in doubt the rule answers that has six numbers. Witnesses are the parts of folds: the interval is
    Student's, of what hazards save in each.
    """
    saved = list[float]()
    for fold in folds:
        hazards = moved(fold.forecast, shifts_of([one for one in folds if one is not fold], known_s))
        saved += _saved(fold, hazards, known_s)
    if not saved:
        return False
    if len(saved) == 1:
        return True
    error = np.std(saved, ddof=1) / np.sqrt(len(saved))
    return bool(np.mean(saved) <= stdtrit(len(saved) - 1, 1.0 - DOUBT / 2.0) * error)


def _saved(fold: Fold, hazards: Floats, known_s: float) -> list[float]:
    """By how much the loss of the drain time is more than that of hazards, of each part of a fold with waits."""
    known, at_s = fold.rows.started(known_s), fold.rows.at_s
    logs, weight = fold.rows.log_wait(known_s)[known], fold.rows.weight[known]
    drained, told = (pinball_losses(logs, one[known], LEVELS) for one in (fold.drained, hazards))
    more = drained - told
    ends = np.linspace(at_s.min(), at_s.max(), DAYS + 1)[1:-1]
    part = np.searchsorted(ends, at_s[known], side="right")
    return [float(np.average(more[part == one], weights=weight[part == one])) for one in np.unique(part)]


def moved(value: Floats, shifts: Floats) -> Floats:
    """Quantiles (n, levels) moved by shifts (levels,), in order around the median, which stays."""
    there, median = value + shifts, value[:, MEDIAN : MEDIAN + 1]
    low, high = np.minimum(there[:, :MEDIAN], median), np.maximum(there[:, MEDIAN + 1 :], median)
    return np.maximum.accumulate(np.hstack([low, median, high]), axis=1)


def guarded_waits(model: QueueWait, X: NDArray[np.float32], tally: BadAnswers) -> Floats:
    """What a model answers, (n, levels) s; what cannot be a wait is replaced by the conservative answer and counted."""
    tally.checked(WAITS, len(X))
    answers = np.tile(model.conservative_s, (len(X), 1))
    try:
        asked = floats_of(model.forecast(X), answers.shape)
    except Exception as error:  # a damaged model may fail in any way
        failed(tally, WAITS, error, answers=len(X))
        return answers
    fits = waits_that_can_be(asked)
    if not fits.all():
        tally.bad(WAITS, Reason.OUT_OF_RANGE, f"{asked[~fits][0].tolist()}", int((~fits).sum()))
    answers[fits] = asked[fits]
    return answers


def waits_that_can_be(value: Floats) -> Bools:
    """(n,) which answers (n, levels) s can be waits: not negative, no longer than a century, ascending.

    >>> waits_that_can_be(np.array([[1.0, 2.0], [2.0, 1.0], [np.nan, 1.0]])).tolist()
    [True, False, False]
    """
    # NaN fails every comparison.
    within, rising = ((value >= 0.0) & (value <= MOST_SECONDS)).all(axis=1), (np.diff(value, axis=1) >= 0.0).all(axis=1)
    return np.asarray(within & rising)


class ServedQueueWait(ServedModel):
    """One row a pending job, of the columns of `queue_state.queue_columns`; answers quantiles of its wait, seconds."""

    inputs: Mapping[str, str] = dict.fromkeys(queue_columns(), "double")
    outputs: Mapping[str, str] = {f"wait_{100 * level:g}_s": "double" for level in LEVELS}
    shown: Mapping[str, Sequence[Any]] = {name: [0.0, 1.0] for name in queue_columns()}
    predictor: QueueWait

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """See `ServedModel`."""
        result = self.predictor.forecast(frame[list(self.inputs)].to_numpy(np.float32))
        return result.T
