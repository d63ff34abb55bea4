"""Which algorithm forecasts duration bins best on later jobs: the choice behind `auto`."""

from dataclasses import dataclass

from jobcast.models.duration_blend import FIRST, Blend
from jobcast.models.duration_booster import DurationSettings
from jobcast.models.duration_data import DurationData
from jobcast.models.duration_folds import OutOfFold, blended_forward, out_of_fold, selection_table
from jobcast.models.job_duration import ALGORITHMS, JobDuration

FALLBACK = "tag-pool-width"
"""Where the training time is too short for folds: the rule of SIA, section 5.4.2, which learns next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The winner, and what it won by.

    Attributes
    ----------
    algorithm : least log loss out of fold
    blend : for `blended`, chosen on all folds
    table : figures by algorithm and fold, see `duration_folds.selection_table`; empty without folds
    """

    algorithm: str
    blend: Blend
    table: list[dict[str, float | str]]


def select(
    data: DurationData, until_s: float, seed: int = 0, settings: DurationSettings | None = None, use_tags: bool = True
) -> Selection:
    """Compare all algorithms over folds in order of time, on jobs that ended before an instant.

    `blended` is scored with the blends that the folds before each would have chosen.

    Raises
    ------
    TrainingError
        No job ended before `until_s`.
    """
    models = {
        name: JobDuration(data.horizons_min, name, use_tags=use_tags, settings=settings, seed=seed)
        for name in ALGORITHMS
    }
    learnt = models["blended"]
    parts = out_of_fold(
        data.ended(until_s),
        until_s,
        {
            "booster": learnt.booster_forecast,
            "shares": learnt.rule_forecast,
            "last-n": models["last-n"].rule_forecast,
        },
    )
    if not len(parts.bins):
        return Selection(FALLBACK, FIRST, [])
    booster, shares = parts.proba["booster"], parts.proba["shares"]
    by_name = {
        "blended": blended_forward(booster, shares, parts.bins, parts.fold),
        "lightgbm": booster,
        "tag-pool-width": shares,
        "last-n": parts.proba["last-n"],
    }
    table = selection_table(OutOfFold(by_name, parts.bins, parts.fold), data.horizons_min)
    return Selection(str(table[0]["algorithm"]), JobDuration.best_blend(parts), table)
