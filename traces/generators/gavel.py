"""Training jobs of Gavel's generator as Shockwave uses it (section 8.1), with the courses that their batch sizes take.

Section 8.1 asks for run times of 0.2 to 5 hours, and for sizes up to more than 72 GPU-hours; yet a job of one GPU can
have no more than 5 GPU-hours, one of eight no more than 40. Run times win: a size that a job's width cannot reach
within them is drawn again, so that no job is extra large and all of one GPU are small. GPU-time is log-uniform within a
size, as Gavel draws run times. (Of the jobs in the published traces, 98 % are small.)

Parameters of Gavel's workload as Shockwave uses it, sections 8.1, 8.4 and 8.5.

PCS's workload 3: Gavel's continuous-multiple with elastic jobs (PCS, section 5.1 and Table 1).

Gavel draws run times of 10^x minutes, x uniform in [1.5, 3] for four jobs in five and in [3, 4] for the others, and
widths of 1, 2, 4 and 8 GPUs. PCS tells 1 to 8 GPUs a job and 4 jobs an hour, and that its workloads draw service and
GPUs each from a distribution of its own (appendix A). So the run time drawn is here the service, seconds on one GPU:
4 jobs an hour then offer 64 GPUs a load of 1.05. With `at_width=true` it is the run time at the job's width, as Gavel
means it, and the load 1.99 for linear speedups: a queue that never ends. `run_times` and `max_gpus` name files of
distribution functions, such as those that PCS publishes, to draw from instead.

Courses of batch sizes: how Accordion and GNS change them over a job's epochs. Shockwave, sections 2.2, 5 and 8.1.

Accordion (Agarwal et al., MLSys 2021) trains with the initial batch size where gradients change quickly, elsewhere with
the model's largest. GNS (McCandlish et al., 2018) doubles the batch size as the noise of gradients grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S, MINUTE_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.files import PathLike
from jobcast.traces.generators.elastic import (
    DATA_VARIABLE,
    data_file,
    drawn_from,
    elastic_frame,
    instants_at_load_s,
    instants_s,
    plain_frame,
    speedup_table,
    widths_speedups,
)
from jobcast.traces.generators.settings import (
    FIRST_INSTANT,
    Setting,
    check_ascending,
    check_ranges,
    check_widths,
    parse_settings,
    setting,
)
from jobcast.traces.speedups import LINEAR
from jobcast.traces.table import Trace
from jobcast.traces.table_files import counts_in, read_plain
from jobcast.traces.trainings import (
    REFERENCE_GPU,
    SAMPLES,
    Starts,
    Throughputs,
    TrainingTables,
    read_datasets,
    read_throughputs,
    trainings_of,
)

STATIC, ACCORDION, GNS = "static", "accordion", "gns"
MODES = (STATIC, ACCORDION, GNS)
WARM_SHARE = 0.3
"""Share of a job's epochs that Accordion always takes for critical, as the published traces were planned."""
DOUBLING_EPOCHS = 20
"""GNS without a table: every so many epochs; the published tables double every 10 to 60."""
GNS_COLUMNS = ("model", "initial_batch_size", "mode", "scale_factor", "epoch", "batch_size")
Doublings = Mapping[tuple[str, int, int], Starts]
"""(model, initial batch size, GPUs) -> where each batch size begins under GNS."""


@dataclass(frozen=True, slots=True)
class Critical:
    """Where Accordion keeps a model's initial batch size.

    Attributes
    ----------
    windows : [first epoch, end) pairs
    period, length : the first `length` of every `period` epochs too; 0: none
    first : (initial batch size, epochs at the beginning) pairs, where they hang on it
    """

    windows: tuple[tuple[int, int], ...] = ()
    period: int = 0
    length: int = 0
    first: tuple[tuple[int, int], ...] = ()

    def mask(self, batch_size: int, epochs: int) -> NDArray[np.bool_]:
        """(epochs,) whether each epoch is critical for a job that starts with a batch size."""
        epoch = np.arange(epochs)
        found = epoch < WARM_SHARE * epochs
        for begin, end in (*self.windows, (0, dict(self.first).get(batch_size, 0))):
            # windows may overlap the warm share
            found |= (begin <= epoch) & (epoch < end)
        return found | (epoch % self.period < self.length) if self.period else found


CRITICAL: Mapping[str, Critical] = {
    "ResNet-18": Critical(windows=((0, 10), (150, 160), (250, 260))),
    "ResNet-50": Critical(period=30, length=10),
    "LM": Critical(windows=((0, 10),)),
    "Recommendation": Critical(windows=((60, 70), (80, 90)), first=((512, 30), (1024, 30), (2048, 40), (4096, 10))),
}
"""By model, as in Shockwave's published traces; Accordion never changes models that are not here (Transformer)."""


def planned_course(
    model: str, batch_size: int, mode: str, epochs: int, sizes: Sequence[int], gpus: int, doublings: Doublings | None
) -> Starts:
    """Where each batch size begins.

    Parameters
    ----------
    model, batch_size, mode, epochs, gpus : of the job
    sizes : batch sizes that it can run at, ascending, `batch_size` among them
    doublings : of GNS, by configuration, what is not there never doubles; None: every `DOUBLING_EPOCHS`

    >>> planned_course("LM", 20, "accordion", 100, (20, 40, 80), 1, None)
    ((0, 20), (30, 80))
    >>> planned_course("LM", 20, "gns", 50, (20, 40, 80), 1, None)
    ((0, 20), (20, 40), (40, 80))
    """
    stay: Starts = ((0, batch_size),)
    if mode == ACCORDION and model in CRITICAL:
        return _accordion(CRITICAL[model].mask(batch_size, epochs), batch_size, sizes[-1])
    if mode == GNS:
        rule = _doubling(batch_size, sizes) if doublings is None else stay
        table = (doublings or {}).get((model, batch_size, gpus), rule)
        # starts after the job's end never come, sizes without throughput cannot
        known = tuple(start for start in table if start[0] < epochs and start[1] in sizes)
        return known or stay
    return stay


def jittered(course: Starts, epochs: int, sigma: float, rng: np.random.Generator) -> Starts:
    """A course whose regimes but the last are longer or shorter by lognormal factors of median 1; at least 1 epoch.

    The last regime takes what is left; regimes for which nothing is left never come.
    """
    begins = np.array([begin for begin, _ in course], dtype=np.float64)
    # no regime may vanish, or the next would not follow by one doubling
    lengths = np.maximum(1, np.round(np.diff(begins) * rng.lognormal(0.0, sigma, len(course) - 1)))
    moved = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64).tolist()
    return tuple((begin, size) for begin, (_, size) in zip(moved, course, strict=True) if begin < epochs)


def read_doublings(path: PathLike) -> Doublings:
    """Read the GNS rows of a CSV of `GNS_COLUMNS`.

    Raises TraceError when it cannot be read, or a course does not begin at epoch 0 with the initial batch size or has
    an epoch twice.
    """
    frame, place, _ = read_plain(path, GNS_COLUMNS)
    counted = ("initial_batch_size", "scale_factor", "epoch", "batch_size")
    table = frame.select("model", "mode").with_columns(counts_in(frame[name], place, 0) for name in counted)
    found: dict[tuple[str, int, int], Starts] = {}
    # the index survives the sort: errors name rows of the file
    rows = table.with_row_index().filter(pl.col("mode") == GNS).sort("epoch", maintain_order=True)
    for index, model, _, size, gpus, epoch, to_size in rows.iter_rows():
        before = found.get((model, size, gpus), ())
        if not before and (epoch, to_size) != (0, size):
            what = f"{model} from {size} on {gpus} GPUs must begin at epoch 0 with its initial batch size"
            place.fail(index, "epoch", what, epoch, "add or correct the row")
        if before and epoch == before[-1][0]:
            place.fail(index, "epoch", f"{model} from {size} on {gpus} GPUs is there twice", epoch, "keep one row")
        found[model, size, gpus] = (*before, (epoch, to_size))
    return found


def _accordion(critical: NDArray[np.bool_], batch_size: int, largest: int) -> Starts:
    # diff of booleans is true where a window begins or ends
    changes = [0, *(np.flatnonzero(np.diff(critical)) + 1).tolist()]
    if largest == batch_size:
        return ((0, batch_size),)
    return tuple((epoch, batch_size if critical[epoch] else largest) for epoch in changes)


def _doubling(batch_size: int, sizes: Sequence[int]) -> Starts:
    starts = [(0, batch_size)]
    # up to the largest size that has a throughput
    while 2 * starts[-1][1] in sizes:
        starts.append((starts[-1][0] + DOUBLING_EPOCHS, 2 * starts[-1][1]))
    return tuple(starts)


POISSON, BATCH = "poisson", "batch"
RULE = "rule"
SIZES = 4
"""Small, medium, large, extra large."""
THROUGHPUTS_FILE = Path("shockwave", "throughputs_tacc.csv")
DOUBLINGS_FILE = Path("shockwave", "regimes.csv")


@dataclass(frozen=True, slots=True)
class GavelConfig:
    """Parameters of the workload; the defaults are those of Shockwave, section 8.1, with 32 GPUs."""

    jobs: int = setting(120, "number of jobs", 1, 1_000_000)
    gpus: int = setting(32, "GPUs of the cluster", 1, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job arrives")  # noqa: RUF009
    arrivals: str = setting(POISSON, f"{POISSON}, or {BATCH}: all at the start")
    contention: float = setting(3.0, "GPUs that jobs would hold at once if nobody waited / GPUs", 0.01, 1000)
    interarrival_s: float = setting(0.0, "mean gap between arrivals, seconds; 0: as contention has it", 0, 1e7)
    shortest_h: float = setting(0.2, "shortest run time, hours", 0.001, 1e5)
    longest_h: float = setting(5.0, "longest run time, hours", 0.001, 1e5)
    size_edges_gpu_h: tuple[float, ...] = setting(
        (0.2, 8.0, 16.0, 72.0), "where small, medium, large, extra large begin, GPU-hours", 0.0001, 1e7
    )
    size_shares: tuple[float, ...] = setting((0.72, 0.2, 0.05, 0.03), "share of each size; adds up to 1", 0, 1)
    widths: tuple[int, ...] = setting((1, 2, 4, 8), "gang widths, GPUs", 1, 100_000)
    width_shares: tuple[float, ...] = setting((0.6, 0.3, 0.09, 0.01), "share of each width; adds up to 1", 0, 1)
    mode_shares: tuple[float, ...] = setting((1 / 3, 1 / 3, 1 / 3), f"share of {', '.join(MODES)}; adds up to 1", 0, 1)
    jitter: float = setting(0.0, "sigma of the lognormal factors on all regimes of a course but its last", 0, 3)
    throughputs: str = setting("", f"CSV of steps per second; default: {THROUGHPUTS_FILE} under {DATA_VARIABLE}")
    gpu_type: str = setting(REFERENCE_GPU, "type of GPU in it")
    datasets: str = setting("", "CSV of samples by model, where they are not Gavel's")
    gns: str = setting("", f"CSV of doubling epochs, or {RULE}; default: {DOUBLINGS_FILE} under {DATA_VARIABLE}")

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.arrivals not in (POISSON, BATCH):
            raise ValueError(f"arrivals must be {POISSON} or {BATCH}, got {self.arrivals}")
        check_ascending(self, ("shortest_h", "longest_h"))
        if list(self.size_edges_gpu_h) != sorted(set(self.size_edges_gpu_h)):
            raise ValueError("size_edges_gpu_h must ascend")
        # lengths and sums of the lists, each against what it must match
        for name, count in (
            ("size_edges_gpu_h", SIZES),
            ("size_shares", SIZES),
            ("width_shares", len(self.widths)),
            ("mode_shares", len(MODES)),
        ):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} must hold {count} numbers, got {len(getattr(self, name))}")
            if name.endswith("_shares") and abs(sum(getattr(self, name)) - 1) > tolerance.SHARES:
                raise ValueError(f"{name} must add up to 1, got {sum(getattr(self, name)):g}")
        if max(self.widths) > self.gpus:
            raise ValueError(f"widths must fit gpus, got {max(self.widths)} > {self.gpus}; set both")
        for width, share in zip(self.widths, self.width_shares, strict=True):
            # else drawing a size for that width would divide by 0
            if share and not sum(self.reachable_shares(width)):
                raise ValueError(f"no size can be reached by a job of {width} GPUs; change size_shares or longest_h")

    def size_bounds_gpu_h(self, width: int) -> list[tuple[float, float]]:
        """From and until how many GPU-hours a job of a width has each size, (SIZES,); from >= until: it never has."""
        low, high = width * self.shortest_h, width * self.longest_h
        ends = (*self.size_edges_gpu_h[1:], float("inf"))
        return [(max(begin, low), min(end, high)) for begin, end in zip(self.size_edges_gpu_h, ends, strict=True)]

    def reachable_shares(self, width: int) -> list[float]:
        """Share of each size, (SIZES,), 0 for those out of a width's reach; not normalised."""
        bounds = self.size_bounds_gpu_h(width)
        return [share if begin < end else 0.0 for share, (begin, end) in zip(self.size_shares, bounds, strict=True)]


def parse_gavel(settings: Mapping[str, Setting]) -> GavelConfig:
    """Read settings; files that are not named are looked for under the folder that JOBCAST_DATA names.

    Raises ConfigError, also where no throughputs are found.
    """
    chosen = dict(settings)
    if not str(chosen.get("throughputs", "")):
        found = data_file(THROUGHPUTS_FILE)
        if not found:
            raise ConfigError(
                "gavel: throughputs are needed to tell steps by run times; give --set throughputs=FILE, or point "
                f"{DATA_VARIABLE} at a folder that holds {THROUGHPUTS_FILE}"
            )
        chosen["throughputs"] = found
    if not str(chosen.get("gns", "")):
        chosen["gns"] = data_file(DOUBLINGS_FILE) or RULE
    return parse_settings(GavelConfig, chosen, "gavel")


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
    # streams of their own: more draws of one quantity must not shift the others
    of_width, of_work, of_model, of_mode, of_arrival = rng.spawn(5)
    rates = read_throughputs(config.throughputs, config.gpu_type)
    gpus = of_width.choice(np.asarray(config.widths, dtype=np.int64), config.jobs, p=config.width_shares)
    # milliseconds, as the table is written: steps must fit what a reader sees
    duration_s = np.round(_gpu_hours(gpus, config, of_work) * HOUR_S / gpus, 3)
    models, sizes, steps_s = _configurations(gpus, rates, of_model)
    submit_s = _arrivals_s(float(gpus @ duration_s), config, of_arrival)
    frame = plain_frame(POOL, config.start, submit_s, duration_s, gpus)
    result = {
        "steps": np.maximum(1, np.round(duration_s * steps_s)).astype(np.int64),
        "model": models,
        "batch_size": sizes,
        "adaptation": of_mode.choice(np.array(MODES), config.jobs, p=config.mode_shares).tolist(),
        "weight": np.ones(config.jobs),
    }
    return frame.with_columns(pl.Series(name, values) for name, values in result.items()), [Pool(POOL, config.gpus)]


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
    # the same reading as a replay's, so that epochs agree
    known = trainings_of(trace, tables).trainings
    for job_id, gpus, training in zip(trace.jobs["job_id"], trace.gpus.tolist(), known, strict=True):
        if training is None:
            continue
        sizes = tuple(training.epoch_s)
        course = planned_course(
            training.model, training.batch_size, training.mode, training.epochs, sizes, gpus, doublings
        )
        # no draw at all without jitter: the rng stays where it was
        found[job_id] = jittered(course, training.epochs, config.jitter, rng) if config.jitter else course
    return found


def gavel_notes(config: GavelConfig) -> tuple[str, ...]:
    """Where a draw's throughputs and doublings come from."""
    by = f"every {DOUBLING_EPOCHS} epochs" if config.gns == RULE else f"by {config.gns}"
    return f"throughputs: {config.throughputs}, {config.gpu_type}", f"gns doubles {by}"


def _gpu_hours(gpus: NDArray[np.int64], config: GavelConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n_jobs,) log-uniform within the size drawn, in reach of each job's width."""
    # drawn for all jobs at once, so that widths do not shift one another's draws
    which, where = rng.random(len(gpus)), rng.random(len(gpus))
    hours = np.empty(len(gpus))
    for width in np.unique(gpus).tolist():
        mine = gpus == width
        shares = np.cumsum(config.reachable_shares(width))
        # shares of what a width cannot reach are 0, the rest is scaled
        size = np.searchsorted(shares, which[mine] * shares[-1], side="right")
        low, high = np.asarray(config.size_bounds_gpu_h(width)).T
        # log-uniform between the bounds
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
    # drawn and thrown away, so that the others are the same whatever the first is
    gaps[0] = 0.0
    # contention is of the jobs drawn, not of their expectation
    mean_s = config.interarrival_s or gpu_time_s / config.jobs / (config.contention * config.gpus)
    return np.cumsum(gaps) * (0.0 if config.arrivals == BATCH else mean_s)


@dataclass(frozen=True, slots=True)
class GavelElasticConfig:
    """Parameters of the workload; the defaults are Gavel's (Narayanan et al., OSDI 2020) and PCS's, section 5.1."""

    jobs: int = setting(1000, "number of jobs", 1, 1_000_000)
    gpus: int = setting(64, "GPUs of the cluster", 1, 100_000)
    jobs_per_h: float = setting(4.0, "mean arrivals an hour", 1e-6, 1e6)
    load: float = setting(0.0, "offered load: sum of services / (span x GPUs); 0: as jobs_per_h has it", 0, 100)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job arrives")  # noqa: RUF009
    short_share: float = setting(0.8, "share of jobs of the short mode", 0, 1)
    short_low: float = setting(1.5, "short mode from 10^this minutes", -3, 6)
    short_high: float = setting(3.0, "short mode until 10^this minutes", -3, 6)
    long_low: float = setting(3.0, "long mode from 10^this minutes", -3, 6)
    long_high: float = setting(4.0, "long mode until 10^this minutes", -3, 6)
    widths: tuple[int, ...] = setting((1, 2, 4, 8), "most GPUs of a job", 1, 100_000)
    width_shares: tuple[float, ...] = setting((0.7, 0.1, 0.15, 0.05), "share of each width; adds up to 1", 0, 1)
    run_times: str = setting("", "CSV of the distribution function of run times, minutes")
    max_gpus: str = setting("", "the same of most GPUs of a job")
    at_width: bool = setting(False, "run times drawn are those at a job's width, not on one GPU")
    models: str = setting(LINEAR, "models, between commas, drawn evenly")
    speedups: str = setting("", "CSV of model, gpus, speedup, for at_width; default: linear")

    def __post_init__(self) -> None:
        check_ranges(self)
        check_ascending(self, ("short_low", "short_high"), ("long_low", "long_high"))
        check_widths(self, "gpus")


def generate_gavel_elastic(config: GavelElasticConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its one pool. Raises ConfigError and TraceError of the table of speedups.

    Run times, widths, models and arrivals are drawn from streams of their own.
    """
    of_time, of_width, of_model, of_arrival = rng.spawn(4)
    if config.max_gpus:
        most = drawn_from(config.max_gpus, config.jobs, of_width).astype(np.int64)
    else:
        most = of_width.choice(np.asarray(config.widths, dtype=np.int64), config.jobs, p=config.width_shares)
    names = np.array([name.strip() for name in config.models.split(",")])
    models = names[of_model.integers(0, len(names), config.jobs)].tolist()
    service_s = _run_times_s(config, of_time)
    if config.at_width:
        service_s = service_s * widths_speedups(models, most, speedup_table(config.speedups, names.tolist(), most))
    service_s, gaps = np.round(service_s, 3), of_arrival.exponential(size=config.jobs - 1)
    if config.load:
        submit_s = instants_at_load_s(gaps, service_s, config.gpus, config.load)
    else:
        submit_s = instants_s(gaps, HOUR_S / config.jobs_per_h)
    return elastic_frame(POOL, config.start, submit_s, service_s, most, {"model": models}), [Pool(POOL, config.gpus)]


def _run_times_s(config: GavelElasticConfig, rng: np.random.Generator) -> Floats:
    if config.run_times:
        return drawn_from(config.run_times, config.jobs, rng) * MINUTE_S
    short = rng.random(config.jobs) < config.short_share
    low = np.where(short, config.short_low, config.long_low)
    high = np.where(short, config.short_high, config.long_high)
    return 10.0 ** rng.uniform(low, high) * MINUTE_S
