"""What the job logs of Helios and Acme share: one CSV row a job, one file a cluster, CPU jobs among the others."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.traces.check import Place, require_columns, stacked_place
from jobcast.traces.column_types import Clock, lean_counts, lean_numbers, lean_times, typed_columns
from jobcast.traces.csv_table import read_csv_by_blocks, stacked
from jobcast.traces.files import PathLike
from jobcast.traces.readers.reading import (
    NO_DURATION,
    NO_GPUS,
    Unfit,
    leave_out,
    merged_notes,
    source_of,
    without_contradictions,
)
from jobcast.traces.table import Trace

CPU_JOB = "CPU job (gpu_num 0)"
_LEAN: dict[str, Callable[[pl.Series], pl.Series]] = {
    "submit_time": lean_times,
    "start_time": lean_times,
    "end_time": lean_times,
    "duration": lean_numbers,
    "gpus": lean_counts,
    "cores": lean_numbers,
}
"""Canonical columns that take less room than their text."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How a cluster's log names its columns.

    Attributes
    ----------
    needs : columns without which a file is no such log
    renamed : the log's names of canonical columns
    further : how other columns are kept that are no text
    derived : columns left out, since others tell the same (as is one that has the canonical name of another)
    pool_from_cluster : whether the cluster is the pool; no column names one
    """

    needs: tuple[str, ...]
    renamed: Mapping[str, str]
    further: Mapping[str, Callable[[pl.Series], pl.Series]] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    pool_from_cluster: bool = False


def by_cluster(paths: Sequence[PathLike], cluster_of: Callable[[PathLike], str]) -> dict[str, PathLike]:
    """Files by the cluster that their names tell, names ascending.

    Raises
    ------
    ConfigError
        Two files are of one cluster.
    """
    found: dict[str, PathLike] = {}
    # sorted: the trace must not hang on the order of arguments
    for path in sorted(paths, key=os.fspath):
        cluster = cluster_of(path)
        if cluster in found:
            both = f"{os.fspath(found[cluster])} and {os.fspath(path)}"
            raise ConfigError(f"{both} are both of cluster {cluster}; put each into a folder named for its cluster")
        found[cluster] = path
    return dict(sorted(found.items()))


def cluster_named(path: PathLike, plain_names: Sequence[str]) -> str:
    """The cluster that a log is of: what its name adds to the usual one, else its folder.

    >>> cluster_named("data/Venus/cluster_log.csv", ["cluster_log"])
    'Venus'
    >>> cluster_named("data/trace_seren.csv", ["trace"])
    'seren'
    """
    name = Path(path).stem
    # what is left of the name beside the usual one names the cluster
    for plain in plain_names:
        name = name.replace(plain, "")
    return name.strip("_-. ") or Path(path).absolute().parent.name or "cluster"


def within(cluster: str, name: str, clusters: int) -> str:
    """Name of a job or a pool among those of several clusters; of one cluster, the name itself."""
    return name if clusters == 1 else f"{cluster}/{name}"


def read_logs(
    logs: Mapping[str, PathLike], layout: LogFormat, clock: Clock, strict: bool, advice: tuple[str, ...] = ()
) -> Trace:
    """Read the logs of one or several clusters as one trace.

    With several clusters the ids and pools are `cluster/id`, since both start anew in each; with one they are verbatim.
    CPU jobs and jobs that never ran are left out and counted. Start and end that lie before the submission or each
    other are emptied, and a note says in how many rows.

    Parameters
    ----------
    logs : files by cluster
    layout : what the columns are called
    clock : how to read times without an offset
    strict : make rows that would be left out or mended an error
    advice : notes to add

    Raises
    ------
    TraceError
        A file cannot be read, or a row of it cannot be used; the line names the first such row.
    """
    frame, place, sha256s = _stacked_logs(logs, layout)
    source = source_of(list(logs.values()), sha256s, frame.height)
    typed = typed_columns(frame, place, clock)
    kept = leave_out(typed.frame, _unfit(typed.frame), place, strict)
    notes = merged_notes((*typed.notes, *advice))
    # logs of millions of rows: each table is dropped as soon as the next is made
    del frame, typed
    mended, more = without_contradictions(kept.frame, kept.place, strict)
    place, dropped = kept.place, kept.dropped
    del kept
    name = "+".join(logs)
    return Trace.from_frame(mended, name=name, source=source, notes=(*notes, *more), dropped=dropped, place=place)


def _stacked_logs(logs: Mapping[str, PathLike], layout: LogFormat) -> tuple[pl.DataFrame, Place, list[str]]:
    """All rows under canonical names, where each stands, and the hashes of the files."""
    tables = [
        read_csv_by_blocks(path, partial(_narrow, layout=layout, cluster=cluster, clusters=len(logs), path=path))
        for cluster, path in logs.items()
    ]
    columns = {ours: theirs for theirs, ours in layout.renamed.items()}
    frames = [table.frame for table in tables]
    place = stacked_place([table.place for table in tables], [frame.height for frame in frames])
    return stacked(frames), replace(place, columns=columns), [table.sha256 for table in tables]


def _narrow(frame: pl.DataFrame, layout: LogFormat, cluster: str, clusters: int, path: PathLike) -> pl.DataFrame:
    """A block of a log under canonical names, in lean types."""
    # for each block: only there is the header at hand
    require_columns(frame.columns, Place(os.fspath(path)), layout.needs)
    hidden = {*layout.derived, *layout.renamed.values()}
    columns = {}
    for theirs in frame.columns:
        ours = layout.renamed.get(theirs, theirs)
        # a column of that name would take the place of the log's own, see the test
        if theirs in hidden and theirs == ours:
            continue
        lean = layout.further.get(theirs) or _LEAN.get(ours)
        columns[ours] = lean(frame[theirs]) if lean else frame[theirs]
    if layout.pool_from_cluster:
        columns["pool"] = pl.repeat(cluster, frame.height, dtype=pl.String, eager=True)
    table = pl.DataFrame([values.alias(ours) for ours, values in columns.items()])
    # ids start anew in each cluster
    if clusters > 1:
        unique = ["job_id"] if layout.pool_from_cluster else ["job_id", "pool"]
        table = table.with_columns((pl.lit(f"{cluster}/") + pl.col(name)).alias(name) for name in unique)
    return table


def _unfit(frame: pl.DataFrame) -> list[Unfit]:
    return [
        # CPU jobs are half of the logs: a reason of their own
        Unfit(CPU_JOB, frame["gpus"] == 0, "gpus", "must be >= 1"),
        Unfit(NO_GPUS, frame["gpus"].fill_null(-1) < 0, "gpus", "must be >= 1"),
        Unfit(NO_DURATION, frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
    ]
