"""Which algorithm forecasts duration bins best on later jobs, the choice behind `auto`, and a search for its settings.

Which algorithm forecasts duration bins best on later jobs: the choice behind `auto`.

A search for the booster's settings over folds in order of time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jobcast.models.calibration_rates import FORECASTS
from jobcast.models.duration_booster import DurationSettings, log_loss
from jobcast.models.duration_calibration import Calibration
from jobcast.models.duration_data import DurationData, OutOfFold, out_of_fold, selection_table
from jobcast.models.job_duration import BLENDED, JobDuration
from jobcast.models.setting_search import Range, search_settings


def tune_durations(
    data: DurationData, until_s: float, trials: int, seed: int = 0
) -> tuple[DurationSettings, list[dict[str, Any]]]:
    """The settings with the least mean log loss over folds, and all trials in order.

    The first trial takes the defaults, so that the search cannot end worse on its folds. A trial that does worse than
    the median of the earlier ones after a fold is not followed further. Equal seeds give equal searches.

    Parameters
    ----------
    data : jobs; those that ended at or after `until_s` are not read
    trials : at least 1

    Returns
    -------
    Settings, and of each trial `trial, state, value` and its settings; `value` of a pruned one is its last mean. The
    defaults, and no trial, where the time is too short for folds.

    Raises
    ------
    TrainingError
        No job ended before `until_s`.
    """
    folds = list(data.known(until_s).folds(until_s))
    if not folds:
        return DurationSettings(), []

    def losses(values: dict[str, Any]) -> Iterator[float]:
        model = JobDuration(data.horizons_min, "lightgbm", settings=DurationSettings(**values), seed=seed)
        total = 0.0
        for number, (known, scored, from_s) in enumerate(folds, 1):
            # The booster alone: rules have no settings, and the calibration follows either.
            total += log_loss(model.booster_forecast(known, scored, from_s), scored.bins)
            yield total / number

    best, rows = search_settings(losses, RANGES, asdict(DurationSettings()), trials, seed)
    return DurationSettings(**best), [{key: value for key, value in row.items() if key != "folds"} for row in rows]


RANGES: Mapping[str, Range] = {
    "trees": Range(50, 400),
    "leaves": Range(3, 24),
    "learning_rate": Range(0.01, 0.15),
    "min_rows_leaf": Range(50, 1000),
    "l2": Range(0.1, 200.0),
    "column_share": Range(0.1, 0.9, log=False),
    "half_life_days": Range(5.0, 90.0),
}

FALLBACK = "tag-pool-width"
"""Where the training time is too short for folds: the rule of SIA, section 5.4.2, which learns next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What is taken, and how all have done.

    Attributes
    ----------
    algorithm : `blended`, which holds the others and turns to the best of them as jobs end; the rule without folds
    calibration : for `blended`, learnt on all folds
    table : figures by algorithm and fold, see `duration_data.selection_table`; empty without folds
    """

    algorithm: str
    calibration: Calibration
    table: list[dict[str, float | str]]


def select(
    data: DurationData, until_s: float, seed: int = 0, settings: DurationSettings | None = None, use_tags: bool = True
) -> Selection:
    """Compare all algorithms over folds in order of time, on jobs that ended before an instant.

    `blended` is scored as it would have been served: calibrated by the jobs known when each was submitted.

    Raises
    ------
    TrainingError
        No job ended before `until_s`.
    """
    # One model forecasts all parts of `blended`, of which two are algorithms of their own.
    learnt = JobDuration(data.horizons_min, BLENDED, use_tags=use_tags, settings=settings, seed=seed)
    last_n = JobDuration(data.horizons_min, "last-n")
    known = data.known(until_s)
    result = out_of_fold(known, until_s, {"parts": learnt.parts_forecast, "last-n": last_n.rule_forecast})
    calibration = Calibration.untaught(data.n_bins)
    if not len(result.bins):
        return Selection(FALLBACK, calibration, [])
    # (n_jobs, K, B), in the order of FORECASTS.
    parts = result.proba["parts"]
    by_name = {
        # Learns as it goes; afterwards it is the state that the chosen model begins with.
        BLENDED: calibration.taught(parts, known.among(result.job), until_s),
        "lightgbm": parts[:, FORECASTS.index("booster")],
        "tag-pool-width": parts[:, FORECASTS.index("tag_pool_width")],
        "last-n": result.proba["last-n"],
    }
    table = selection_table(OutOfFold(by_name, result.bins, result.fold), data.horizons_min)
    return Selection(BLENDED, calibration, table)
