"""Gavel's traces: ten tab-separated fields a job, without durations (stanford-futuredata/gavel).

What the traces of Gavel and Shockwave share: tab-separated training jobs without a header.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020;
Zheng et al., "Shockwave", NSDI 2023. A job type reads `ResNet-18 (batch size 32)`; times are seconds from the start.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, require_columns
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import FileBytes, PathLike
from jobcast.traces.readers.reading import (
    NO_DURATION,
    NO_GPUS,
    Reading,
    Unfit,
    leave_out,
    merged_notes,
    read_headless,
    with_table,
)

JOB_TYPE = r"^(?P<model>[^()\t]*[^()\s])\s*(?:\(batch size (?P<batch_size>\d+)\))?$"
"""Some of Gavel's models have no batch size: A3C, CycleGAN."""
STARTS_LIKE = re.compile(rb"^\s*[^()\t]*[^()\s]\s*(\(batch size \d+\))?$")
NUMBER = re.compile(rb"^\s*\d+(\.\d*)?\s*$")
THROUGHPUTS = ("gpu_type", "model", "batch_size", "gpus", "steps_per_second")
REFERENCE_GPU = "v100"
"""Run times are taken on this type where the throughputs know it, else on the first that they name."""
SLO_NOTE = "deadline: submit_time + slo x duration, where slo is > 0"
CLOCK_NOTE = "times are seconds from the trace's start, kept as seconds from the epoch"
NO_THROUGHPUT = "no throughput of its model, batch size and width"


class TrainingJobs:
    """Reads one trace, its lines laid out as `columns` tell, and perhaps a table of throughputs."""

    name: ClassVar[str]
    """Of the format, and of the one pool."""
    columns: ClassVar[tuple[str, ...]]
    """All of a line's, in order; `job_type`, `steps`, `gpus`, `slo` and `submit_time` are among them."""
    needs: Sequence[str] = ()

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether the first line is of a job type and as many fields."""
        fields = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].split(b"\t")
        # the number of fields tells Gavel's lines from Shockwave's
        if len(fields) != len(self.columns) or STARTS_LIKE.match(fields[0]) is None:
            return False
        of = dict(zip(self.columns, fields, strict=True))
        return all(NUMBER.match(of[name]) for name in ("steps", "gpus", "submit_time"))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a trace; parameters and errors as `read_jobs`."""
        return read_jobs(sources, self, timezone, strict)


def read_jobs(sources: Sequence[PathLike], layout: TrainingJobs, timezone: str | None, strict: bool) -> Reading:
    """Read a trace; where it has no durations, from its steps and a table of throughputs.

    Parameters
    ----------
    sources : the trace and, where durations are to be told by steps, a CSV of `THROUGHPUTS`, in any order
    layout : of a line
    timezone : not applied: the times hang on no calendar; a note says so
    strict : make rows that would be left out an error

    Raises
    ------
    TraceError
        A file cannot be read, or a row of it cannot be used; the line names the first such row.
    ConfigError
        The zone is not known, or a file is missing or too many.
    """
    clock = Clock(timezone)
    takes = f"{layout.name} takes one trace and at most one table of throughputs ({', '.join(THROUGHPUTS)})"
    trace_file, throughputs = with_table(sources, THROUGHPUTS, takes, "convert traces one by one")
    frame, place = read_headless(trace_file, layout.columns, "\t")
    parts = frame["job_type"].str.strip_chars().str.extract_groups(JOB_TYPE).struct.unnest()
    place.refuse(
        parts["model"].is_null(), frame["job_type"], "must read Model (batch size N) or Model", "correct the line"
    )
    numbers = {name: numbers_of(frame[name], place) for name in ("steps", "gpus", "submit_time")}
    table = _table(frame, parts, numbers, layout)
    notes: tuple[str, ...] = ()
    # Gavel's own traces tell steps alone
    if "duration" not in table.columns:
        duration, notes = _durations(table, throughputs, trace_file)
        table = table.with_columns(duration)
    table, promised = _deadlines(table, numbers_of(frame["slo"], place), place)
    # deadlines are set before: they are times like the others
    typed = typed_columns(table, place, clock)
    without = NO_THROUGHPUT if throughputs is not None else NO_DURATION
    unfit = [
        Unfit(NO_GPUS, typed.frame["gpus"].fill_null(0) < 1, "gpus", "must be >= 1"),
        Unfit(without, typed.frame["duration"].is_null(), "duration", "a throughput is needed"),
        Unfit(NO_DURATION, typed.frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
    ]
    kept = leave_out(typed.frame, unfit, place, strict)
    files = [trace_file] if throughputs is None else [trace_file, throughputs]
    return kept.reading(files, frame.height, (*merged_notes(typed.notes), CLOCK_NOTE, *notes, *promised))


def _table(
    frame: pl.DataFrame, parts: pl.DataFrame, numbers: dict[str, pl.Series], layout: TrainingJobs
) -> pl.DataFrame:
    """Canonical columns; ids are row numbers from 0, zero-padded."""
    # zero-padded, so that ids sort as rows do
    digits = len(str(max(frame.height - 1, 0)))
    ids = pl.Series("job_id", range(frame.height), dtype=pl.Int64).cast(pl.String).str.zfill(digits)
    # columns that only Shockwave's lines have
    known = [frame[name] for name in layout.columns if name in ("duration", "adaptation", "weight")]
    batch_size = parts["batch_size"].cast(pl.Int64, strict=False)
    pool = pl.repeat(layout.name, frame.height, dtype=pl.String, eager=True).alias("pool")
    return pl.DataFrame(
        [ids, pool, parts["model"], batch_size, *(values.alias(name) for name, values in numbers.items()), *known]
    )


def _deadlines(table: pl.DataFrame, slo: pl.Series, place: Place) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Deadlines of jobs with a service-level objective, a multiple of their run time; below 0 is none.

    As Gavel's scheduler takes it: SLO x duration after the arrival.
    """
    place.refuse(~slo.is_finite(), slo, "must be a finite number", "correct the line")
    given = slo > 0
    if not given.any():
        return table, ()
    duration_s = numbers_of(table["duration"], place)
    # on the nominal duration, as Gavel's scheduler computes it
    deadline = (table["submit_time"] + slo * duration_s).set(~given.fill_null(False), None)
    return table.with_columns(deadline.alias("deadline")), (SLO_NOTE,)


def _durations(
    table: pl.DataFrame, throughputs: FileBytes | None, trace_file: FileBytes
) -> tuple[pl.Series, tuple[str, ...]]:
    """Steps / (steps per second) in seconds; null where the throughput is not known."""
    if throughputs is None:
        raise TraceError(
            f"{trace_file.path}: holds steps but no durations; give a table of throughputs beside it, a CSV with the "
            f"columns {', '.join(THROUGHPUTS)}"
        )
    frame, place = read_csv(throughputs)
    require_columns(frame.columns, place, THROUGHPUTS)
    known = pl.DataFrame(
        [frame["gpu_type"], frame["model"]]
        + [numbers_of(frame[name], place) for name in ("batch_size", "gpus", "steps_per_second")]
    )
    if known.is_empty():
        raise TraceError(f"{throughputs.path}: no throughputs, only a header; give at least one row")
    types = known["gpu_type"].to_list()
    # the published simulators quote run times on V100s
    gpu_type = REFERENCE_GPU if REFERENCE_GPU in types else types[0]
    keys = ["model", "batch_size", "gpus"]
    # a rate of 0 stands for "does not run there"
    rates = known.filter(pl.col("gpu_type") == gpu_type, pl.col("steps_per_second") > 0).unique(keys, keep="first")
    wanted = table.with_columns(pl.col("batch_size").cast(pl.Float64), pl.col("gpus").cast(pl.Float64))
    # nulls_equal: models without a batch size match rows without one
    joined = wanted.join(rates, on=keys, how="left", maintain_order="left", nulls_equal=True)
    duration = joined["steps"] / joined["steps_per_second"]
    return duration.alias("duration"), (f"duration: steps / steps per second on {gpu_type} of {throughputs.path}",)


class GavelReader(TrainingJobs):
    """Reads a trace and a table of throughputs, which gives run times: steps / steps per second on a V100."""

    name = "gavel"
    columns = (
        "job_type",
        "command",
        "working_directory",
        "steps_argument",
        "needs_data",
        "steps",
        "gpus",
        "weight",
        "slo",
        "submit_time",
    )
