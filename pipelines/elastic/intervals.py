"""Intervals of completion times along a run: forecast at submissions, calibrated on a replay of the past, scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain.elastic import Floats, Ints
from jobcast.models.completion.arrivals import ArrivalModel
from jobcast.models.completion.calibration import LEVELS, IntervalCalibration
from jobcast.models.completion.sizes import SizeForecaster
from jobcast.pipelines.elastic.futures import Forecasters, Past, play_futures
from jobcast.simulator.elastic.run import ElasticReplay
from jobcast.simulator.elastic.state import CLOCK, COUNT

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """Jobs before a run begins, as the trace ran them; arrays (n_jobs,), times from the run's beginning, below 0.

    Attributes
    ----------
    past : all of them, with their sizes
    end_s : when each ended: its size is known from then on
    """

    past: Past
    end_s: Floats

    def __len__(self) -> int:
        return len(self.end_s)


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Forecasts made at submissions of some jobs of a run.

    Attributes
    ----------
    job : (n,) ids
    predicted_s : (n,) JCT with sizes as declared and nothing more arriving, seconds
    futures_s : (n, n_futures) JCT in each future, seconds
    actual_s : (n,) JCT that the run came to, seconds
    """

    job: Ints
    predicted_s: Floats
    futures_s: Floats
    actual_s: Floats


def forecast_run(
    run: ElasticReplay,
    earlier: Earlier,
    jobs: Sequence[int],
    *,
    futures: int,
    seed: int,
    declared: bool = False,
    progress: Progress | None = None,
) -> Forecast:
    """Run to the end, playing futures at the submission of some jobs. What is known at an instant is all that is used.

    Parameters
    ----------
    run : at its beginning
    earlier : jobs before it
    jobs : ids, ascending
    futures, seed : of `play_futures`
    declared : whether sizes of active jobs are declared; else they are drawn from those of jobs that ended before
    progress : called with (jobs forecast, all)
    """
    sizes = None if declared else fit_sizes(earlier)
    drawn = []
    for number, job in enumerate(jobs):
        run.forecast(job + 1)
        drawn.append(play_futures(run, job, knowledge(run, earlier, sizes), futures=futures, seed=seed))
        if progress is not None:
            progress(number + 1, len(jobs))
    run.forecast(len(run.size_s))
    run.finish()
    at = np.array(jobs, dtype=np.int64)
    submit_s = run.jobs.submit_s[at]
    return Forecast(
        at,
        run.predicted_end_s[at] - submit_s,
        np.array(drawn) - submit_s[:, None],
        run.state.end_s[at] - submit_s,
    )


def fit_sizes(earlier: Earlier) -> SizeForecaster:
    """Settings of the forecaster of sizes, from jobs that ended before the run. Raises ValueError when none has."""
    known = earlier.end_s <= 0.0
    return SizeForecaster().fit(earlier.past.size_s[known], earlier.past.most[known].astype(np.int64))


def knowledge(run: ElasticReplay, earlier: Earlier, sizes: SizeForecaster | None) -> Forecasters:
    """What is known at the instant that a run has come to: submissions up to it, sizes of jobs that ended by it."""
    now_s, arrived = float(run.state.clock[CLOCK.now]), int(run.state.count[COUNT.arrived])
    jobs, past = run.jobs, earlier.past
    state, gone = run.state, earlier.end_s <= now_s
    ended = np.concatenate([gone, ~np.isnan(state.end_s[:arrived])])
    size_s = np.concatenate([past.size_s, run.size_s[:arrived]])
    share = np.clip((now_s - past.submit_s) / (earlier.end_s - past.submit_s), 0.0, 1.0)
    done_s = np.concatenate([past.size_s * share, state.done_s[:arrived]])
    seen = Past(
        submit_s=np.concatenate([past.submit_s, jobs.submit_s[:arrived]]),
        size_s=np.where(ended, size_s, np.nan),
        least=np.concatenate([past.least, jobs.least[:arrived]]),
        most=np.concatenate([past.most, jobs.most[:arrived]]),
        model=np.concatenate([past.model, jobs.model[:arrived]]),
    )
    arrivals = ArrivalModel().fit(seen.submit_s)
    if sizes is None:
        return Forecasters(None, arrivals, seen)
    return Forecasters(sizes.sample(np.where(ended, size_s, done_s), ended, seen.most.astype(np.int64)), arrivals, seen)


def interval_figures(forecast: Forecast, calibration: IntervalCalibration | None = None) -> dict[str, float]:
    """Figures of intervals: coverage, width over the median forecast, and the error of the median, all in %.

    Without a calibration the bare quantiles of the futures.
    """
    median_s = np.median(forecast.futures_s, axis=1)
    figures = {
        "jobs": float(len(forecast.job)),
        "point_err_p50_pct": _median_error(forecast.predicted_s, forecast.actual_s),
        "median_err_p50_pct": _median_error(median_s, forecast.actual_s),
    }
    for level in LEVELS:
        if calibration is None:
            tails = [(1.0 - level) / 2.0, 1.0 - (1.0 - level) / 2.0]
            bounds = np.quantile(forecast.futures_s, tails, axis=1).T
        else:
            bounds = calibration.intervals(forecast.futures_s, level)
        name = f"{level:.0%}".rstrip("%")
        held = (bounds[:, 0] <= forecast.actual_s) & (forecast.actual_s <= bounds[:, 1])
        figures[f"coverage_{name}_pct"] = 100.0 * float(held.mean())
        figures[f"below_{name}_pct"] = 100.0 * float((forecast.actual_s < bounds[:, 0]).mean())
        figures[f"factor_{name}_p50"] = float(np.median(bounds[:, 1] / bounds[:, 0]))
    return figures


def _median_error(predicted_s: Floats, actual_s: Floats) -> float:
    return float(np.median(100.0 * np.abs(actual_s - predicted_s) / predicted_s))
