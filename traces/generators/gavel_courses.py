"""Courses of batch sizes: how Accordion and GNS change them over a job's epochs. Shockwave, sections 2.2, 5 and 8.1.

Accordion (Agarwal et al., MLSys 2021) trains with the initial batch size where gradients change quickly, elsewhere with
the model's largest. GNS (McCandlish et al., 2018) doubles the batch size as the noise of gradients grows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.traces.check import require_columns
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.throughputs import Starts
from jobcast.traces.typed import LARGEST_COUNT, numbers_of

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
            found |= (begin <= epoch) & (epoch < end)
        return found | (epoch % self.period < self.length) if self.period else found


CRITICAL: Mapping[str, Critical] = MappingProxyType(
    {
        "ResNet-18": Critical(windows=((0, 10), (150, 160), (250, 260))),
        "ResNet-50": Critical(period=30, length=10),
        "LM": Critical(windows=((0, 10),)),
        "Recommendation": Critical(windows=((60, 70), (80, 90)), first=((512, 30), (1024, 30), (2048, 40), (4096, 10))),
    }
)
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
        known = tuple(start for start in table if start[0] < epochs and start[1] in sizes)
        return known or stay
    return stay


def jittered(course: Starts, epochs: int, sigma: float, rng: np.random.Generator) -> Starts:
    """A course whose regimes but the last are longer or shorter by lognormal factors of median 1; at least 1 epoch.

    The last regime takes what is left; regimes for which nothing is left never come.
    """
    begins = np.array([begin for begin, _ in course], dtype=np.float64)
    lengths = np.maximum(1, np.round(np.diff(begins) * rng.lognormal(0.0, sigma, len(course) - 1)))
    moved = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64).tolist()
    return tuple((begin, size) for begin, (_, size) in zip(moved, course, strict=True) if begin < epochs)


def read_doublings(path: PathLike) -> Doublings:
    """Read the GNS rows of a CSV of `GNS_COLUMNS`.

    Raises TraceError when it cannot be read, or a course does not begin at epoch 0 with the initial batch size or has
    an epoch twice.
    """
    frame, place = read_csv(read_file(path))
    require_columns(frame.columns, place, GNS_COLUMNS)
    numbers = [numbers_of(frame[name], place) for name in ("initial_batch_size", "scale_factor", "epoch", "batch_size")]
    for values in numbers:
        whole = values.is_finite() & (values >= 0) & (values <= LARGEST_COUNT) & (values == values.floor())
        place.refuse(~whole.fill_null(False), values, "must be a whole number", "correct the value")
    table = pl.DataFrame([frame["model"], frame["mode"], *(values.cast(pl.Int64) for values in numbers)])
    found: dict[tuple[str, int, int], Starts] = {}
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
    changes = [0, *(np.flatnonzero(np.diff(critical)) + 1).tolist()]
    if largest == batch_size:
        return ((0, batch_size),)
    return tuple((epoch, batch_size if critical[epoch] else largest) for epoch in changes)


def _doubling(batch_size: int, sizes: Sequence[int]) -> Starts:
    starts = [(0, batch_size)]
    while 2 * starts[-1][1] in sizes:
        starts.append((starts[-1][0] + DOUBLING_EPOCHS, 2 * starts[-1][1]))
    return tuple(starts)
