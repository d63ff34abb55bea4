"""Columns that a trace lacks: the model that each job is taken for, and what follows from it.

Draws by (seed, job id): what is drawn for a job does not depend on which other jobs there are, or in what order.

What may be asked of an enrichment: facts by name, and the settings of its rules.

The models that jobs are taken for: one table that joins the vocabularies of Gavel, PCS, Pollux and MLFS.

`models.csv` beside this file has a row a model, with its sources and their licences. One formula gives every table its
seconds, so that what is told of a job agrees:

    steps a second = speed of the GPU type x speedup(g) / (overhead_s + sample_s x batch size)

on a V100, whose speed is 1; batch sizes are of all GPUs together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S, HOUR_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import GPU_TYPES, known_type
from jobcast.domain.suggestions import did_you_mean
from jobcast.traces.columns import LONGEST_S
from jobcast.traces.generators.settings import Setting, check_pairs, check_ranges, parse_settings, setting
from jobcast.traces.table import MICROSECONDS, Trace
from jobcast.traces.trainings import REFERENCE_GPU

FACTS: Mapping[str, str] = {
    "speedups": "elastic jobs: speedups by model and GPUs; 1 GPU is the least, those asked for are the most",
    "training": "training jobs: model, batch size, epochs and adaptation; throughputs, data sets, true batch sizes",
    "goodput": "jobs that scale with their batch size: step times and gradient noise",
    "tasks": "jobs of tasks: task graphs, accuracy by epoch, target accuracies, due dates",
    "epochs": "seconds an epoch by model, batch size, GPU type and number of GPUs",
    "due": "due dates and weights",
    "limits": "time limits",
}
"""Facts by name, and what they are."""
MIXED, STATIC, ACCORDION, GNS = "mixed", "static", "accordion", "gns"


@dataclass(frozen=True, slots=True)
class EnrichConfig:
    """Settings of the rules."""

    reference: str = setting(REFERENCE_GPU, "type of GPU that durations are taken to hold on")
    gpu_types: str = setting("v100,p100,t4,k80", "types of GPU in the tables, NAME or NAME:SPEED, a V100's speed is 1")
    regimes: str = setting(MIXED, f"how batch sizes change: {STATIC}, {ACCORDION}, {GNS}, or {MIXED}: a third each")
    epochs: tuple[int, ...] = setting((5, 100), "fewest and most epochs of a job", 1, 10_000)
    due: tuple[float, ...] = setting((1.2, 3.0), "due dates, as multiples of the duration, uniform", 1, 1000)
    weights: tuple[int, ...] = setting((1, 10), "least and greatest weight, uniform whole numbers", 0, 1000)
    limit_factor: tuple[float, ...] = setting(
        (1.1, 3.0), "a time limit is the next usual one above so many durations, uniform", 1, 1000
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        check_pairs(self, "epochs", "due", "weights", "limit_factor")
        if self.regimes not in (MIXED, STATIC, ACCORDION, GNS):
            raise ValueError(f"regimes must be {MIXED}, {STATIC}, {ACCORDION} or {GNS}, got {self.regimes}")
        if self.reference.lower() not in self.speeds:
            raise ValueError(f"gpu_types must name the reference, {self.reference}; got {self.gpu_types}")

    @property
    def speeds(self) -> dict[str, float]:
        """Speed of a GPU over the reference's by type in small letters, the reference first. Raises ValueError."""
        of_v100 = dict(_type_and_speed(part) for part in self.gpu_types.lower().split(","))
        first = self.reference.lower()
        # the reference leads: tables are relative to their first type
        order = ([first] if first in of_v100 else []) + [name for name in of_v100 if name != first]
        return {name: of_v100[name] / of_v100[order[0]] for name in order}


def parse_enrich(settings: Mapping[str, Setting]) -> EnrichConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(EnrichConfig, settings, "trace enrich")


def parse_facts(words: Sequence[str]) -> tuple[str, ...]:
    """Names of facts, each once, in the order of `FACTS`. Raises ConfigError for one that is none."""
    asked = [word.strip() for word in words if word.strip()]
    for word in asked:
        if word not in FACTS:
            raise ConfigError(
                f"--facts {word}: is not known; {did_you_mean(word, FACTS)}choose from {', '.join(FACTS)}"
            )
    if not asked:
        raise ConfigError(f"--facts: names nothing; choose from {', '.join(FACTS)}")
    return tuple(name for name in FACTS if name in asked)


def _type_and_speed(part: str) -> tuple[str, float]:
    name, _, result = part.strip().partition(":")
    known = known_type(name)
    try:
        speed = float(result) if result else known.speed if known is not None else 0.0
    except ValueError:
        speed = 0.0
    if not name or not 0.0 < speed < float("inf"):
        raise ValueError(
            f"gpu_types must give a speed above 0 as in {name or 'a100'}:2.5, got {part.strip()!r}; known without are "
            f"{', '.join(GPU_TYPES)}"
        )
    return name, speed


MODELS_FILE = Path(__file__).with_name("models.csv")
VOCABULARIES = ("model", "gavel", "pcs", "pollux")
"""Columns by whose names a trace's own models are recognised."""
SIZES = {"S": 0.0, "M": 1.0, "L": 10.0, "XL": 100.0}
"""GPU-hours from which a job is small, medium, large, extra large: Qiao et al., OSDI 2021, section 5.1 (Pollux)."""
UNKNOWN_GROWTH = 0.5
"""Beyond what was measured a speedup grows by the power of GPUs of its last doubling; by this where only one GPU was
measured. Ours."""
LEAST_GROWTH = 0.05
"""And by no less than this power, so that more GPUs are never slower."""


@dataclass(frozen=True, slots=True)
class Model:
    """A row of the table.

    Attributes
    ----------
    name, mlfs : of the model, and of the MLFS algorithm that it is split as
    sizes : names in `SIZES` of the jobs that are taken for it
    dataset, samples : what an epoch goes through
    batch_sizes : that jobs begin with, ascending, each twice the one before
    overhead_s, sample_s : seconds a step, and a sample of it, on one V100
    speedups : on 2, 4, 8, ... GPUs over one
    noise : gradient noise scale in samples at the beginning and after 100 epochs
    source, licence : of the numbers
    aliases : what other tables call it
    """

    name: str
    mlfs: str
    sizes: tuple[str, ...]
    dataset: str
    samples: int
    batch_sizes: tuple[int, ...]
    overhead_s: float
    sample_s: float
    speedups: tuple[float, ...]
    noise: tuple[float, float]
    source: str
    licence: str
    aliases: tuple[str, ...]

    @property
    def measured_gpus(self) -> int:
        """The most GPUs on which its speedup was measured."""
        return 1 << len(self.speedups)

    def knots(self, most_gpus: int) -> tuple[Ints, Floats]:
        """GPUs 1, 2, 4, ... up to at least `most_gpus`, and speedups over one; linear in between."""
        known = [1.0, *self.speedups]
        # beyond what was measured, the power law of the last doubling goes on
        last = np.log2(known[-1] / known[-2]) if self.speedups else UNKNOWN_GROWTH
        growth = 2.0 ** max(float(last), LEAST_GROWTH)
        doublings = max(len(self.speedups), int(np.ceil(np.log2(max(most_gpus, 1)))))
        # knots at powers of two, as models are measured
        while len(known) <= doublings:
            known.append(known[-1] * growth)
        return 2 ** np.arange(doublings + 1), np.array(known)

    def speedup(self, gpus: Ints) -> Floats:
        """Over one GPU."""
        at, known = self.knots(int(np.max(gpus, initial=1)))
        return np.interp(gpus, at, known)

    def step_s(self, batch_size: Ints, gpus: Ints) -> Floats:
        """Seconds a step on V100s; arguments broadcast."""
        return (self.overhead_s + self.sample_s * np.asarray(batch_size)) / self.speedup(gpus)

    def epoch_s(self, batch_size: Ints, gpus: Ints) -> Floats:
        """Seconds an epoch on V100s; arguments broadcast."""
        return self.samples / np.asarray(batch_size) * self.step_s(batch_size, gpus)

    def ladder(self, batch_size: int, top: int = 0) -> tuple[int, ...]:
        """Doublings of a batch size up to the model's largest, or to `top` where that is more."""
        sizes = [batch_size]
        while 2 * sizes[-1] <= max(self.batch_sizes[-1], top):
            sizes.append(2 * sizes[-1])
        return tuple(sizes)


@cache
def known_models() -> tuple[Model, ...]:
    """The table, in its order."""
    rows = pl.read_csv(MODELS_FILE, infer_schema=False).fill_null("").to_dicts()
    return tuple(_model(row) for row in rows)


def model_rows(names: Sequence[str | None]) -> list[int | None]:
    """Rows of names in any vocabulary, whatever their case; None for one that is in none.

    >>> model_rows(["resnet-18", "Resnet50Model128", "GPT-4", None])
    [0, 5, None, None]
    """
    # reversed: of two models with one alias the first wins
    known = {alias.lower(): row for row, model in reversed(list(enumerate(known_models()))) for alias in model.aliases}
    return [None if name is None else known.get(name.lower()) for name in names]


def _model(row: dict[str, str]) -> Model:
    def numbers(name: str) -> list[float]:
        return [float(part) for part in row[name].split(";") if part]

    return Model(
        name=row["model"],
        mlfs=row["mlfs"],
        sizes=tuple(row["sizes"].split(";")),
        dataset=row["dataset"],
        samples=int(row["samples"]),
        batch_sizes=tuple(int(size) for size in numbers("batch_sizes")),
        overhead_s=float(row["overhead_s"]),
        sample_s=float(row["sample_s"]),
        speedups=tuple(numbers("speedups")),
        noise=(float(row["noise_begin"]), float(row["noise_end"])),
        source=row["source"],
        licence=row["licence"],
        aliases=tuple(row[name] for name in VOCABULARIES if row[name]),
    )


Words = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: the step between the states of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
DRAW_BITS = 53


class Draws:
    """Streams of draws of some jobs, one stream for each quantity by its name.

    Parameters
    ----------
    seed : of all
    names : (n,) job ids, or whatever else draws are about
    """

    def __init__(self, seed: int, names: list[str]) -> None:
        # one hash a job, mixed with the quantity's below: draws do not hang on other jobs
        self._keys = np.array([_word(f"{seed}/{name}") for name in names], dtype=np.uint64)

    def uniform(self, what: str, low: float = 0.0, high: float = 1.0) -> Floats:
        """(n,) in [low, high).

        >>> alone, among = Draws(1, ["b"]).uniform("x"), Draws(1, ["a", "b"]).uniform("x")
        >>> bool(alone[0] == among[1]), bool(0.0 <= among[0] < 1.0)
        (True, True)
        """
        # a stream a quantity: new quantities do not shift old ones
        return low + (high - low) * _share(_mixed(self._keys ^ np.uint64(_word(what))))

    def choice(self, what: str, counts: Ints | int) -> Ints:
        """(n,) whole numbers from 0 to below the counts, equally likely."""
        return (self.uniform(what) * counts).astype(np.int64)

    def normal(self, what: str, counts: Ints) -> Floats:
        """(sum of counts,) standard normal, so many for each, one after another."""
        first = np.cumsum(counts) - counts
        at = (np.arange(int(counts.sum())) - np.repeat(first, counts)).astype(np.uint64)
        own = np.repeat(_mixed(self._keys ^ np.uint64(_word(what))), counts)
        # half a step up, or a draw of 0 would be minus infinity
        return np.asarray(ndtri(_share(_mixed(own + (at + np.uint64(1)) * GOLDEN)) + 2.0 ** -(DRAW_BITS + 1)))


def _word(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(state: Words) -> Words:
    """The output function of splitmix64, of the next state."""
    mixed = state + GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _share(words: Words) -> Floats:
    """Words as shares of 2^64, whole numbers of 2^-53."""
    # 53 bits are what a float64 holds exactly
    return (words >> np.uint64(64 - DRAW_BITS)).astype(np.float64) * 2.0**-DRAW_BITS


USUAL_LIMITS_H = (1, 2, 4, 8, 12, 24, 48, 72, 168)
"""Time limits that sites offer; above the last whole days. Ours."""
TARGET = (0.85, 0.995)
"""Required accuracy as a share of the final one: as the generator mlfs has it."""
MODES = (STATIC, ACCORDION, GNS)
COLUMNS_OF: dict[str, tuple[str, ...]] = {
    "speedups": ("model", "min_gpus", "duration_gpus"),
    "training": ("model", "batch_size", "epochs", "adaptation", "duration_gpus"),
    "goodput": ("model", "batch_size", "epochs", "duration_gpus"),
    "tasks": ("model", "epochs", "deadline", "weight", "target_accuracy"),
    "epochs": ("model", "batch_size", "epochs", "duration_gpus"),
    "due": ("deadline", "weight"),
    "limits": ("time_limit_s",),
}
"""Columns by the fact that they belong to."""


@dataclass(frozen=True, slots=True, eq=False)
class EnrichedJobs:
    """Jobs of a trace as models of the table, in the trace's order.

    Attributes
    ----------
    job_ids, models : (n_jobs,) ids, and names of models: the trace's own where it has them
    row : (n_jobs,) of `known_models`
    model_of : name -> the model that it is, in order of the table and of names
    batch_size, epochs : (n_jobs,)
    mode : (n_jobs,) how the batch size changes
    gpus, duration_s : (n_jobs,) of the trace
    draws : of the jobs
    """

    job_ids: list[str]
    models: list[str]
    row: Ints
    model_of: dict[str, Model]
    batch_size: Ints
    epochs: Ints
    mode: list[str]
    gpus: Ints
    duration_s: Floats
    draws: Draws

    def __len__(self) -> int:
        return len(self.job_ids)


def enriched_jobs(trace: Trace, config: EnrichConfig, seed: int) -> EnrichedJobs:
    """What each job is taken for; columns that the trace has are kept where they are filled.

    A model is drawn among those of the job's size in GPU-hours whose speedup was measured on its width, or on the most
    GPUs. The batch size is drawn among the model's that give each GPU a sample. Epochs are as many as fit the duration.

    Raises TraceError for jobs that are elastic by themselves: their durations are on one GPU.
    """
    if trace.elastic.any():
        raise TraceError(
            f"{trace.source.path}: jobs name min_gpus, so that their duration is on one GPU: the trace is elastic by "
            "itself; drop the column and give durations on all GPUs, or leave it as it is"
        )
    job_ids = trace.jobs["job_id"].to_list()
    draws, gpus, duration_s = Draws(seed, job_ids), trace.gpus, trace.duration_s
    models, row = _models(trace, draws, seed)
    batch_size = _kept(trace, "batch_size", _batch_sizes(row, gpus, draws))
    epochs = _kept(trace, "epochs", _epochs(row, batch_size, gpus, duration_s, config))
    # drawn in either case, so that a setting changes only what it names
    modes = np.array(MODES if config.regimes == MIXED else [config.regimes])
    drawn_mode = pl.Series(modes[draws.choice("mode", len(modes))].tolist(), dtype=pl.String)
    mode = filled(trace, "adaptation", drawn_mode).to_list()
    model_of = {name: known_models()[number] for number, name in sorted(set(zip(row.tolist(), models, strict=True)))}
    return EnrichedJobs(job_ids, models, row, model_of, batch_size, epochs, mode, gpus, duration_s, draws)


def drawn_columns(trace: Trace, jobs: EnrichedJobs, config: EnrichConfig, final: Floats | None) -> dict[str, pl.Series]:
    """What the rules say of each column of `COLUMNS_OF`, (n_jobs,); `final` are accuracies at the end, where known."""
    draws = jobs.draws
    # in whole microseconds, since that is what the file keeps
    allowed_s = draws.uniform("due", *config.due) * jobs.duration_s
    at_us = np.round(trace.submit_s * MICROSECONDS) + np.ceil(np.minimum(allowed_s, LONGEST_S) * MICROSECONDS)
    low, high = config.weights
    columns: dict[str, Any] = {
        "model": jobs.models,
        "min_gpus": np.ones(len(jobs), dtype=np.int64),
        "duration_gpus": jobs.gpus,
        "batch_size": jobs.batch_size,
        "epochs": jobs.epochs,
        "adaptation": jobs.mode,
        "deadline": pl.Series(at_us.astype(np.int64)).cast(pl.Datetime("us", "UTC")),
        "weight": (low + draws.choice("weight", high - low + 1)).astype(np.float64),
        "time_limit_s": _limits_s(jobs.duration_s * draws.uniform("limit", *config.limit_factor)),
    }
    if final is not None:
        columns["target_accuracy"] = draws.uniform("target", *TARGET) * final
    return {name: pl.Series(name, values) for name, values in columns.items()}


def filled(trace: Trace, name: str, drawn: pl.Series) -> pl.Series:
    """A column of the trace, with what was drawn where it is empty or not there."""
    return trace.jobs[name].fill_null(drawn) if name in trace.jobs.columns else drawn


def _kept(trace: Trace, name: str, drawn: Ints) -> Ints:
    return filled(trace, name, pl.Series(drawn)).to_numpy()


def _models(trace: Trace, draws: Draws, seed: int) -> tuple[list[str], Ints]:
    """Names and rows: of the table by any name, of names that it does not know by a draw for each name."""
    named: list[str | None] = trace.jobs["model"].to_list() if "model" in trace.jobs.columns else [None] * len(trace)
    strange = sorted({name for name, row in zip(named, model_rows(named), strict=True) if name and row is None})
    # one draw a name: all jobs of an unknown model become the same one
    stand_in = dict(zip(strange, Draws(seed, strange).choice("model", len(known_models())).tolist(), strict=True))
    drawn = _drawn_rows(trace.gpus, trace.duration_s, draws).tolist()
    rows = [
        (stand_in.get(name, own) if name else own) if found is None else found
        for name, found, own in zip(named, model_rows(named), drawn, strict=True)
    ]
    names = [name or known_models()[row].name for name, row in zip(named, rows, strict=True)]
    return names, np.array(rows, dtype=np.int64)


def _drawn_rows(gpus: Ints, duration_s: Floats, draws: Draws) -> Ints:
    models = known_models()
    # SIZES ascend, so the last edge below is the size
    size = np.searchsorted(list(SIZES.values()), gpus * duration_s / HOUR_S, side="right") - 1
    row = np.zeros(len(gpus), dtype=np.int64)
    share = draws.uniform("model")
    for at, name in enumerate(SIZES):
        mine = [number for number, model in enumerate(models) if name in model.sizes]
        reach = np.array([models[number].measured_gpus for number in mine])
        here = np.flatnonzero(size == at)
        # wider jobs than any was measured on take the widest
        wanted = np.minimum(gpus[here], reach.max())
        for width in np.unique(wanted).tolist():
            able = np.array(mine)[reach >= width]
            chosen = here[wanted == width]
            row[chosen] = able[(share[chosen] * len(able)).astype(np.int64)]
    return row


def _batch_sizes(row: Ints, gpus: Ints, draws: Draws) -> Ints:
    sizes = np.ones(len(row), dtype=np.int64)
    share = draws.uniform("batch size")
    for number, width in sorted(set(zip(row.tolist(), gpus.tolist(), strict=True))):
        mine = (row == number) & (gpus == width)
        model = known_models()[number]
        # each GPU needs at least a sample
        able = [size for size in model.batch_sizes if size >= width] or [_enough(model.batch_sizes[-1], width)]
        sizes[mine] = np.array(able)[(share[mine] * len(able)).astype(np.int64)]
    return sizes


def _enough(size: int, gpus: int) -> int:
    """The first doubling of a batch size that gives each GPU a sample."""
    while size < gpus:
        size *= 2
    return size


def _epochs(row: Ints, batch_size: Ints, gpus: Ints, duration_s: Floats, config: EnrichConfig) -> Ints:
    fits = np.ones(len(row))
    for number in np.unique(row).tolist():
        mine = row == number
        fits[mine] = duration_s[mine] / known_models()[number].epoch_s(batch_size[mine], gpus[mine])
    fewest, most = config.epochs
    return np.clip(np.round(fits), fewest, most).astype(np.int64)


def _limits_s(needed_s: Floats) -> Floats:
    usual_s = np.array(USUAL_LIMITS_H) * HOUR_S
    # the first usual limit that is enough
    at = np.searchsorted(usual_s, needed_s)
    return np.where(at < len(usual_s), usual_s[np.minimum(at, len(usual_s) - 1)], np.ceil(needed_s / DAY_S) * DAY_S)


def kept_and_drawn(trace: Trace, columns: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Of some columns: rows that the trace itself fills, and those that are drawn."""
    own = {name: int(trace.jobs[name].is_not_null().sum()) if name in trace.jobs.columns else 0 for name in columns}
    return {name: (count, len(trace) - count) for name, count in own.items()}
