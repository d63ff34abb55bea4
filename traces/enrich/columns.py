"""Columns that a trace lacks: the model that each job is taken for, and what follows from it.

Draws by (seed, job id): what is drawn for a job does not depend on which other jobs there are, or in what order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import TraceError
from jobcast.traces.columns import LONGEST_S
from jobcast.traces.enrich.config import ACCORDION, GNS, MIXED, STATIC, EnrichConfig
from jobcast.traces.enrich.models import SIZES, Model, known_models, model_rows
from jobcast.traces.table import MICROSECONDS, Trace

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
        self._keys = np.array([_word(f"{seed}/{name}") for name in names], dtype=np.uint64)

    def uniform(self, what: str, low: float = 0.0, high: float = 1.0) -> Floats:
        """(n,) in [low, high).

        >>> alone, among = Draws(1, ["b"]).uniform("x"), Draws(1, ["a", "b"]).uniform("x")
        >>> bool(alone[0] == among[1]), bool(0.0 <= among[0] < 1.0)
        (True, True)
        """
        return low + (high - low) * _share(_mixed(self._keys ^ np.uint64(_word(what))))

    def choice(self, what: str, counts: Ints | int) -> Ints:
        """(n,) whole numbers from 0 to below the counts, equally likely."""
        return (self.uniform(what) * counts).astype(np.int64)

    def normal(self, what: str, counts: Ints) -> Floats:
        """(sum of counts,) standard normal, so many for each, one after another."""
        first = np.cumsum(counts) - counts
        at = (np.arange(int(counts.sum())) - np.repeat(first, counts)).astype(np.uint64)
        own = np.repeat(_mixed(self._keys ^ np.uint64(_word(what))), counts)
        drawn: Floats = ndtri(_share(_mixed(own + (at + np.uint64(1)) * GOLDEN)) + 2.0 ** -(DRAW_BITS + 1))
        return drawn


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
    return (words >> np.uint64(64 - DRAW_BITS)).astype(np.float64) * 2.0**-DRAW_BITS


HOUR_S, DAY_S = 3600.0, 86400.0
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
    modes = np.array(MODES if config.regimes == MIXED else [config.regimes])
    drawn_mode = pl.Series(modes[draws.choice("mode", len(modes))].tolist(), dtype=pl.String)
    mode = filled(trace, "adaptation", drawn_mode).to_list()
    model_of = {name: known_models()[number] for number, name in sorted(set(zip(row.tolist(), models, strict=True)))}
    return EnrichedJobs(job_ids, models, row, model_of, batch_size, epochs, mode, gpus, duration_s, draws)


def drawn_columns(trace: Trace, jobs: EnrichedJobs, config: EnrichConfig, final: Floats | None) -> dict[str, pl.Series]:
    """What the rules say of each column of `COLUMNS_OF`, (n_jobs,); `final` are accuracies at the end, where known."""
    draws = jobs.draws
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
    kept: Ints = filled(trace, name, pl.Series(drawn)).to_numpy()
    return kept


def _models(trace: Trace, draws: Draws, seed: int) -> tuple[list[str], Ints]:
    """Names and rows: of the table by any name, of names that it does not know by a draw for each name."""
    named: list[str | None] = trace.jobs["model"].to_list() if "model" in trace.jobs.columns else [None] * len(trace)
    strange = sorted({name for name, row in zip(named, model_rows(named), strict=True) if name and row is None})
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
    size = np.searchsorted(list(SIZES.values()), gpus * duration_s / HOUR_S, side="right") - 1
    row = np.zeros(len(gpus), dtype=np.int64)
    share = draws.uniform("model")
    for at, name in enumerate(SIZES):
        mine = [number for number, model in enumerate(models) if name in model.sizes]
        reach = np.array([models[number].measured_gpus for number in mine])
        here = np.flatnonzero(size == at)
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
    epochs: Ints = np.clip(np.round(fits), fewest, most).astype(np.int64)
    return epochs


def _limits_s(needed_s: Floats) -> Floats:
    usual_s = np.array(USUAL_LIMITS_H) * HOUR_S
    at = np.searchsorted(usual_s, needed_s)
    limits: Floats = np.where(
        at < len(usual_s), usual_s[np.minimum(at, len(usual_s) - 1)], np.ceil(needed_s / DAY_S) * DAY_S
    )
    return limits


def kept_and_drawn(trace: Trace, columns: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Of some columns: rows that the trace itself fills, and those that are drawn."""
    own = {name: int(trace.jobs[name].is_not_null().sum()) if name in trace.jobs.columns else 0 for name in columns}
    return {name: (count, len(trace) - count) for name, count in own.items()}
