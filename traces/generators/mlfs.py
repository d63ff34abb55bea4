"""MLFS's workload: training jobs split into tasks by model and data parallelism (MLFS, section 4.1).

Run times are scaled by one factor, so that jobs offer the load that is set: the mean over jobs of (shares of GPUs of
all tasks x run time) is load x 80 GPUs x one week / 620. A run time is that of all iterations where nothing holds a
task up and nothing has to be sent. An iteration is as much work as lies between two exchanges of results: where a batch
is so short that its communications would take more than the set part of it, batches are put together.

When MLFS's jobs come, and how long they run before they are scaled: from a trace, or a Poisson process.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.traces.generators.elastic import plain_frame
from jobcast.traces.generators.mlfs_curves import DrawnCurves, draw_curves, spread_of_error
from jobcast.traces.generators.mlfs_tasks import (
    ALGORITHMS,
    DATA_MB,
    DEADLINE_H,
    DEADLINE_SLACK,
    DRAWN,
    PAPER,
    PAPER_JOBS,
    URGENCIES,
    JobTasks,
    MlfsConfig,
    task_table,
    tasks_of_jobs,
)
from jobcast.traces.learning_curves import JobCurves
from jobcast.traces.table import Trace
from jobcast.traces.tasks import TaskTable

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
    # here: only draws from a given trace need readers and their entry points
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
    # sorted, since arrivals must ascend
    rows = low + np.sort(rng.choice(high - low, config.jobs, replace=high - low < config.jobs))
    return Arrivals(trace.submit_s[rows], trace.duration_s[rows])


def _first_week(within_s: Floats, config: MlfsConfig, rng: np.random.Generator) -> int:
    """The week that is set, or one drawn among those with enough jobs; the last, cut short, only if no other has."""
    if config.week != DRAWN:
        return config.week
    counts = np.bincount((within_s // WEEK_S).astype(np.int64))
    sums = np.convolve(counts, np.ones(config.weeks, dtype=np.int64), mode="valid")
    # the trace's last week is cut short
    whole = sums[: len(sums) - 1] if len(sums) > 1 else sums
    if not len(whole):
        return 0
    enough = np.flatnonzero(whole >= config.jobs)
    return int(rng.choice(enough)) if len(enough) else int(np.argmax(sums))


def _poisson(config: MlfsConfig, rng: np.random.Generator) -> Arrivals:
    """Given their number, arrivals of a Poisson process are independent draws from its rate."""
    grid = np.arange(0.0, config.weeks * WEEK_S + GRID_S, GRID_S)
    rate = 1.0 + SWING * np.cos(2 * np.pi * (grid - PEAK_S) / DAY_S)
    # the integral of the rate, inverted by interpolation
    share = np.concatenate([[0.0], np.cumsum(rate[:-1])])
    at_s = np.sort(np.interp(rng.random(config.jobs), share / share[-1], grid))
    duration_s = MEDIAN_S * np.exp(LOG_SD * rng.standard_normal(config.jobs))
    return Arrivals(config.start.timestamp() + at_s, duration_s)


POOL = "mlfs"
PAPER_GPUS = 80
LEAST_ITERATION_S = 0.1
"""No iteration is shorter; ours: an exchange between machines takes about as long."""
HALVINGS = 80


class MlfsDraw(NamedTuple):
    """One draw of the workload.

    Attributes
    ----------
    jobs, pools : canonical table and its one pool
    tasks, curves : what belongs to its jobs
    """

    jobs: pl.DataFrame
    pools: list[Pool]
    tasks: TaskTable
    curves: JobCurves


class Lengths(NamedTuple):
    """How long jobs are, (n_jobs,): epochs, iterations of each, seconds of an iteration."""

    epochs: Ints
    epoch_iterations: Ints
    iteration_s: Floats

    @property
    def run_s(self) -> Floats:
        """(n_jobs,) seconds of all iterations."""
        return self.epochs * self.epoch_iterations * self.iteration_s


def generate_mlfs(config: MlfsConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its one pool. Raises ConfigError and TraceError."""
    drawn = draw_mlfs(config, rng)
    return drawn.jobs, drawn.pools


def mlfs_tasks(config: MlfsConfig, rng: np.random.Generator) -> tuple[TaskTable, JobCurves]:
    """Tasks and curves of the draw of `generate_mlfs` from an equal generator. Raises ConfigError and TraceError."""
    drawn = draw_mlfs(config, rng)
    return drawn.tasks, drawn.curves


def mlfs_notes(config: MlfsConfig) -> tuple[str, ...]:
    """Where the jobs come from, and the load that they offer in the mean."""
    load = config.load * config.jobs / PAPER_JOBS * PAPER_GPUS / config.gpus / config.weeks
    arrivals = config.arrivals or "a Poisson process with a daily rhythm"
    return f"arrivals: {arrivals}", f"offered load: {load:.3g} of {config.gpus} GPUs, in shares of GPUs"


def draw_mlfs(config: MlfsConfig, rng: np.random.Generator) -> MlfsDraw:
    """Draw all of it, each quantity from a stream of its own. Raises ConfigError and TraceError."""
    of_arrival, of_task, of_length, of_curve, of_user, of_error, of_class = rng.spawn(7)
    arrivals, unseen = _sampled(arrivals_of(config, of_arrival), config, of_class)
    algorithm = of_task.integers(0, len(ALGORITHMS), config.jobs)
    gpus = of_task.choice(np.asarray(config.widths, dtype=np.int64), config.jobs)
    tasks = tasks_of_jobs(algorithm, gpus, config, of_task)
    lengths = _lengths(arrivals, algorithm, tasks, config, of_length)
    curves = draw_curves(lengths.epochs, of_curve)
    # schedulers see the estimate, the replay goes by the truth
    estimate_s = lengths.iteration_s * _errors(config, unseen, of_error)
    frame = _jobs(arrivals, algorithm, gpus, lengths, curves, lengths.epochs * lengths.epoch_iterations * estimate_s,
                  (unseen * config.sample_min * MINUTE_S).astype(np.float64), config, of_user)  # fmt: skip
    ids = tuple(frame["job_id"].to_list())
    options = _options(config, of_user)
    table = task_table("generated", ids, tasks, lengths.iteration_s, estimate_s, lengths.epoch_iterations, options)
    known = JobCurves("generated", "", ids, curves.begin, curves.metric)
    return MlfsDraw(frame, [Pool(POOL, config.gpus)], table, known)


def _lengths(
    arrivals: Arrivals, algorithm: Ints, tasks: JobTasks, config: MlfsConfig, rng: np.random.Generator
) -> Lengths:
    """Epochs and iterations at the one factor of run times that gives the load."""
    batch_mb = np.array([one.batch_mb for one in ALGORITHMS.values()])[algorithm]
    most = np.ceil(rng.uniform(*DATA_MB, config.jobs) / batch_mb)
    epochs = rng.integers(config.epochs[0], config.epochs[1] + 1, config.jobs)
    # long enough that sending takes at most the set part
    least_s = np.maximum(LEAST_ITERATION_S, tasks.sending_s / config.communication)
    shortest_s = np.maximum(config.shortest_min * MINUTE_S, config.epochs[0] * least_s)
    aim = config.load * PAPER_GPUS * WEEK_S / PAPER_JOBS * config.jobs
    run_s = _scaled(arrivals.duration_s, shortest_s, config.longest_h * HOUR_S, tasks.gpu, aim)
    epochs = np.clip(epochs, 1, np.maximum(config.epochs[0], (run_s / least_s).astype(np.int64)))
    # the factor saves a quotient that is 3 but for rounding from becoming 2
    each = np.clip(np.floor(run_s / epochs / least_s * (1 + 1e-9)), 1.0, most).astype(np.int64)
    return Lengths(epochs, each, run_s / (epochs * each))


def _scaled(duration_s: Floats, shortest_s: Floats, longest_s: float, gpu: Floats, aim: float) -> Floats:
    """Run times within their bounds whose work is the aim, by bisection. Raises ConfigError where none have it."""
    # halved on a log scale: factors span many powers of ten
    low, high = 1e-6, 1e6
    longest = np.maximum(longest_s, shortest_s)
    if longest @ gpu < aim:
        raise ConfigError("mlfs: jobs as long as longest_h do not make the load; raise longest_h or lower load")
    if shortest_s @ gpu > aim:
        raise ConfigError("mlfs: the shortest jobs are more than the load; raise load or communication")
    # a fixed number of halvings, so that draws are the same everywhere
    for _ in range(HALVINGS):
        factor = np.sqrt(low * high)
        enough = np.clip(duration_s * factor, shortest_s, longest) @ gpu >= aim
        low, high = (low, factor) if enough else (factor, high)
    return np.clip(duration_s * low, shortest_s, longest)


def _sampled(arrivals: Arrivals, config: MlfsConfig, rng: np.random.Generator) -> tuple[Arrivals, Bools]:
    """Jobs in the order in which they queue, and which of them never ran before: these after their sample runs."""
    unseen = rng.random(config.jobs) < config.unseen
    queued_s = arrivals.submit_s + unseen * config.sample_min * MINUTE_S
    order = np.argsort(queued_s, kind="stable")
    return Arrivals(queued_s[order], arrivals.duration_s[order]), unseen[order]


def _errors(config: MlfsConfig, unseen: Bools, rng: np.random.Generator) -> Floats:
    """(n_jobs,) factors of estimates, lognormal around 1."""
    strange = config.error if config.sample_min else config.unseen_error
    spread = np.where(unseen, spread_of_error(strange), spread_of_error(config.error))
    return np.exp(spread * rng.standard_normal(config.jobs))


def _options(config: MlfsConfig, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """What users ask for, and the furthest that it may be changed to."""
    if config.options == PAPER:
        return np.full(config.jobs, OPT_STOP), np.full(config.jobs, TARGET_ONLY)
    # what it may become never asks for more than the option itself
    option = rng.integers(ALL_ITERATIONS, TARGET_ONLY + 1, config.jobs)
    return option, rng.integers(option, TARGET_ONLY + 1)


def _jobs(
    arrivals: Arrivals,
    algorithm: Ints,
    gpus: Ints,
    lengths: Lengths,
    curves: DrawnCurves,
    estimate_s: Floats,
    sampled_s: Floats,
    config: MlfsConfig,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Canonical table; deadlines by the estimated run times, targets by the accuracies that are reached at the end.

    Time spent on sample runs (n_jobs,) is lost to the deadline.
    """
    of_deadline, of_urgency, of_target = rng.spawn(3)
    count, begin_s = config.jobs, float(arrivals.submit_s[0])
    allowed_s = of_deadline.uniform(*DEADLINE_H, count) * HOUR_S
    origin = pl.from_epoch(pl.Series([round(begin_s * 1e6)]), time_unit="us").dt.replace_time_zone("UTC")[0]
    frame = plain_frame(POOL, origin, arrivals.submit_s - begin_s, lengths.run_s, gpus)
    within_s = np.maximum(np.maximum(DEADLINE_SLACK * estimate_s, allowed_s) - sampled_s, MINUTE_S)
    within_us = np.ceil(within_s * 1e6).astype(np.int64)
    names = list(ALGORITHMS)
    return frame.with_columns(
        pl.Series("model", [names[at] for at in algorithm.tolist()]),
        pl.Series("epochs", lengths.epochs),
        (pl.col("submit_time") + pl.Series(within_us).cast(pl.Duration("us"))).alias("deadline"),
        pl.Series("weight", of_urgency.integers(URGENCIES[0], URGENCIES[1] + 1, count).astype(np.float64)),
        pl.Series("target_accuracy", of_target.uniform(config.target[0], config.target[1], count) * curves.final),
    )
