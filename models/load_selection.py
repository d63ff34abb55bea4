"""Which estimate of load to take, and how large its trees: by the last folds of the training time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.horizons import horizon_label
from jobcast.models.load_data import FOLD_SHARE, Demands, LoadData, over_estimation
from jobcast.models.load_quantile import QuantileLoad, QuantileSettings
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.setting_search import Range, search_settings

SHORT = 0.2
"""By which share an estimate may miss more windows than the demand allows before it counts as one that does not hold:
at 95 % down to 94 %. Of a pool that is nearly always empty the demand is near 1, and an estimate of nothing near it."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """An algorithm on the last fifth of the training time, which it has neither learnt from nor been calibrated on.

    Attributes
    ----------
    algorithm : its name
    coverages, demands, overs : (H,) share of the windows that it covers, share demanded, GPUs said over GPUs that came
    """

    algorithm: str
    coverages: tuple[float, ...]
    demands: tuple[float, ...]
    overs: tuple[float, ...]

    @property
    def rank(self) -> tuple[int, float]:
        """Fewest horizons that fall short; of equals, the least over-estimation (geometric mean over horizons)."""
        pairs = zip(self.coverages, self.demands, strict=True)
        short = sum(1.0 - covered > (1.0 + SHORT) * (1.0 - demanded) for covered, demanded in pairs)
        return short, float(np.mean(np.log(np.maximum(self.overs, 1e-9))))


def scored(data: LoadData, rule: QuantileLoad | SlidingMax, demands: Demands) -> Scored | None:
    """A rule fitted on all but the last fifth of the time and scored there; None where the time is too short."""
    # As long as a fold, at the end; neither learnt from nor calibrated on.
    begin_s = data.until_s - FOLD_SHARE * (data.until_s - data.from_s)
    horizons = range(len(data.horizons_min))
    later = [(data.tick_s >= begin_s) & data.learnt(h, data.until_s) for h in horizons]
    if not all(rows.any() for rows in later) or not all(data.learnt(h, begin_s).any() for h in horizons):
        return None
    # The same rows of an earlier end: `learnt` leaves out all windows that reach it.
    earlier = LoadData(data.from_s, begin_s, data.horizons_min, data.tick_s, data.X, data.past, data.load)
    rule.fit(earlier, demands)
    lines = []
    for horizon, rows in enumerate(later):
        load = data.load[rows, horizon]
        X = data.past[rows, horizon] if isinstance(rule, SlidingMax) else data.X[rows, horizon]
        estimate = rule.estimate(X, horizon)
        lines.append((float((load <= estimate).mean()), rule.demands_[horizon], over_estimation(load, estimate)))
    coverages, demanded, overs = zip(*lines, strict=True)
    return Scored(rule.algorithm, coverages, demanded, overs)


def select(
    data: LoadData, demands: Demands, seed: int = 0, settings: QuantileSettings | None = None
) -> tuple[str, list[Row]]:
    """The algorithm that reserves least while it covers what is demanded, and the table that tells so.

    Where the time is too short to score any, the sliding maximum, which has least to learn, and an empty table.
    """
    rules = (QuantileLoad(seed, settings), SlidingMax())
    results = [one for rule in rules if (one := scored(data, rule, demands)) is not None]
    if not results:
        return SlidingMax.algorithm, []
    # Pairs compare by horizons that fall short, then by over-estimation.
    best = min(results, key=lambda one: one.rank)
    table: list[Row] = [
        {
            "algorithm": one.algorithm,
            "horizon": horizon_label(data.horizons_min[h]),
            "demanded": one.demands[h],
            "coverage": one.coverages[h],
            "over": one.overs[h],
            "chosen": one is best,
        }
        for one in results
        for h in range(len(data.horizons_min))
    ]
    return best.algorithm, table


def tune_loads(data: LoadData, demands: Demands, trials: int, seed: int = 0) -> tuple[QuantileSettings, list[Row]]:
    """Settings of the trees with the least over-estimation at the demanded coverage, and all trials in order.

    A trial is scored on the last fifth of the time (`scored`); each horizon that falls short costs as much as a
    doubled estimate. The first trial takes the defaults. Equal seeds give equal searches.
    """
    if scored(data, SlidingMax(), demands) is None:
        return QuantileSettings(), []

    def losses(values: dict[str, Any]) -> Iterator[float]:
        result = scored(data, QuantileLoad(seed, QuantileSettings(**values)), demands)
        assert result is not None  # the time was long enough for the sliding maximum
        short, log_over = result.rank
        # log 2, since over-estimation is on a log scale. One value only: nothing to prune by.
        yield log_over + short * float(np.log(2.0))

    # Settings of "any load?" are not searched.
    first = {name: getattr(QuantileSettings(), name) for name in RANGES}
    best, rows = search_settings(losses, RANGES, first, trials, seed, prunes=False)
    return QuantileSettings(**best), [{key: value for key, value in row.items() if key != "folds"} for row in rows]


RANGES: Mapping[str, Range] = {
    "trees": Range(20, 200),
    "leaves": Range(3, 16),
    "learning_rate": Range(0.02, 0.2),
    "min_rows_leaf": Range(50, 1000),
    "l2": Range(0.1, 100.0),
    "column_share": Range(0.2, 1.0, log=False),
}
