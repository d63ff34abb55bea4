"""How good forecasts of pending jobs' waits are: distances of logarithms, coverage of the bound, beside rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.clock import WEEK_S
from jobcast.features.queue_state import JOB, queue_columns
from jobcast.features.wait_rows import WaitRows
from jobcast.models.evaluation.intervals import DRAWS, DayDraws, days_of
from jobcast.models.metadata import booster_data, trained_booster
from jobcast.models.queue_wait import BOUND, MEDIAN, THREADS, Fold, HazardSettings, moved, shifts_of
from jobcast.models.scores import Figure, defined, mean
from jobcast.traces.readers.queue_snapshots import AHEAD, SHARES
from jobcast.traces.table import Trace

POINTS = ("mse_log10", "within_2x", "within_3x", "median_factor")
"""Figures of a point; rules have no others."""
PLAIN = tuple(queue_columns().index(name) for name in (*JOB, *AHEAD, *SHARES))
"""Columns of the job and of its snapshot, without what became of others."""
PLAIN_SETTINGS = HazardSettings(trees=300, leaves=63, learning_rate=0.05, column_share=0.5)
POOL_MEDIAN, LIGHTGBM_L1 = "pool_median", "lightgbm_l1"


@dataclass(frozen=True, slots=True, eq=False)
class WaitScores:
    """Forecasts of waits beside what came, (n,) each.

    Attributes
    ----------
    at_s : when the forecast was made, seconds from the epoch
    wait_s : from then to the start; of those that never started infinite
    waited_s : from then to the start, or to the last that the trace tells of
    told_s : (n, levels) quantiles
    on_gpus : whether the job asks for any
    block : number of the account and day: jobs of one script wait together
    rules : points of rules, seconds, by name
    """

    at_s: Floats
    wait_s: Floats
    waited_s: Floats
    told_s: Floats
    on_gpus: Bools
    block: Ints
    rules: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: WaitRows, told_s: Floats, trace: Trace, rules: Mapping[str, Floats] | None = None) -> Self:
        """Rows of a trace."""
        account, day = rows.account, days_of(rows.at_s)
        _, block = np.unique(np.column_stack([account, day]), axis=0, return_inverse=True)
        wait_s = np.maximum(rows.start_s - rows.at_s, 1.0)
        waited_s = np.minimum(wait_s, trace.last_known_s - rows.at_s)
        return cls(rows.at_s, wait_s, waited_s, told_s, trace.gpus[rows.job] > 0, block.ravel(), dict(rules or {}))

    def __len__(self) -> int:
        return len(self.at_s)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Rows of several stretches of time; rules that all have."""
        columns = [[getattr(one, one_of.name) for one in parts] for one_of in fields(cls) if one_of.name != "rules"]
        names = [name for name in parts[0].rules if all(name in one.rules for one in parts)]
        rules = {name: np.concatenate([one.rules[name] for one in parts]) for name in names}
        return cls(*map(np.concatenate, columns), rules)  # type: ignore[call-arg, arg-type]

    @property
    def started(self) -> Bools:
        """(n,) whether the wait came to an end."""
        return np.isfinite(self.wait_s)

    def decided(self, end: int) -> Bools:
        """(n,) whether it is known if a quantile holds: also of jobs that have waited past it and still wait."""
        return self.started | (self.waited_s > self.told_s[:, end])

    def among(self, mask: Bools) -> Self:
        """Some of the rows."""
        plain = {one.name: getattr(self, one.name)[mask] for one in fields(self) if one.name != "rules"}
        return replace(self, **plain, rules={name: described[mask] for name, described in self.rules.items()})


def wait_figures(scores: WaitScores, from_s: float, draws: int = DRAWS, seed: int = 0) -> dict[str, Any]:
    """All figures of the jobs that started, and intervals by drawing accounts and days.

    Parameters
    ----------
    from_s : when the first week begins, seconds from the epoch
    draws : 0 gives no intervals

    Returns
    -------
    `n, mse_log10, within_2x, within_3x, median_factor` of the median, `coverage_90, bound_median_s` of the one-sided
    90 % bound, `wait_median_s`; `unknown`, rows that never started, which count only where coverage is decided
    already; the same of `groups` with and without GPUs, `weeks`, points of `baselines`, and how far the error is from
    theirs in `against`.
    """
    groups = {"gpu": scores.among(scores.on_gpus), "cpu": scores.among(~scores.on_gpus)}
    week, known = np.floor((scores.at_s - from_s) / WEEK_S), scores.among(scores.started)
    over = {name: part.among(part.started) for name, part in groups.items()}
    return {
        **_block(scores),
        "unknown": len(scores) - len(known),
        "groups": {name: _block(part) for name, part in groups.items()},
        "weeks": [
            {"from_s": from_s + WEEK_S * number, **_block(scores.among(week == number))} for number in np.unique(week)
        ],
        "baselines": {
            name: {
                **points(described, known.wait_s),
                "groups": {key: points(one.rules[name], one.wait_s) for key, one in over.items()},
            }
            for name, described in known.rules.items()
        },
        **(_intervals({"all": scores, **groups}, draws, seed) if draws else {}),
    }


def points(told_s: Floats, wait_s: Floats) -> dict[str, Figure]:
    """Figures of points, (n,) seconds.

    >>> points(np.array([10.0, 100.0]), np.array([10.0, 10.0]))["within_2x"]
    0.5
    """
    off = np.abs(np.log10(told_s) - np.log10(wait_s))
    shares = (mean(off**2), mean(off <= np.log10(2.0)), mean(off <= np.log10(3.0)))
    return dict(zip(POINTS, (*shares, float(10.0 ** np.median(off)) if len(off) else None), strict=True))


def _block(scores: WaitScores) -> dict[str, Any]:
    known, held = scores.among(scores.started), _held(scores)
    low, high = scores.told_s[:, MEDIAN - 1], scores.told_s[:, MEDIAN + 1]
    middle = ((scores.wait_s >= low) & (scores.wait_s <= high))[scores.decided(MEDIAN + 1)]
    return {
        "n": len(known),
        **points(known.told_s[:, MEDIAN], known.wait_s),
        "coverage_90": mean(held),
        "coverage_50": mean(middle),
        "bound_median_s": defined(np.median(known.told_s[:, BOUND])) if len(known) else None,
        "wait_median_s": defined(np.median(known.wait_s)) if len(known) else None,
    }


def _held(scores: WaitScores) -> Bools:
    """Whether the bound held, of the rows of which that is decided."""
    return np.asarray(scores.wait_s <= scores.told_s[:, BOUND])[scores.decided(BOUND)]


def _intervals(groups: Mapping[str, WaitScores], draws: int, seed: int) -> dict[str, Any]:
    """`intervals` of figures, and `against` rules, by group: the error less theirs, with its interval."""
    result: dict[str, Any] = {"intervals": {}, "against": {}}
    for group, scores in groups.items():
        known = scores.among(scores.started)
        off = _squared(known.told_s[:, MEDIAN], known.wait_s)
        # Whole blocks are drawn anew, the same for all.
        blocks, decided = (DayDraws(one, draws, seed) for one in (known.block, scores.block[scores.decided(BOUND)]))
        result["intervals"][group] = {"mse_log10": blocks.of_mean(off), "coverage_90": decided.of_mean(_held(scores))}
        for name, rule in known.rules.items():
            less = off - _squared(rule, known.wait_s)
            figures = {"mse_log10": mean(less), "interval": blocks.of_mean(less)}
            result["against"].setdefault(name, {})[group] = figures
    return result


def _squared(told_s: Floats, wait_s: Floats) -> Floats:
    return np.asarray((np.log10(told_s) - np.log10(wait_s)) ** 2)


def plain_l1(known: WaitRows, until_s: float, asked: WaitRows, seed: int = 0) -> Floats:
    """Waits (n_asked,) s by LightGBM's l1 on log10, from the columns of the job and its snapshot: a rule to beat.

    It learns from the waits that were over by `until_s` and leaves out the others, as is usual.
    """
    rows = known.among(known.started(until_s))
    more = {"objective": "l1", "bagging_fraction": 0.7, "bagging_freq": 1}
    y, settings = rows.log_wait(), PLAIN_SETTINGS
    booster = trained_booster(booster_data(rows.X[:, PLAIN], y), settings, settings.trees, seed, THREADS, more)
    return np.asarray(10.0 ** booster.predict(asked.X[:, PLAIN], num_threads=THREADS))


def fold_figures(folds: Sequence[Fold], until_s: float, by_drain: bool = False) -> dict[str, Figure]:
    """Of the last fold, whose quantiles are moved by what the others showed, or by its drain times; {} without two.

    `mae_log10`, `mse_log10`, `within_2x`, `within_3x` of the waits that were over, `coverage_90` of those whose bound
    was passed, or the wait over, by then.
    """
    if len(folds) < 2:
        return {}
    last = folds[-1]
    result, logs, known = (
        last.drained if by_drain else moved(last.forecast, shifts_of(folds[:-1], until_s)),
        last.rows.log_wait(until_s),
        last.rows.started(until_s),
    )
    off = np.abs(result[:, MEDIAN] - logs)[known]
    decided = known | (logs > result[:, BOUND])
    figures = points(10.0 ** result[known, MEDIAN], 10.0 ** logs[known])
    return {**figures, "n": len(off), "mae_log10": mean(off), "coverage_90": mean((logs <= result[:, BOUND])[decided])}
