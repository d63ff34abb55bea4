"""When MLFS's jobs come, and how long they run before they are scaled: from a trace, or a Poisson process."""

from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.traces.generators.mlfs_config import DRAWN, MlfsConfig
from jobcast.traces.table import Trace

DAY_S, WEEK_S = 86400.0, 604800.0
SWING = 0.5
PEAK_S = 14 * 3600.0
"""Without a trace, the rate of arrivals swings by half of its mean over a day and is highest at 14:00; ours."""
GRID_S = 300.0
MEDIAN_S, LOG_SD = 1194.0, 2.1
"""Without a trace, run times are lognormal with the median and spread of Philly's (71,570 jobs, 2017)."""


class Arrivals(NamedTuple):
    """Jobs in order of submission.

    Attributes
    ----------
    submit_s : (n_jobs,) seconds from the epoch
    duration_s : (n_jobs,) run times, up to a common factor
    """

    submit_s: Floats
    duration_s: Floats


def arrivals_of(config: MlfsConfig, rng: np.random.Generator) -> Arrivals:
    """Draw jobs of some weeks of the trace, or of a Poisson process with a daily rhythm where none is given.

    Raises TraceError and ConfigError.
    """
    if not config.arrivals:
        return _poisson(config, rng)
    from jobcast.traces.readers import read_trace

    return _of_weeks(read_trace(config.arrivals), config, rng)


def _of_weeks(trace: Trace, config: MlfsConfig, rng: np.random.Generator) -> Arrivals:
    """Jobs of the weeks, each at most once as long as there are enough."""
    begin_s = float(trace.submit_s[0])
    within_s = trace.submit_s - begin_s
    first = _first_week(within_s, config, rng)
    low, high = np.searchsorted(within_s, (first * WEEK_S, (first + config.weeks) * WEEK_S))
    if high <= low:
        raise ConfigError(f"mlfs: {config.arrivals} has no job in week {first}; set another week")
    rows = low + np.sort(rng.choice(high - low, config.jobs, replace=high - low < config.jobs))
    return Arrivals(trace.submit_s[rows], trace.duration_s[rows])


def _first_week(within_s: Floats, config: MlfsConfig, rng: np.random.Generator) -> int:
    """The week that is set, or one drawn among those with enough jobs; the last, cut short, only if no other has."""
    if config.week != DRAWN:
        return config.week
    counts = np.bincount((within_s // WEEK_S).astype(np.int64))
    sums = np.convolve(counts, np.ones(config.weeks, dtype=np.int64), mode="valid")
    whole = sums[: len(sums) - 1] if len(sums) > 1 else sums
    if not len(whole):
        return 0
    enough = np.flatnonzero(whole >= config.jobs)
    return int(rng.choice(enough)) if len(enough) else int(np.argmax(sums))


def _poisson(config: MlfsConfig, rng: np.random.Generator) -> Arrivals:
    """Given their number, arrivals of a Poisson process are independent draws from its rate."""
    grid = np.arange(0.0, config.weeks * WEEK_S + GRID_S, GRID_S)
    rate = 1.0 + SWING * np.cos(2 * np.pi * (grid - PEAK_S) / DAY_S)
    share = np.concatenate([[0.0], np.cumsum(rate[:-1])])
    at_s = np.sort(np.interp(rng.random(config.jobs), share / share[-1], grid))
    duration_s = MEDIAN_S * np.exp(LOG_SD * rng.standard_normal(config.jobs))
    return Arrivals(config.start.timestamp() + at_s, duration_s)
