"""NewLoadEstimate: a conservative estimate of the GPUs that will arrive in a pool. SIA, section 5.4.1.

Quantiles of the load to come, at any level, from either algorithm of `NewLoad`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.models.care import Care
from jobcast.models.feature_spans import feature_spans
from jobcast.models.load_data import COVERAGE, LENDING_COVERAGE, LOADED_COVERAGE, Demands, LoadData
from jobcast.models.load_quantile import QuantileLoad, QuantileSettings
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.metadata import kept, read_metadata, take_up, write_metadata

ALGORITHMS: Mapping[str, type[QuantileLoad] | type[SlidingMax]] = {
    rule.algorithm: rule for rule in (QuantileLoad, SlidingMax)
}
"""Estimates by the name that users give."""
# What was fitted and is kept in `metadata.json` beside the parameters and the rule.
KEPT = ("horizons_min_", "pools_", "trained_from_s_", "trained_until_s_")


class NewLoad:
    """Load that is passed by few windows: `coverage` of all, and `loaded_coverage` of those with load, hold no more.

    Parameters
    ----------
    algorithm : `quantile`, a calibrated quantile of the load's distribution (`load_quantile`), or `sliding-max`, the
        largest of the last windows (`load_sliding`, the paper's)
    coverage, loaded_coverage : shares to cover, in (0, 1]
    lending_coverage : share of all windows that `lend`, what a scheduler reserves, shall cover
    seed : of the trees
    settings : size of the trees; None takes the defaults

    Attributes
    ----------
    horizons_min_ : (H,) horizons in minutes
    rule_ : the fitted estimate; `rule_.coverages_` states the coverage of windows that it had not learnt from
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    pools_ : pools that it has learnt from; any pool is answered
    feature_spans_ : column -> least and largest value of the training rows; see `feature_spans`
    """

    name: ClassVar[str] = "new-load"
    answers: ClassVar[Question] = Question.LOADS
    algorithms: ClassVar[Sequence[str]] = tuple(ALGORITHMS)

    def __init__(
        self,
        algorithm: str = QuantileLoad.algorithm,
        coverage: float = COVERAGE,
        loaded_coverage: float = LOADED_COVERAGE,
        lending_coverage: float = LENDING_COVERAGE,
        seed: int = 0,
        settings: QuantileSettings | None = None,
    ):
        self.algorithm = algorithm
        self.coverage = coverage
        self.loaded_coverage = loaded_coverage
        self.lending_coverage = lending_coverage
        self.seed = seed
        self.settings = settings

    def fit(
        self, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, horizons_min: Sequence[float]
    ) -> Self:
        """Learn from the windows of [from, until).

        Parameters
        ----------
        histories : events by pool; what lies before `from_s` is read as history, nothing from `until_s` on
        from_s, until_s : seconds from the epoch
        horizons_min : (H,) horizons in minutes

        Raises
        ------
        TrainingError
            There is no pool, or a horizon is longer than the window.
        RegistryError
            There is no such algorithm.
        """
        if not histories:
            raise TrainingError(f"{self.name}: no pool has enough jobs in the training time; widen the window")
        self.pools_ = tuple(sorted(histories))
        return self.fit_data(LoadData.of(histories, from_s, until_s, horizons_min))

    def fit_data(self, data: LoadData) -> Self:
        """Learn from rows that are built already; see `fit`. Pools are not named by these."""
        for horizon, horizon_min in enumerate(data.horizons_min):
            if not data.learnt(horizon, data.until_s).any():
                raise TrainingError(
                    f"{self.name}: no window of {horizon_label(horizon_min)} in the training time; train on a longer "
                    f"trace or leave the horizon out"
                )
        self.horizons_min_ = data.horizons_min
        self.trained_from_s_, self.trained_until_s_ = data.from_s, data.until_s
        self.rule_ = self._rule().fit(data, self.demands)
        # Spans are of what the rule reads, no more.
        read = data.past[:, :, : len(self.columns)] if isinstance(self.rule_, SlidingMax) else data.X
        self.feature_spans_ = feature_spans(self.columns, [read])
        return self

    def _rule(self) -> QuantileLoad | SlidingMax:
        if self.algorithm not in ALGORITHMS:
            raise RegistryError(f"algorithm {self.algorithm!r} is not known; choose from {', '.join(ALGORITHMS)}")
        return QuantileLoad(self.seed, self.settings) if self.algorithm == QuantileLoad.algorithm else SlidingMax()

    def take(self, care: Care) -> None:
        """Choose anew what `lend_rows` covers. Only after `fit`: what `load` reads does not hold what it comes from."""
        self.lending_coverage = care.lending_coverage
        self.rule_.choose_lending(self.demands.lending_coverage)

    @property
    def demands(self) -> Demands:
        """What is to be covered: neither windows with load nor a scheduler's shall hold more than all do."""
        return Demands.of(self.coverage, self.loaded_coverage, self.lending_coverage)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what it reads for each horizon."""
        return self.rule_.columns

    @property
    def coverages_(self) -> tuple[float | None, ...]:
        """(H,) coverage of windows in the training time; for `quantile` of such as it had not learnt from."""
        return self.rule_.coverages_

    def rows(self, history: PoolHistory, ticks_s: ArrayLike) -> Floats:
        """What it reads at some instants of one pool, (T, H, F)."""
        return self.rule_.rows(history, np.asarray(ticks_s, np.float64), self.horizons_min_)

    def instant_rows(self, features: Floats, histories: Iterable[PoolHistory], at_s: Sequence[float]) -> Floats:
        """What it reads of several pools, each at its instant, (n_pools, H, F), from their `features.load_features`."""
        return self.rule_.instant_rows(features, histories, at_s, self.horizons_min_)

    def predict_rows(self, X: NDArray[Any]) -> Floats:
        """GPUs from rows (n, H, F), (n, H). A longer window never holds less than a shorter one."""
        estimates = [self.rule_.estimate(X[:, h], h) for h in range(len(self.horizons_min_))]
        # Horizons are learnt apart, so that their estimates may cross.
        return _rising(np.stack(estimates, axis=1))

    def lend_rows(self, X: NDArray[Any]) -> Floats:
        """GPUs that a scheduler reserves where jobs are forecast to arrive, from rows (n, H, F), (n, H)."""
        return _rising(self.rule_.lend(X))

    def predict(self, history: PoolHistory, ticks_s: ArrayLike) -> Floats:
        """GPUs (sum of widths) that may arrive in (t, t + k].

        Parameters
        ----------
        history : events of one pool; may reach past the instants, which changes nothing
        ticks_s : (T,) ascending instants, seconds from the epoch

        Returns
        -------
        (T, H)
        """
        return self.predict_rows(self.rows(history, ticks_s))

    def save(self, folder: Path) -> None:
        """Write `metadata.json` and what the algorithm keeps beside it; equal models, equal bytes."""
        result = {
            "algorithm": self.algorithm,
            "coverage": self.coverage,
            "loaded_coverage": self.loaded_coverage,
            "lending_coverage": self.lending_coverage,
            "seed": self.seed if self.algorithm == QuantileLoad.algorithm else 0,  # rules draw nothing
            "rule": self.rule_.as_dict(),
            "feature_spans": self.feature_spans_,
            **kept(self, KEPT),
        }
        write_metadata(folder, self.name, result)
        self.rule_.write(folder)

    @classmethod
    def read_rule(cls, algorithm: str, saved: dict[str, Any], folder: Path) -> QuantileLoad | SlidingMax:
        """The fitted estimate of an algorithm from what it told and wrote."""
        return ALGORITHMS[algorithm].read(saved, folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        RegistryError
            The folder does not hold such a model, or one that reads other features than this version builds.
        """
        saved = read_metadata(folder, cls.name)
        # Versions of before named other algorithms; what they kept cannot be read.
        if saved.get("algorithm") not in cls.algorithms:
            raise RegistryError(f"{folder}: a model of an older version of {cls.name}; train it again")
        model = cls(
            saved["algorithm"], saved["coverage"], saved["loaded_coverage"], saved["lending_coverage"], saved["seed"]
        )
        rule = cls.read_rule(model.algorithm, saved["rule"], folder)
        # A sliding maximum keeps no columns: they follow from its windows.
        if tuple(saved["rule"].get("columns", rule.columns)) != rule.columns:
            raise RegistryError(f"{folder}: {cls.name} reads other features than this version builds; train it again")
        model.rule_, model.settings = rule, getattr(rule, "settings", None)
        take_up(model, saved, KEPT)
        model.feature_spans_ = saved.get("feature_spans", {})  # versions of before have none
        return model


def total_new_load(arrives: NDArray[np.bool_], estimate: NDArray[Any]) -> Floats:
    """TotalNewLoad: the estimate where jobs are forecast to arrive, else nothing. SIA, section 5.4.1.

    >>> total_new_load(np.array([True, False]), np.array([4.0, 8.0])).tolist()
    [4.0, 0.0]
    """
    return np.where(arrives, estimate, 0.0)


def load_quantiles(loads: NewLoad, X: NDArray[Any], levels: Sequence[float]) -> Floats:
    """GPUs that the loads of several windows stay within with given probabilities, whatever is demanded of estimates.

    The learnt distribution as it is; below the median and above the highest quantile of the windows with load it is
    flat. Of `sliding-max`, the empirical quantiles of the past windows that it looks at.

    Parameters
    ----------
    loads : a fitted estimate
    X : (n, H, F) its rows
    levels : (L,) probabilities in (0, 1)

    Returns
    -------
    (n, H, L); a longer window never holds less than a shorter one.
    """
    return _rising(loads.rule_.quantiles(X, np.asarray(levels, np.float64)))


def _rising(by_horizon: Floats) -> Floats:
    """A longer window, (n, H, ...), never holds less than a shorter one."""
    return np.maximum.accumulate(by_horizon, axis=1)
