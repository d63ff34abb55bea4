"""Training jobs of Gavel's generator as Shockwave uses it (section 8.1), with the courses that their batch sizes take.

Section 8.1 asks for run times of 0.2 to 5 hours, and for sizes up to more than 72 GPU-hours; yet a job of one GPU can
have no more than 5 GPU-hours, one of eight no more than 40. Run times win: a size that a job's width cannot reach
within them is drawn again, so that no job is extra large and all of one GPU are small. GPU-time is log-uniform within a
size, as Gavel draws run times. (Of the jobs in the published traces, 98 % are small.)
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.gavel_config import BATCH, RULE, GavelConfig
from jobcast.traces.generators.gavel_courses import DOUBLING_EPOCHS, MODES, jittered, planned_course, read_doublings
from jobcast.traces.generators.job_columns import JobColumns, canonical_frame
from jobcast.traces.table import Trace
from jobcast.traces.throughputs import SAMPLES, Starts, Throughputs, TrainingTables, read_datasets, read_throughputs
from jobcast.traces.trainings import trainings_of

HOUR_S = 3600.0
POOL = "gavel"
BATCH_SIZES: dict[str, tuple[int, ...]] = {
    "ResNet-50": (16, 32, 64, 128),
    "ResNet-18": (16, 32, 64, 128, 256),
    "LM": (5, 10, 20, 40, 80),
    "Transformer": (16, 32, 64, 128, 256),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}
"""Models and ranges of batch sizes. Shockwave, Table 2; LM is its LSTM, Recommendation its autoencoder."""


def generate_gavel(config: GavelConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its one pool.

    A job's configuration is uniform among those of Table 2 that the throughputs know for its width. Its duration is
    the nominal one, at the initial batch size; steps are duration x steps per second. Each quantity is drawn from a
    stream of its own: to change the modes, say, leaves everything else as it was. Raises ConfigError and TraceError.
    """
    of_width, of_work, of_model, of_mode, of_arrival = rng.spawn(5)
    rates = read_throughputs(config.throughputs, config.gpu_type)
    gpus = of_width.choice(np.asarray(config.widths, dtype=np.int64), config.jobs, p=config.width_shares)
    duration_s = np.round(_gpu_hours(gpus, config, of_work) * HOUR_S / gpus, 3)
    models, sizes, steps_s = _configurations(gpus, rates, of_model)
    submit_s = _arrivals_s(float(gpus @ duration_s), config, of_arrival)
    text = np.full(config.jobs, "")
    no = np.zeros(config.jobs, dtype=np.bool_)
    jobs = JobColumns(submit_s, duration_s, gpus, no, np.full(config.jobs, POOL), text, text)
    frame = canonical_frame(jobs, config.start).drop("user", "tag", "state")
    told = {
        "steps": np.maximum(1, np.round(duration_s * steps_s)).astype(np.int64),
        "model": models,
        "batch_size": sizes,
        "adaptation": of_mode.choice(np.array(MODES), config.jobs, p=config.mode_shares).tolist(),
        "weight": np.ones(config.jobs),
    }
    return frame.with_columns(pl.Series(name, values) for name, values in told.items()), [Pool(POOL, config.gpus)]


def gavel_courses(config: GavelConfig, trace: Trace, rng: np.random.Generator) -> dict[str, Starts]:
    """Where each batch size of each job begins, by job id: as planned, with jitter on all regimes but the last.

    Parameters
    ----------
    config : its throughputs, data sets, doublings and jitter are used
    trace : of training jobs, drawn by `generate_gavel` or any other
    rng : of the jitter

    Raises ConfigError and TraceError.
    """
    samples = read_datasets(config.datasets) if config.datasets else SAMPLES
    tables = TrainingTables(read_throughputs(config.throughputs, config.gpu_type), samples)
    doublings = None if config.gns == RULE else read_doublings(config.gns)
    found: dict[str, Starts] = {}
    known = trainings_of(trace, tables).trainings
    for job_id, gpus, training in zip(trace.jobs["job_id"], trace.gpus.tolist(), known, strict=True):
        if training is None:
            continue
        sizes = tuple(training.epoch_s)
        course = planned_course(
            training.model, training.batch_size, training.mode, training.epochs, sizes, gpus, doublings
        )
        found[job_id] = jittered(course, training.epochs, config.jitter, rng) if config.jitter else course
    return found


def gavel_notes(config: GavelConfig) -> tuple[str, ...]:
    """Where a draw's throughputs and doublings come from."""
    by = f"every {DOUBLING_EPOCHS} epochs" if config.gns == RULE else f"by {config.gns}"
    return f"throughputs: {config.throughputs}, {config.gpu_type}", f"gns doubles {by}"


def _gpu_hours(gpus: NDArray[np.int64], config: GavelConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n_jobs,) log-uniform within the size drawn, in reach of each job's width."""
    which, where = rng.random(len(gpus)), rng.random(len(gpus))
    hours = np.empty(len(gpus))
    for width in np.unique(gpus).tolist():
        mine = gpus == width
        shares = np.cumsum(config.reachable_shares(width))
        size = np.searchsorted(shares, which[mine] * shares[-1], side="right")
        low, high = np.asarray(config.size_bounds_gpu_h(width)).T
        hours[mine] = low[size] * (high[size] / low[size]) ** where[mine]
    return hours


def _configurations(
    gpus: NDArray[np.int64], throughputs: Throughputs, rng: np.random.Generator
) -> tuple[list[str], list[int], NDArray[np.float64]]:
    """Models, initial batch sizes and steps per second of jobs, each (n_jobs,)."""
    drawn = rng.random(len(gpus))
    known = {width: _known(width, throughputs) for width in np.unique(gpus).tolist()}
    rows = [known[width][int(at * len(known[width]))] for width, at in zip(gpus.tolist(), drawn.tolist(), strict=True)]
    return [row[0] for row in rows], [row[1] for row in rows], np.array([row[2] for row in rows])


def _known(width: int, throughputs: Throughputs) -> list[tuple[str, int, float]]:
    """(model, batch size, steps per second) of Table 2 that the throughputs know for a width."""
    found = [
        (model, size, throughputs.rates[model, width][size])
        for model, sizes in BATCH_SIZES.items()
        for size in sizes
        if size in throughputs.rates.get((model, width), {})
    ]
    if not found:
        raise ConfigError(
            f"gavel: {throughputs.path} has no throughput of {', '.join(BATCH_SIZES)} on {width} GPUs of type "
            f"{throughputs.gpu_type}; add rows or set widths and width_shares"
        )
    return found


def _arrivals_s(gpu_time_s: float, config: GavelConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n_jobs,) ascending, the first at 0: gaps are exponential, so that the rest is a Poisson process.

    The mean gap, where none is set, is mean GPU-time / (contention x GPUs), by the GPU-time of the jobs drawn.
    """
    gaps = rng.exponential(1.0, config.jobs)
    gaps[0] = 0.0
    mean_s = config.interarrival_s or gpu_time_s / config.jobs / (config.contention * config.gpus)
    return np.cumsum(gaps) * (0.0 if config.arrivals == BATCH else mean_s)
