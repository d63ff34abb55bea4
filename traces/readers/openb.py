"""Alibaba openb: pods of a production cluster of heterogeneous GPUs, one CSV row a pod.

Weng et al., "Beware of Fragmentation", USENIX ATC 2023; alibaba/clusterdata, cluster-trace-gpu-v2023. Times are seconds
from the trace's start; `gpu_milli` is the share of a GPU, in thousandths.
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, require_columns
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import FileBytes, PathLike
from jobcast.traces.readers.reading import (
    NO_DURATION,
    NO_GPUS,
    Reading,
    Unfit,
    leave_out,
    merged_notes,
    with_table,
    without_contradictions,
)

NEEDS = ("name", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time")
MOST_GPUS = 1_000_000
"""Of a node: more is a slip of the pen."""
NODE_NEEDS = ("sn", "gpu", "model")
RENAMED = {
    "name": "job_id",
    "qos": "pool",
    "creation_time": "submit_time",
    "scheduled_time": "start_time",
    "deletion_time": "end_time",
    "pod_phase": "state",
    "gpu_spec": "gpu_type",
}
CPU_POD = "CPU pod (num_gpu 0)"
NEVER_SCHEDULED = "never scheduled"
CLOCK_NOTE = "times are seconds from the trace's start, kept as seconds from the epoch"
MILLI = 1000.0
MIB_PER_GB = 1024.0


class OpenbReader:
    """Reads the list of pods, and beside it, where given, the list of nodes.

    The pool is the quality of service (LS, BE, Burstable, Guaranteed): the trace names no queue. GPUs are `num_gpu` x
    `gpu_milli` / 1000, rounded up. A pod runs from its scheduling to its deletion; pods that were never scheduled
    never ran. Quotas by quality of service are not known: the nodes tell how many GPUs there are in all.
    """

    name = "openb"
    needs = NEEDS

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` has the columns of the list of pods."""
        return set(NEEDS) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the pods.

        Parameters
        ----------
        sources : openb_pod_list_*.csv, and openb_node_list_*.csv or not, in any order
        timezone : not applied: the times hang on no calendar; a note says so
        strict : make rows that would be left out, or times that contradict, an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or the files are not one list of pods and at most one of nodes.
        """
        clock = Clock(timezone)
        takes = "openb takes one list of pods and at most one of nodes"
        remedy = "give openb_pod_list_*.csv and openb_node_list_*.csv"
        pods, nodes = with_table(sources, NODE_NEEDS, takes, remedy)
        frame, place = read_csv(pods)
        require_columns(frame.columns, place, NEEDS)
        place = replace(place, columns={ours: theirs for theirs, ours in RENAMED.items()} | {"gpus": "num_gpu"})
        typed = typed_columns(_canonical(frame, place), place, clock)
        table = typed.frame.with_columns(
            ((pl.col("end_time") - pl.col("start_time")).dt.total_microseconds() / 1e6).alias("duration")
        )
        kept = leave_out(table, _unfit(table), place, strict)
        jobs, mended = without_contradictions(kept.frame, kept.place, strict)
        notes = (*merged_notes(typed.notes), CLOCK_NOTE, *mended, *_told(nodes))
        return kept.reading([pods] if nodes is None else [pods, nodes], frame.height, notes, jobs=jobs)


def _canonical(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Columns under their canonical names; the pod's GPUs in fractions, its duration yet to come."""
    gpus, milli = (numbers_of(frame[name], place) for name in ("num_gpu", "gpu_milli"))
    extra = {"cores": ("cpu_milli", MILLI), "mem_gb": ("memory_mib", MIB_PER_GB)}
    columns = [frame[theirs].alias(ours) for theirs, ours in RENAMED.items() if theirs in frame.columns]
    columns += [
        frame["qos"],
        # rounded, or 0.1 x 3 would be rounded up to a GPU more
        (gpus * milli / MILLI).round(6).alias("gpus"),
        # any duration above 0 passes the types; the true one needs typed times
        pl.repeat(1.0, frame.height, dtype=pl.Float64, eager=True).alias("duration"),
    ]
    columns += [
        (numbers_of(frame[theirs], place) / unit).alias(ours)
        for ours, (theirs, unit) in extra.items()
        if theirs in frame.columns
    ]
    return pl.DataFrame(columns)


def _unfit(table: pl.DataFrame) -> list[Unfit]:
    return [
        # the pods of cores are told apart from damaged rows
        Unfit(CPU_POD, table["gpus"] == 0, "gpus", "must be >= 1"),
        Unfit(NO_GPUS, table["gpus"].fill_null(-1) < 0, "gpus", "must be >= 1"),
        Unfit(NEVER_SCHEDULED, table["start_time"].is_null(), "start_time", "a value is needed"),
        Unfit(NO_DURATION, table["duration"].fill_null(0.0) <= 0.0, "end_time", "must lie after scheduled_time"),
    ]


def _told(nodes: FileBytes | None) -> tuple[str, ...]:
    """What the list of nodes tells: GPUs by model."""
    if nodes is None:
        return ()
    frame, place = read_csv(nodes)
    require_columns(frame.columns, place, NODE_NEEDS)
    gpus = numbers_of(frame["gpu"], place)
    # a note is no place for a wrong sum
    if gpus.null_count() or not gpus.is_between(0, MOST_GPUS).all():
        raise TraceError(f"{nodes.path}, column gpu: must be a number from 0 to {MOST_GPUS:,} in every row; correct it")
    by_model = pl.DataFrame({"model": frame["model"].fill_null("unknown"), "gpu": gpus}).group_by("model").sum()
    shown = ", ".join(f"{int(count)} {model}" for model, count in by_model.sort("model").rows())
    return (f"{frame.height} nodes hold {int(gpus.sum())} GPUs: {shown}; quotas of pools are not told",)
