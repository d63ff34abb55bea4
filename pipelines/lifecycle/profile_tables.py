"""`jobcast profiles`: measurements of several kinds imported into one table of profiles, and what such a table holds.

`jobcast profiles show`: what a table of profiles holds.

`jobcast profiles import`: measurements of several kinds into one table of profiles.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from jobcast import __version__
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.report.layout import aligned
from jobcast.traces.check import shown_columns
from jobcast.traces.files import read_file
from jobcast.traces.goodput_tables import STEP_COLUMNS, read_step_times
from jobcast.traces.profiles import (
    KEY,
    PROFILE_COLUMNS,
    PROFILE_SCHEMA,
    SQLITE_MAGIC,
    SQLITE_SUFFIXES,
    merge_sqlite,
    profile_table,
    read_profiles,
    write_profiles,
)
from jobcast.traces.table_files import read_plain
from jobcast.traces.trainings import SAMPLES, THROUGHPUT_COLUMNS, read_throughputs


def show_profiles(path: Path, model: str | None = None, gpu_type: str | None = None) -> dict[str, Any]:
    """Rows of a table, of one model and GPU type where they are named. Raises TraceError where none is left."""
    table = read_profiles(path)
    kept = table.frame
    # A name that is not there is told with those that are; an empty selection of both, without.
    for column, wanted, known in (("model", model, table.models), ("gpu_type", gpu_type, table.gpu_types)):
        if wanted is not None and wanted not in known:
            raise TraceError(f"{path}: no {column} {wanted}; it has {', '.join(known)}")
        kept = kept if wanted is None else kept.filter(pl.col(column) == wanted)
    if kept.is_empty():
        raise TraceError(f"{path}: no row of model {model} on {gpu_type}; name another of them")
    return {
        "rows": len(kept),
        "models": kept["model"].unique(maintain_order=True).to_list(),
        "gpu_types": kept["gpu_type"].unique(maintain_order=True).to_list(),
        "profiles": kept.to_dicts(),
        "inputs": {"profiles": {"path": table.path, "sha256": table.sha256, "rows": table.rows}},
        "jobcast": __version__,
    }


def shown(result: dict[str, Any]) -> str:
    """A line a model, batch size and GPU type; a column a number of GPUs, seconds an epoch."""
    by_line: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in result["profiles"]:
        size = "any" if row["batch_size"] is None else str(row["batch_size"])
        by_line.setdefault((row["model"], size, row["gpu_type"]), {})[row["gpus"]] = row["epoch_s"]
    gpus = sorted({one for its in by_line.values() for one in its})
    rows = [[*line, *(f"{its[one]:.4g}" if one in its else "-" for one in gpus)] for line, its in by_line.items()]
    head = ["model", "batch size", "GPU type", *map(str, gpus)]
    return "\n".join(["seconds an epoch, by number of GPUs", aligned([head, *rows], words=3)])


STEP_TIMES_GPU = "t4"
"""What Pollux's step times were measured on (OSDI 2021, section 5)."""
ONE_NODE = 1
MORE_SAMPLES: Mapping[str, int] = MappingProxyType({"cifar10": 50_000, "bert": 87_599})
"""Samples an epoch beside Gavel's: CIFAR-10's training images, the questions of SQuAD 1.1's training part."""
ALL_MODELS = ""
"""In place of a model: all those that nothing else is known of."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """How measurements become profiles.

    Attributes
    ----------
    kind : of the sources: a key of `FORMATS`, or auto
    samples : model -> samples an epoch, before those that are built in; `ALL_MODELS` for all others
    gpu_type : that step times were measured on, or the one whose throughputs are taken; None: t4, all types
    """

    kind: str = "auto"
    samples: Mapping[str, int] = field(default_factory=dict)
    gpu_type: str | None = None

    def samples_of(self, model: str, path: Path) -> int:
        """Samples an epoch of a model. Raises ConfigError where that is not known."""
        # What the user says goes first.
        for table in (self.samples, MORE_SAMPLES, SAMPLES):
            if model in table:
                return table[model]
        if ALL_MODELS in self.samples:
            return self.samples[ALL_MODELS]
        raise ConfigError(
            f"--samples: {path} has the model {model}, whose samples an epoch are not known; add {model}=N"
        )


Read = tuple[pl.DataFrame, tuple[str, ...]]


def _step_times(path: Path, settings: ImportSettings) -> Read:
    """Batch size of the whole job; steps of one node, for a job runs on one."""
    rows: list[tuple[str, int, str, int, float]] = []
    elsewhere = 0
    for app, times in read_step_times(path).items():
        here = times.nodes == ONE_NODE
        elsewhere += int((~here).sum())
        # Pollux tells the batch size of a GPU, profiles that of the job.
        total = times.gpus * times.local_batch_size
        epoch_s = settings.samples_of(app, path) / total * times.step_s
        for row in np.flatnonzero(here):
            kind = settings.gpu_type or STEP_TIMES_GPU
            rows.append((app, int(total[row]), kind, int(times.gpus[row]), float(epoch_s[row])))
    if not rows:
        raise TraceError(f"{path}: no step was measured on one node, and a job runs on one; nothing can be imported")
    frame = pl.DataFrame(rows, schema=PROFILE_SCHEMA, orient="row")
    note = f"{path}: {elsewhere} steps over several nodes were left out, for a job runs on one"
    # The same configuration was measured several times.
    return frame.group_by(KEY, maintain_order=True).mean(), (note,) if elsewhere else ()


def _throughputs(path: Path, settings: ImportSettings) -> Read:
    """Batch size as the table has it: steps are counted so that samples / batch size of them are an epoch."""
    frame = read_plain(path, THROUGHPUT_COLUMNS)[0]
    nameless = int(frame["batch_size"].is_null().sum())
    types = [settings.gpu_type] if settings.gpu_type else frame["gpu_type"].unique(maintain_order=True).drop_nulls()
    rows = [
        (model, size, kind, gpus, settings.samples_of(model, path) / size / steps_s)
        for kind in types
        # Steps a second, where an epoch has samples / batch size of them.
        for (model, gpus), by_size in read_throughputs(path, kind).rates.items()
        for size, steps_s in by_size.items()
    ]
    note = f"{path}: {nameless} rows without a batch size were left out"
    return pl.DataFrame(rows, schema=PROFILE_SCHEMA, orient="row"), (note,) if nameless else ()


FORMATS: Mapping[str, tuple[Callable[[Path, ImportSettings], Read], tuple[str, ...]]] = {
    "profiles": (lambda path, settings: (read_profiles(path).frame, ()), PROFILE_COLUMNS),
    "step-times": (_step_times, ("app", *STEP_COLUMNS)),
    "throughputs": (_throughputs, THROUGHPUT_COLUMNS),
}
"""Kind of source -> reader, and the columns that it is known by."""


def import_profiles(sources: Sequence[Path], out: Path, settings: ImportSettings) -> dict[str, Any]:
    """Bring measurements into a table of profiles; what to tell the user.

    An existing SQLite file is merged into: rows with the same key are replaced. CSV and Parquet are written anew.

    Raises
    ------
    TraceError
        A source cannot be read or used.
    ConfigError
        Samples an epoch of a model are not known, or the table cannot be written.
    """
    read = [(path, *_read(path, settings)) for path in sources]
    whole = pl.concat([frame for _, _, frame, _ in read])
    # Later sources are newer measurements.
    last = whole.unique(KEY, keep="last", maintain_order=True)
    table = profile_table(last, ", ".join(map(str, sources)))
    sqlite = out.suffix.lower() in SQLITE_SUFFIXES
    if sqlite and out.exists():
        # Read for its errors: what is no table of profiles must not be merged into.
        read_profiles(out)
        added, replaced = merge_sqlite(table.frame, out)
    else:
        write_profiles(table.frame, out)
        added, replaced = len(table), 0
    twice = len(whole) - len(last)
    notes = [note for *_, noted in read for note in noted]
    notes += [f"{twice} rows were in several sources; the last one counts"] if twice else []
    return {
        "out": str(out),
        "rows": len(table),
        "added": added,
        "replaced": replaced,
        "models": list(table.models),
        "gpu_types": list(table.gpu_types),
        "inputs": {
            str(path): {"format": kind, "sha256": read_file(path).sha256, "rows": len(frame)}
            for path, kind, frame, _ in read
        },
        "notes": notes,
        "jobcast": __version__,
    }


def parse_samples(pairs: Sequence[str]) -> dict[str, int]:
    """`MODEL=N`, or `N` for all models that nothing else is known of. Raises ConfigError.

    >>> parse_samples(["bert=88000", "1000"])
    {'bert': 88000, '': 1000}
    """
    found: dict[str, int] = {}
    for pair in pairs:
        # From the right, for names of models may hold the sign; N alone has the empty name, all models.
        model, _, number = pair.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            raise ConfigError(f"--samples {pair}: write --samples MODEL=N with a whole number N of 1 or more")
        found[model] = int(number)
    return found


def _read(path: Path, settings: ImportSettings) -> tuple[str, pl.DataFrame, tuple[str, ...]]:
    kind = _kind_of(path) if settings.kind == "auto" else settings.kind
    if kind not in FORMATS:
        raise ConfigError(f"--format {kind}: is not known; choose from auto, {', '.join(FORMATS)}")
    return kind, *FORMATS[kind][0](path, settings)


def _kind_of(path: Path) -> str:
    """The format by the columns. Raises TraceError where it is none that is known."""
    # By content, not by ending: databases come under many names.
    if read_file(path).data.startswith(SQLITE_MAGIC):
        return "profiles"
    frame = read_plain(path, ())[0]
    for kind, (_, columns) in FORMATS.items():
        if set(columns) <= set(frame.columns):
            return kind
    known = "; ".join(f"{kind}: {', '.join(columns)}" for kind, (_, columns) in FORMATS.items())
    raise TraceError(f"{path}: columns {shown_columns(frame.columns)} are of no format that is known ({known})")
