"""The models that jobs are taken for: one table that joins the vocabularies of Gavel, PCS, Pollux and MLFS.

`models.csv` beside this file has a row a model, with its sources and their licences. One formula gives every table its
seconds, so that what is told of a job agrees:

    steps a second = speed of the GPU type x speedup(g) / (overhead_s + sample_s x batch size)

on a V100, whose speed is 1; batch sizes are of all GPUs together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints

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
        last = np.log2(known[-1] / known[-2]) if self.speedups else UNKNOWN_GROWTH
        growth = 2.0 ** max(float(last), LEAST_GROWTH)
        doublings = max(len(self.speedups), int(np.ceil(np.log2(max(most_gpus, 1)))))
        while len(known) <= doublings:
            known.append(known[-1] * growth)
        return 2 ** np.arange(doublings + 1), np.array(known)

    def speedup(self, gpus: Ints) -> Floats:
        """Over one GPU."""
        at, known = self.knots(int(np.max(gpus, initial=1)))
        speedups: Floats = np.interp(gpus, at, known)
        return speedups

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
