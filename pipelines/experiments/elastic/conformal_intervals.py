"""Intervals of completion times along a run: forecast at submissions, calibrated on a replay of the past, scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.completion.intervals import LEAST_S, Interval, IntervalTracker, Position, interval_figures
from jobcast.models.completion.job_completions import SizeForecaster
from jobcast.models.completion.job_size import DeclaredSizes
from jobcast.pipelines.experiments.elastic.rollouts import NO_PAST, Forecasters, Past, play_futures
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


NOBODY = Earlier(NO_PAST, np.zeros(0))


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
    sizes: SizeForecaster | None = None,
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
    sizes : how those count; None: as did best before the run
    progress : called with (jobs forecast, all)
    """
    sizes = None if declared else sizes or fit_sizes_at(run, earlier)
    drawn = []
    for number, job in enumerate(jobs):
        run.submit(job)
        # Up to its submission and no further: later jobs are not known by then.
        run.forecast(job + 1)
        drawn.append(play_futures(run, job, knowledge(run, earlier, sizes), futures=futures, seed=seed))
        if progress is not None:
            progress(number + 1, len(jobs))
    # On to the end, for what the jobs came to.
    run.submit(len(run.size_s))
    run.finish()
    at = np.array(jobs, dtype=np.int64)
    submit_s = run.jobs.submit_s[at]
    return Forecast(
        at,
        run.predicted_end_s[at] - submit_s,
        np.array(drawn) - submit_s[:, None],
        run.state.end_s[at] - submit_s,
    )


def fit_sizes_at(run: ElasticReplay, earlier: Earlier) -> SizeForecaster:
    """Settings of the forecaster of sizes, from jobs that ended by the instant that a run has come to.

    Raises ValueError when none has.
    """
    now_s, arrived = float(run.state.clock[CLOCK.now]), int(run.state.count[COUNT.arrived])
    # Of this run and of what came before it.
    ended, gone = ~np.isnan(run.state.end_s[:arrived]), earlier.end_s <= now_s
    size_s = np.concatenate([earlier.past.size_s[gone], run.size_s[:arrived][ended]])
    return SizeForecaster().fit(
        size_s, np.concatenate([earlier.past.most[gone], run.jobs.most[:arrived][ended]]).astype(np.int64)
    )


def knowledge(run: ElasticReplay, earlier: Earlier, sizes: SizeForecaster | None) -> Forecasters:
    """What is known at the instant that a run has come to: submissions up to it, sizes of jobs that ended by it."""
    now_s, arrived = float(run.state.clock[CLOCK.now]), int(run.state.count[COUNT.arrived])
    jobs, past = run.jobs, earlier.past
    state, gone = run.state, earlier.end_s <= now_s
    ended = np.concatenate([gone, ~np.isnan(state.end_s[:arrived])])
    size_s = np.concatenate([past.size_s, run.size_s[:arrived]])
    # Earlier jobs are taken to progress evenly until their end: their waits are not known.
    share = np.clip((now_s - past.submit_s) / (earlier.end_s - past.submit_s), 0.0, 1.0)
    done_s = np.concatenate([past.size_s * share, state.done_s[:arrived]])
    seen = Past(
        submit_s=np.concatenate([past.submit_s, jobs.submit_s[:arrived]]),
        # What has not ended must not be read by whoever draws.
        size_s=np.where(ended, size_s, np.nan),
        least=np.concatenate([past.least, jobs.least[:arrived]]),
        most=np.concatenate([past.most, jobs.most[:arrived]]),
        model=np.concatenate([past.model, jobs.model[:arrived]]),
    )
    if len(seen.submit_s) < 2:
        raise ValueError("arrivals are forecast from at least two submissions")
    gap_s = np.diff(seen.submit_s)
    if sizes is None:
        told_s = np.concatenate([past.size_s if past.declared_s is None else past.declared_s, jobs.size_s[:arrived]])
        return Forecasters(None, gap_s, seen, declared=DeclaredSizes.of(told_s, seen.size_s, seen.most))
    sample = sizes.sample(np.where(ended, size_s, done_s), ended, seen.most.astype(np.int64))
    return Forecasters(sample, gap_s, seen, sizes)


def replayed_positions(
    run: ElasticReplay, until_s: float, *, futures: int, seed: int, declared: bool = False
) -> list[Position]:
    """Where jobs of the past stand among futures, had each been asked about: what a tracker of a policy begins with.

    Parameters
    ----------
    run : of the past alone, at its beginning
    until_s : when what is asked now begins, seconds from the run's beginning: no later end is known
    futures, seed, declared : as of `forecast_run`

    None where too little of the past had ended for forecasts.
    """
    count = len(run.size_s)
    first = int(UNWARMED * count)
    jobs = np.arange(first, count, max(1, (count - first) // WARMED))
    run.submit(first)
    try:
        sizes = None if declared else fit_sizes_at(run, NOBODY)
        # A position needs fewer futures than an interval's ends.
        drawn = [_asked(run, job, knowledge(run, NOBODY, sizes), min(futures, ROUGH), seed) for job in jobs.tolist()]
    except ValueError:
        return []
    run.submit(count)
    run.advance(until_s)
    submit_s, end_s = run.jobs.submit_s[jobs], run.state.end_s[jobs]
    jct_s = np.where(np.isnan(end_s), np.inf, end_s - submit_s)
    found = Forecast(jobs, jct_s, np.array(drawn) - submit_s[:, None], jct_s)
    return past_positions(found, submit_s, until_s)


def past_positions(forecast: Forecast, submit_s: Floats, until_s: float) -> list[Position]:
    """Positions, as of an instant, of jobs that were submitted at `submit_s`, (n,) seconds; their times end at 0."""
    # None of them meets a job that is asked about later.
    result = IntervalTracker().positions(submit_s - until_s, forecast.actual_s, list(_lengths(forecast.futures_s)), 0.0)
    # Who starved in another load says that futures were too short, not by how much they are now.
    return [one.within(PAST_REACH) for one in result]


def _asked(run: ElasticReplay, job: int, known: Forecasters, futures: int, seed: int) -> Floats:
    run.submit(job + 1)
    return play_futures(run, job, known, futures=futures, seed=seed)


def _lengths(times_s: Floats) -> Floats:
    """Intervals are of logarithms: a job that would end at once is given a moment."""
    return np.maximum(times_s, LEAST_S)


def track(forecast: Forecast, submit_s: Floats, tracker: IntervalTracker) -> list[tuple[Interval, ...]]:
    """Intervals of the jobs of a run; `submit_s`: (n,) when they were submitted, seconds."""
    return tracker.track(submit_s, forecast.actual_s, list(_lengths(forecast.futures_s)))


def figures_of(forecast: Forecast, made: Sequence[tuple[Interval, ...]]) -> dict[str, Any]:
    """How good intervals are, see `interval_figures`, and median errors of points, %."""
    futures_s = _lengths(forecast.futures_s)
    return {
        **interval_figures(made, forecast.actual_s, futures_s),
        "point_err_p50_pct": _median_error(forecast.predicted_s, forecast.actual_s),
        "median_err_p50_pct": _median_error(np.median(futures_s, axis=1), forecast.actual_s),
    }


def _median_error(predicted_s: Floats, actual_s: Floats) -> float:
    return float(np.median(100.0 * np.abs(actual_s - predicted_s) / predicted_s))


WARMED = 50
"""Jobs of the past that are asked about, to begin with."""
PAST_REACH = 0.1
"""How far beyond their futures they count at most."""
ROUGH = 20
"""Futures drawn of each."""
UNWARMED = 0.3
"""Share of the past that is known before the first of them."""
