"""Load as a distribution: whether any comes, and how much then; of it the quantile that covers what is demanded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.load_features import load_feature_names, load_features
from jobcast.models.classifier import smallest_leaf
from jobcast.models.load_data import Demands, LoadData, Mask, Nested, demanded_coverage
from jobcast.models.metadata import booster_data, booster_of, kept, read_text, take_up, trained_booster

if TYPE_CHECKING:
    from jobcast.models.compiled_trees import SmallTrees

LEVELS: tuple[float, ...] = (0.5, 0.75, 0.9, 0.95, 0.98)
"""Quantiles of the load of windows with load; between them it is interpolated."""
_LEVELS = np.array(LEVELS)
STEPS = 500
CANDIDATES: tuple[float, ...] = tuple(0.5 + 0.4995 * i / (STEPS - 1) for i in range(STEPS))
"""Levels of the whole distribution among which calibration chooses."""
THREADS = 1
"""In training: the trees are so small that waking other threads costs more than they do."""
ROWS_PER_SMALLEST_LEAF = 20
"""On little data a leaf may hold one row in so many."""
NOTHING = 1e-9
WHOLE = 1e-3
"""What rounding in float32 may take off a whole number of GPUs."""
Matrix = NDArray[np.float32]
KEPT = ("levels_", "lending_levels_", "coverages_", "demands_")
"""What was chosen of each horizon, as a model's file keeps it."""


@dataclass(frozen=True, slots=True)
class QuantileSettings:
    """Size of the trees: `trees` of `leaves` for each quantile, `arrival_trees` of `arrival_leaves` for "any load?"."""

    trees: int = 60
    leaves: int = 4
    learning_rate: float = 0.06
    min_rows_leaf: int = 300
    l2: float = 1.0
    column_share: float = 0.8
    arrival_trees: int = 180
    arrival_leaves: int = 10
    arrival_learning_rate: float = 0.04
    arrival_l2: float = 20.0


class LoadDistribution:
    """P(load <= x) at one horizon: LightGBM for "any load?", and quantile regressions of log(1 + load) given any [1].

    A quantile regression of the load itself, which is nothing in most short windows, reserves about a third more at
    equal coverage (Philly, October 2017).

    References
    ----------
    .. [1] Koenker and Bassett, Regression Quantiles, Econometrica 1978.
    """

    def __init__(self) -> None:
        self._laid_out: SmallTrees | None = None  # the boosters' trees, when first needed: for any load, then by level

    def fit(self, X: Matrix, load: NDArray[Any], settings: QuantileSettings, seed: int) -> Self:
        """Learn from rows (n, F) and their loads (n,), GPUs."""
        any_load = load > 0
        # Laplace's rule: what never came is not impossible.
        self.share_ = float((any_load.sum() + 1) / (len(load) + 2))
        # A booster needs both classes; where there is one, the share stands for it.
        both = bool(any_load.any() and not any_load.all())
        self.arrival_ = _arrival_booster(X, any_load, settings, seed) if both else None
        loaded, amount = X[any_load], np.log1p(load[any_load])
        self.amounts_ = np.quantile(amount, LEVELS) if len(amount) else np.zeros(len(LEVELS))
        # LightGBM's quantile objective finds no split among equal amounts.
        varied = bool(len(amount) and amount.min() < amount.max())
        # All levels learn from the same rows, laid out once.
        data = booster_data(loaded, amount.astype(np.float32)) if varied else None
        least = smallest_leaf(settings.min_rows_leaf, len(amount), ROWS_PER_SMALLEST_LEAF)
        self.quantiles_ = [
            None if data is None else _quantile_booster(data, least, level, settings, seed) for level in LEVELS
        ]
        return self

    def parts(self, X: NDArray[Any]) -> tuple[Floats, Floats]:
        """P(any load), (n,), and log(1 + GPUs) at `LEVELS` given any, (n, levels) ascending."""
        rows = np.ascontiguousarray(X, np.float32)
        if self._laid_out is None:
            from jobcast.models.compiled_trees import SmallTrees

            # A level without a booster is told by the constant quantile of all amounts.
            untaught = [booster is None for booster in self.quantiles_]
            self._constant = np.where(untaught, self.amounts_, 0.0)[:, None]
            self._laid_out = SmallTrees.of(self.arrival_, *self.quantiles_)
        sums = self._laid_out(rows)
        # The trees' sum is a raw score; the logistic function makes it a probability.
        share = np.full(len(rows), self.share_) if self.arrival_ is None else expit(sums[0])
        amounts = np.maximum(sums[1:] + self._constant, 0.0)
        # Regressions of single levels may cross; a higher level never says less here.
        return share, np.maximum.accumulate(amounts, axis=0).T

    def texts(self) -> dict[str, str]:
        """LightGBM's model strings by name."""
        boosters = {"any": self.arrival_, **dict(zip(_LEVEL_NAMES, self.quantiles_, strict=True))}
        return {name: str(booster.model_to_string()) for name, booster in boosters.items() if booster is not None}

    @classmethod
    def of_texts(cls, texts: dict[str, str], share: float, amounts: Sequence[float]) -> Self:
        """From what `texts` gave and the constants."""
        boosters = {name: booster_of(text) for name, text in texts.items()}
        made = cls()
        made.share_, made.amounts_ = share, np.array(amounts)
        made.arrival_ = boosters.get("any")
        made.quantiles_ = [boosters.get(name) for name in _LEVEL_NAMES]
        return made


def quantile_of(share: Floats, amounts: Floats, level: float | Floats) -> Floats:
    """GPUs that a load does not pass with probability `level`, (n,): whole ones, for so they are asked for.

    Parameters
    ----------
    share : (n,) P(any load)
    amounts : (n, levels) log(1 + GPUs) at `LEVELS` given any
    level : of the whole distribution, of all or (n,) of each

    >>> certain = np.log1p([[1.0, 2.0, 4.0, 8.0, 16.0]] * 2)
    >>> quantile_of(np.array([0.04, 1.0]), certain, 0.95).tolist()
    [0.0, 8.0]
    """
    from jobcast.models.compiled_trees import mixture_quantiles

    # Compiled code takes a level for each row.
    each = np.full(len(share), level) if np.isscalar(level) else np.ascontiguousarray(level, np.float64)
    rows = np.ascontiguousarray(share, np.float64), np.ascontiguousarray(amounts, np.float64)
    return np.asarray(mixture_quantiles(*rows, each, _LEVELS, NOTHING, WHOLE))


class LevelledLoad:
    """What rules share that learn a distribution a horizon and choose the level which covers what is demanded.

    For each horizon the last two fifths of the training time are forecast in two folds, each from what came before it.
    The smallest level whose quantiles cover what is demanded there is kept, and all of the training time trains the
    distributions that are kept: split conformal prediction on the scale of levels.

    Attributes
    ----------
    levels_, lending_levels_ : (H,) level by horizon, of the estimate and of what a scheduler reserves
    coverages_ : (H,) share of the folds' windows that it covers; None where no fold has windows, and the level is the
        demand itself
    demands_ : (H,) share that was demanded
    distributions_ : (H,) what was learned of each horizon
    """

    candidates: ClassVar[Sequence[float]]
    """Levels to choose among, ascending."""

    def fit(self, data: LoadData, demands: Demands) -> Self:
        """Learn the distributions and choose the levels."""
        self.labels_ = tuple(horizon_label(k) for k in data.horizons_min)
        self.levels_: tuple[float, ...] = ()
        self.coverages_: tuple[float | None, ...] = ()
        self.demands_: tuple[float, ...] = ()
        self.distributions_: list[Any] = []
        # Kept for `choose_lending`, which is asked again with other care; not saved.
        self._of_folds = [self._folds(data, horizon) for horizon in range(len(data.horizons_min))]
        for horizon, nested in enumerate(self._of_folds):
            learnt = data.learnt(horizon, data.until_s)
            # Demands go by windows that nothing was learnt from, where there are any.
            seen = data.load[learnt, horizon] if nested is None else nested.load
            demanded = demanded_coverage(seen, demands.coverage, demands.loaded_coverage)
            chosen, reached = (None, None) if nested is None else nested.smallest(demanded)
            # Without folds nothing can be calibrated: the demand itself is the level.
            self.levels_ += (demanded if chosen is None else self.candidates[chosen],)
            self.coverages_ += (reached,)
            self.demands_ += (demanded,)
            self.distributions_.append(self.fitted(data, horizon, learnt))
        self.choose_lending(demands.lending_coverage)
        return self

    def choose_lending(self, coverage: float) -> None:
        """Choose anew what a scheduler reserves: a share of all windows. Only after `fit`, not after `read`."""
        self.lending_levels_ = tuple(
            coverage if nested is None else self.candidates[nested.smallest(coverage)[0]] for nested in self._of_folds
        )

    def fitted(self, data: LoadData, horizon: int, rows: Mask) -> Any:
        """The distribution of a horizon, from some rows (N,)."""
        raise NotImplementedError

    def forecast(self, distribution: Any, X: NDArray[Any]) -> tuple[Floats, ...]:
        """What quantiles of rows (n, F) follow from, arrays (n, ...)."""
        raise NotImplementedError

    def nth(self, forecast: tuple[Floats, ...], number: int) -> Floats:
        """GPUs at a level of `candidates`, (n,)."""
        raise NotImplementedError

    def _folds(self, data: LoadData, horizon: int) -> Nested | None:
        """The folds' windows, forecast at each of the candidates; None where the time is too short for folds."""
        parts, later = [], []
        for known, scored in data.folds(horizon):
            distribution = self.fitted(data, horizon, known)
            parts.append(self.forecast(distribution, data.X[scored, horizon]))
            later.append(np.flatnonzero(scored))
        if not later:
            return None
        rows = np.concatenate(later)
        whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Nested(
            data.load[rows, horizon], data.tick_s[rows], lambda number: self.nth(whole, number), len(self.candidates)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what it reads for each horizon."""
        return load_feature_names()

    def rows(self, history: PoolHistory, ticks_s: Sequence[float] | Floats, horizons_min: Sequence[float]) -> Floats:
        """What it reads at some instants, (T, H, F)."""
        return load_features(history, ticks_s, MINUTE_S * np.asarray(horizons_min, np.float64))

    def instant_rows(
        self, features: Floats, histories: Iterable[PoolHistory], at_s: Sequence[float], horizons_min: Sequence[float]
    ) -> Floats:
        """What `rows` gives of several pools, each at its instant, (n_pools, H, F): these features are it."""
        return features

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "horizons": list(self.labels_),
            "columns": list(self.columns),
            **kept(self, KEPT),
        }

    def take_up(self, figures: Mapping[str, Any]) -> Self:
        """Read what `told` gave."""
        self.labels_ = tuple(figures["horizons"])
        take_up(self, figures, KEPT)
        return self


class QuantileLoad(LevelledLoad):
    """A quantile of the load's distribution, its level calibrated on windows that the trees have not learnt from.

    Parameters
    ----------
    seed : of the columns that a tree may look at
    settings : size of the trees; None takes the defaults
    """

    algorithm: ClassVar[str] = "quantile"
    candidates: ClassVar[Sequence[float]] = CANDIDATES
    distributions_: list[LoadDistribution]

    def __init__(self, seed: int = 0, settings: QuantileSettings | None = None):
        self.seed = seed
        self.settings = settings or QuantileSettings()

    def fitted(self, data: LoadData, horizon: int, rows: Mask) -> LoadDistribution:
        """See `LevelledLoad`."""
        X, load = data.X[rows, horizon], data.load[rows, horizon]
        return LoadDistribution().fit(X, load, self.settings, self.seed)

    def forecast(self, distribution: LoadDistribution, X: NDArray[Any]) -> tuple[Floats, ...]:
        """Shares and amounts."""
        return distribution.parts(X)

    def nth(self, forecast: tuple[Floats, ...], number: int) -> Floats:
        """See `LevelledLoad`."""
        share, amounts = forecast
        return quantile_of(share, amounts, CANDIDATES[number])

    def estimate(self, X: NDArray[Any], horizon: int) -> Floats:
        """GPUs from rows (n, F) of a horizon, (n,)."""
        return quantile_of(*self.distributions_[horizon].parts(X), self.levels_[horizon])

    def lend(self, X: NDArray[Any]) -> Floats:
        """GPUs that a scheduler reserves, from rows (n, H, F), (n, H)."""
        # A level for each row and horizon, flat as `parts` gives the rows.
        levels = np.empty(X.shape[:2])
        levels[:] = self.lending_levels_
        return quantile_of(*self.parts(X), levels.ravel()).reshape(X.shape[:2])

    def parts(self, X: NDArray[Any]) -> tuple[Floats, Floats]:
        """What `LoadDistribution.parts` gives of each horizon's rows (n, H, F), (n H,) and (n H, levels).

        Together, for each call of `quantile_of` costs as much as hundreds of rows.
        """
        share, amounts = np.empty(X.shape[:2]), np.empty((*X.shape[:2], len(LEVELS)))
        for horizon, distribution in enumerate(self.distributions_):
            share[:, horizon], amounts[:, horizon] = distribution.parts(X[:, horizon])
        return share.ravel(), amounts.reshape(-1, len(LEVELS))

    def quantiles(self, X: NDArray[Any], levels: Floats) -> Floats:
        """GPUs at each level, (n, H, L), from rows (n, H, F).

        All horizons and levels in one call, for each call costs as much as hundreds of rows.
        """
        share, amounts = self.parts(X)
        each: Any = np.tile(levels, len(share))
        gpus = quantile_of(np.repeat(share, len(levels)), np.repeat(amounts, len(levels), axis=0), each)
        return gpus.reshape(*X.shape[:2], len(levels))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "seed": self.seed,
            "settings": asdict(self.settings),
            **super().as_dict(),
            "shares": [one.share_ for one in self.distributions_],
            "amounts": [one.amounts_.tolist() for one in self.distributions_],
            "boosters": [sorted(one.texts()) for one in self.distributions_],
        }

    def write(self, folder: Path) -> None:
        """LightGBM's own text, a file a booster."""
        for label, distribution in zip(self.labels_, self.distributions_, strict=True):
            for name, text in distribution.texts().items():
                (folder / f"{label}-{name}.txt").write_text(text, encoding="utf-8", newline="")

    @classmethod
    def read(cls, saved: dict[str, Any], folder: Path) -> Self:
        """From what `told` and `write` gave."""
        rule = cls(saved["seed"], QuantileSettings(**saved["settings"])).take_up(saved)
        rule.distributions_ = [
            LoadDistribution.of_texts(
                {name: read_text(folder / f"{label}-{name}.txt") for name in names}, share, amounts
            )
            for label, names, share, amounts in zip(
                rule.labels_, saved["boosters"], saved["shares"], saved["amounts"], strict=True
            )
        ]
        return rule


_LEVEL_NAMES = tuple(f"q{level:g}" for level in LEVELS)


def _arrival_booster(X: Matrix, any_load: NDArray[np.bool_], settings: QuantileSettings, seed: int) -> Any:
    more = {
        "objective": "binary",
        "num_leaves": settings.arrival_leaves,
        "learning_rate": settings.arrival_learning_rate,
        "lambda_l2": settings.arrival_l2,
        "min_data_in_leaf": settings.min_rows_leaf,
    }
    data = booster_data(X, any_load.astype(np.float32))
    return trained_booster(data, settings, settings.arrival_trees, seed, THREADS, more)


def _quantile_booster(data: Any, least: int, level: float, settings: QuantileSettings, seed: int) -> Any:
    more = {"objective": "quantile", "alpha": level, "min_data_in_leaf": least}
    return trained_booster(data, settings, settings.trees, seed, THREADS, more)
