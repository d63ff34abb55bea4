"""Forecasts of later weeks by what was learnt from earlier ones, for choosing algorithms, settings and thresholds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import MINUTE_S
from jobcast.features.corpus import STEP_S, Corpus, Mask
from jobcast.models.algorithms import Settings, fit_classifier, mean_of_logits
from jobcast.models.classifier import Classifier

FOLDS = 3
FIRST_SHARE = 0.4
"""Share of the training time that the first fold learns from; the folds share the rest, each learning from all before.

Of five weeks: two weeks forecast the third, three the fourth, four the fifth."""
LEAST_STRIDE = 3
"""One grid instant in so many trains; 2 would fall in step with jobs every 600 s."""
ROWS_PER_WINDOW = 6
"""Training rows of a pool whose windows overlap one instant: more of them repeat the same events."""
LEAST_ROWS = 1000
"""Little data are not thinned below so many rows."""
SCORED_STRIDE = 3
"""One grid instant in so many is forecast out of fold where windows are longer than the grid's step."""
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Learner:
    """An algorithm as it is to be trained, for one horizon at a time.

    Attributes
    ----------
    algorithm : key of `algorithms.ALGORITHMS`
    seed : of all that it draws
    settings : of the algorithm; None takes its defaults
    columns : positions of the features that it may read; None: all
    """

    algorithm: str
    seed: int = 0
    settings: Settings | None = None
    columns: tuple[int, ...] | None = None

    def fitted(self, corpus: Corpus, horizon: int, rows: Mask) -> Classifier:
        """Trained on some rows (N,) of a corpus, of which there is at least one."""
        X, arrives = corpus.horizon_matrix(horizon, rows)
        return fit_classifier(self.algorithm, self.read(X), arrives, self.seed, self.settings)

    def read(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """What it reads of rows (n, F)."""
        return X if self.columns is None else X[:, list(self.columns)]


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """What came at one horizon and what had been forecast from the folds before.

    Attributes
    ----------
    row : (n,) position in the corpus
    fold : (n,) number of the fold, in order of time
    arrives : (n,) bool
    probability : (n,)
    """

    row: NDArray[np.int64]
    fold: NDArray[np.int64]
    arrives: Mask
    probability: Floats

    def __len__(self) -> int:
        return len(self.row)

    def picked(self, mask: Mask) -> "OutOfFold":
        """Of some rows (n,)."""
        return OutOfFold(*(column[mask] for column in self.columns()))

    @property
    def ranking(self) -> "OutOfFold":
        """Of the folds whose forecasts differ: where one class alone had been seen, they count its rows and no more."""
        told = [fold for fold in np.unique(self.fold) if np.ptp(self.probability[self.fold == fold]) > 0.0]
        return self.picked(np.isin(self.fold, told))

    def columns(self) -> tuple[NDArray[Any], ...]:
        """All of them, (n,) each."""
        return self.row, self.fold, self.arrives, self.probability


def cuts(from_s: float, until_s: float) -> Floats:
    """Instants between the folds, shape (FOLDS + 1,): fold i is forecast from [i] to [i + 1] by all before [i].

    >>> cuts(0.0, 35.0).tolist()
    [14.0, 21.0, 28.0, 35.0]
    """
    return np.linspace(from_s + FIRST_SHARE * (until_s - from_s), until_s, FOLDS + 1)


def training_rows(corpus: Corpus, horizon: int, until_s: float) -> Mask:
    """Rows (N,) to learn from: windows that end before an instant, thinned where neighbours tell the same events."""
    rows = corpus.purged(until_s, horizon)
    # Longer windows overlap more, so fewer of them tell the same.
    apart_s = max(LEAST_STRIDE * STEP_S, MINUTE_S * corpus.horizons_min[horizon] / ROWS_PER_WINDOW)
    stride = odd(apart_s / corpus.step_s)
    # Little data are not thinned further than to LEAST_ROWS.
    stride = min(stride, odd(int(rows.sum()) / LEAST_ROWS))
    return thinned(corpus, rows, stride)


def odd(number: float) -> int:
    """Nearest odd number >= 1 at or above: such a stride keeps step with neither hours nor days.

    >>> [odd(number) for number in (0.2, 2.0, 3.0, 24.0)]
    [1, 3, 3, 25]
    """
    return max(1, 2 * int(np.ceil((number - 1.0) / 2.0)) + 1)


def thinned(corpus: Corpus, rows: Mask, stride: int, phase: int = 0) -> Mask:
    """Of the rows, those on one grid instant in `stride`."""
    # By instant, not by row: pools keep the same instants.
    instants = np.unique(corpus.tick_s, return_inverse=True)[1]
    return np.asarray(rows & (instants % stride == phase % stride))


def folds_of(corpus: Corpus, horizon: int, from_s: float, until_s: float) -> Iterator[tuple[int, Mask, Mask]]:
    """Each fold that has rows on both sides: its number, rows to learn from and rows to forecast, shape (N,)."""
    stride = odd(SCORED_STRIDE * STEP_S / corpus.step_s) if corpus.horizons_min[horizon] * MINUTE_S > STEP_S else 1
    instants = cuts(from_s, until_s)
    for number in range(FOLDS):
        known = training_rows(corpus, horizon, instants[number])
        later = ~corpus.until(instants[number]) & corpus.purged(instants[number + 1], horizon)
        # Another phase than that of training.
        later = thinned(corpus, later, stride, phase=1) if later.sum() > LEAST_ROWS else later
        # Long windows leave no row in a short fold: nothing ends before its cut.
        if known.any() and later.any():
            yield number, known, later


def out_of_fold(
    learner: Learner, corpus: Corpus, from_s: float, until_s: float, done: Step | None = None
) -> list[OutOfFold]:
    """Forecasts over expanding folds of [from, until), by horizon; without rows where no fold has any.

    A window that crosses from a fold's training time into what it forecasts is neither learnt from nor forecast.
    """
    rows = []
    for horizon in range(len(corpus.horizons_min)):
        parts = []
        for number, known, later in folds_of(corpus, horizon, from_s, until_s):
            X, arrives = corpus.horizon_matrix(horizon, later)
            probability = learner.fitted(corpus, horizon, known).predict_proba(learner.read(X))
            parts.append(OutOfFold(np.flatnonzero(later), np.full(len(arrives), number), arrives, probability))
        rows.append(joined(parts))
        if done is not None:
            done()
    return rows


def averaged(members: Sequence[Sequence[OutOfFold]]) -> list[OutOfFold]:
    """Forecasts of the mean of several algorithms' logits, by horizon, from theirs on the same folds."""
    return [
        replace(parts[0], probability=mean_of_logits([part.probability for part in parts]))
        for parts in zip(*members, strict=True)
    ]


def joined(parts: Sequence[OutOfFold]) -> OutOfFold:
    """One after another."""
    # Gives the kinds of the columns where no fold has rows.
    empty = OutOfFold(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0))
    columns = zip(*(part.columns() for part in (empty, *parts)), strict=True)
    return OutOfFold(*map(np.concatenate, columns))
