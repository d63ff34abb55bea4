"""Forecasts as analysts hold them: a pandas frame with the usual column names, which draws itself."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl

from jobcast.domain.clock import MINUTE_S
from jobcast.domain.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNIQUE_ID, DS, CUTOFF, Y_PRED = "unique_id", "ds", "cutoff", "y_pred"
"""What is forecast, the instant until which, the instant at which, the value: as mlforecast and sktime name them."""
OF_WHAT = ("pool", "job_id")
VALUES = ("probability", "wait_s", "remaining_s", "left_s", "size_s", "gpus")
"""What answers are called, by which a predictor answers with one number a row: the first that is there, for jobs that
wait tell their GPUs, too."""
MOST_BARS = 30


class ForecastFrame(pd.DataFrame):
    """Answers of a version, a row each.

    `unique_id` is a pool or a job, `cutoff` when it was forecast, `ds` until when, `y_pred` the value: a probability,
    GPUs or seconds. The predictor's other columns follow under their own names; of run times these are the bins'
    probabilities, and there is no `ds`. `attrs` tells `predictor`, `version`, and whether the version was trained on
    what comes after the first cutoff (`overlap`).
    """

    @property
    def _constructor(self) -> type["ForecastFrame"]:
        return ForecastFrame

    def plot(self, ax: "Axes | None" = None) -> "Axes":  # type: ignore[override]
        """Draw the forecasts: over time where they are for instants, else a bar a row.

        Parameters
        ----------
        ax : to draw on; by default a new figure's

        Raises
        ------
        ConfigError
            No column holds a number.
        """
        from matplotlib import pyplot

        axes = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        if {DS, Y_PRED} <= set(self.columns):
            _draw_lines(self, axes)
        else:
            _draw_bars(self, axes)
        axes.set_title(f"{self.attrs.get('predictor', 'forecast')} {self.attrs.get('version', '')}".strip())
        return axes


def forecast_frame(answers: Sequence[tuple[float, pl.DataFrame]], figures: Mapping[str, Any]) -> ForecastFrame:
    """Answers at one instant or several as one frame.

    Parameters
    ----------
    answers : instant, seconds from the epoch, and what a predictor's `predict` answered then
    figures : kept in `attrs`

    >>> rows = pl.DataFrame({"pool": ["a"], "horizon_min": [5.0], "gpus": [3.0]})
    >>> frame = forecast_frame([(0.0, rows)], {"predictor": "new-load"})
    >>> list(frame.columns), frame["ds"].iloc[0].isoformat()
    (['unique_id', 'cutoff', 'ds', 'horizon_min', 'y_pred'], '1970-01-01T00:05:00+00:00')
    """
    frame = ForecastFrame(pl.concat([_renamed(at_s, rows) for at_s, rows in answers]).to_dict(as_series=False))
    frame.attrs.update(figures)
    return frame


def _renamed(at_s: float, rows: pl.DataFrame) -> pl.DataFrame:
    """Keys first, under analysts' names."""
    # Only as the first column: bins of run times have a pool beside the job.
    names = {name: UNIQUE_ID for name in OF_WHAT if name in rows.columns[:1]}
    names |= dict.fromkeys([name for name in VALUES if name in rows.columns][:1], Y_PRED)
    keys = [_instant(pl.lit(at_s), CUTOFF)]
    if "horizon_min" in rows.columns:
        keys.append(_instant(pl.lit(at_s) + MINUTE_S * pl.col("horizon_min"), DS))
    first = [name for name in rows.columns if names.get(name) == UNIQUE_ID]
    rest = [name for name in rows.columns if name not in first]
    return rows.with_columns(keys).select(*first, *(key.meta.output_name() for key in keys), *rest).rename(names)


def _instant(seconds: pl.Expr, name: str) -> pl.Expr:
    # Microseconds, rounded: floats of 1.7e9 s are exact to a few of them.
    return (seconds * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")).alias(name)


def _draw_lines(frame: pd.DataFrame, axes: "Axes") -> None:
    """A line a pool over the horizons of one cutoff; of several cutoffs a line a pool and horizon over these."""
    # One cutoff has horizons to draw over, several have time itself.
    over_cutoffs = frame[CUTOFF].nunique() > 1
    lines = [UNIQUE_ID, "horizon_min"] if over_cutoffs else [UNIQUE_ID]
    for key, rows in frame.groupby(lines):
        label = f"{key[0]}, {key[1]:g} min ahead" if over_cutoffs else str(key[0])
        axes.plot(rows[CUTOFF if over_cutoffs else DS], rows[Y_PRED], marker="o", label=label)
    axes.set(xlabel="forecast at" if over_cutoffs else "until", ylabel="forecast")
    axes.tick_params(axis="x", rotation=30)
    axes.legend()


def _draw_bars(frame: pd.DataFrame, axes: "Axes") -> None:
    """A bar a row, of the value or of shares beside one another; the first rows where there are many."""
    # Run times have no value, but a probability a bin.
    numbers = [Y_PRED] if Y_PRED in frame.columns else list(frame.select_dtypes("number").columns)
    if not numbers:
        raise ConfigError(f"nothing to draw: no column of {', '.join(map(str, frame.columns))} holds numbers")
    shown = frame.head(MOST_BARS)
    names = shown[UNIQUE_ID] if UNIQUE_ID in shown.columns else shown.index
    before = 0.0 * shown[numbers[0]]
    for name in numbers:
        axes.barh([str(one) for one in names], shown[name], left=before, label=str(name))
        before = before + shown[name]
    axes.set(xlabel="forecast", ylabel="")
    axes.legend()
