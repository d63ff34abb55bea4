"""The predictor `queue-wait`: how long a pending job will go on waiting, from the state of its queue."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.answer_checks import MOST_SECONDS, failed, floats_of
from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.bad_answers import WAITS, BadAnswers, Reason
from jobcast.domain.clock import WEEK_S
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.questions import Question
from jobcast.features.queue_state import queue_columns
from jobcast.features.wait_rows import WaitRows
from jobcast.models.metadata import kept, read_metadata, read_text, take_up, write_metadata
from jobcast.models.predictor import ServedModel
from jobcast.models.wait_hazard import HazardSettings, WaitHazard, known_quantile
from jobcast.traces.table import Trace

if TYPE_CHECKING:
    import pandas as pd

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
MODEL = "hazard.txt"
KEPT = ("trained_from_s_", "trained_until_s_", "pool_medians_s_", "calibrated_rows_")
KEPT_ARRAYS = ("shifts_", "prior_")


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Rows of a part of the training time, (n,) each, and what had been forecast of them, (n, levels) log10 s."""

    rows: WaitRows
    forecast: Floats


class QueueWait:
    """Discrete hazards by boosted trees, whose quantiles are moved by what the last weeks showed.

    A quantile is moved by the same of the distances of what came from it, in log10, over the rows of the last weeks of
    the training time, each week forecast from what was known before it: a split-conformal margin (Lei et al., 2018), of
    Kaplan and Meier's estimate where waits are not over. The median is not moved.

    Attributes
    ----------
    hazard_ : fitted on all of the training time
    shifts_ : (levels,) by which quantiles are moved, log10
    prior_ : (levels,) log10 s of all waits of the training time: the conservative answer
    pool_medians_s_ : median wait by pool, of those with `LEAST_ROWS` known ones; "" is of all
    calibrated_rows_ : rows that shifts are from
    folds_ : parts of the training time as they were forecast; not kept
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

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
        self.prior_ = np.array([known_quantile(logs, known, rows.weight, level) for level in LEVELS])
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
                folds.append(Fold(part, self._hazard(before, begin_s).quantiles(part.X, LEVELS)))
        return folds

    def forecast(self, X: NDArray[np.float32]) -> Floats:
        """Quantiles of the wait from the instant of a row on, (n, levels) s, ascending; levels are `LEVELS`."""
        result: Floats = 10.0 ** moved(self.hazard_.quantiles(X, LEVELS), self.shifts_)
        return result

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
        result: Floats = 10.0**self.prior_
        return result

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
        saved = read_metadata(folder, cls.name)
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

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """See `models.pyfunc.Served`."""
        import pandas as pd

        result = self.predictor.forecast(frame[list(self.inputs)].to_numpy(np.float32))
        return pd.DataFrame(dict(zip(self.outputs, result.T, strict=True)), index=frame.index)
