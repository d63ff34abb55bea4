"""Helios: logs of four clusters of SenseTime, April to September 2020, one CSV row a job.

Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021;
S-Lab-System-Group/HeliosData. Times are wall-clock times of UTC+8 without an offset; durations are seconds.

Quotas of Helios's virtual clusters: one CSV row a day, one column a virtual cluster, and their total.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import ALWAYS_S, PoolsTable, Quota
from jobcast.traces.check import REMEDY, Place
from jobcast.traces.column_types import Clock, lean_counts, lean_numbers, read_times
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.cluster_log import LogFormat, by_cluster, cluster_named, read_logs, within
from jobcast.traces.readers.reading import Reading, zone_note
from jobcast.traces.table import Trace

DAY, TOTAL = "date", "total"


def is_quotas(header: Sequence[str]) -> bool:
    """Whether a header is that of a table of quotas.

    >>> is_quotas(["date", "vcA", "total"])
    True
    """
    # a table of no virtual cluster would tell nothing
    return len(header) > 2 and header[0] == DAY and header[-1] == TOTAL


def read_quotas(trace: Trace, files: Mapping[str, PathLike], clusters: int, clock: Clock) -> Reading:
    """The trace with the quotas that its clusters' tables tell.

    A quota holds from the beginning of its day, in the zone of the log's times; only changes are kept. What the first
    day tells holds before it too where jobs were submitted earlier. A virtual cluster is there from its first GPU on,
    and gone on days of 0.

    Raises
    ------
    TraceError
        A table cannot be read, or holds what is no day or no number of GPUs.
    """
    quotas: list[Quota] = []
    # traces are in order of submission
    first_s = float(trace.submit_s[0])
    for cluster, path in files.items():
        days_s, columns = _table(path, clock)
        for name, gpus in columns.items():
            pool = within(cluster, name, clusters)
            quotas += _changes(pool, days_s, gpus, first_s)
    result = {quota.pool for quota in quotas}
    note = f"quotas of {len(result)} pools told, {len(quotas) - len(result)} changes"
    return Reading(replace(trace, notes=(*trace.notes, note)), PoolsTable(tuple(quotas)) if quotas else None)


def _changes(pool: str, days_s: list[float], gpus: list[int], first_s: float) -> list[Quota]:
    """A pool's quotas at the days on which they change.

    >>> _changes("a", [0.0, 86400.0, 172800.0], [0, 8, 8], 0.0)
    [Quota(pool='a', gpus=8, from_s=86400.0, cells=())]
    >>> [quota.gpus for quota in _changes("a", [0.0, 86400.0, 172800.0], [8, 0, 0], 0.0)]
    [8, 0]
    """
    changes: list[Quota] = []
    for day, (day_s, count) in enumerate(zip(days_s, gpus, strict=True)):
        # before its first GPU it is not there anyway
        if changes[-1].gpus != count if changes else count:
            # jobs before the first day would otherwise meet no quota
            since_s = ALWAYS_S if day == 0 and first_s < day_s else day_s
            changes.append(Quota(pool, count, since_s))
    return changes


def _table(path: PathLike, clock: Clock) -> tuple[list[float], dict[str, list[int]]]:
    """Days, as instants ascending, and the GPUs of each virtual cluster on them."""
    frame, place = read_csv(read_file(path))
    if frame.is_empty():
        raise TraceError(f"{os.fspath(path)}: no days, only a header; leave it out or give it whole")
    days, _ = read_times(frame[DAY], place, clock)
    place.refuse(days.is_null(), days, "a day is needed", REMEDY)
    place.refuse(days.is_duplicated(), frame[DAY], "a day is given twice", "keep one row of it")
    # rows may come in any order, and changes are found between neighbours
    order = days.arg_sort()
    counts = {name: _counts(frame[name], place).gather(order).to_list() for name in frame.columns[1:-1]}
    return (days.gather(order).dt.timestamp("us") / 1e6).to_list(), counts


def _counts(values: pl.Series, place: Place) -> pl.Series:
    numbers = lean_numbers(values)
    # still text: some value is no number, and the check names it
    if numbers.dtype != pl.Float64:
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
        place.refuse(numbers.is_null() & values.is_not_null(), values, "must be a number of GPUs", REMEDY)
    # beyond 2^53 whole numbers are not exact any more
    bad = ~numbers.is_finite() | (numbers < 0) | (numbers > 2**53)
    place.refuse(bad, values, "must be a number of GPUs", REMEDY)
    return numbers.fill_null(0.0).ceil().cast(pl.Int64)


HEAD_BYTES = 65536
ZONE = "Asia/Shanghai"
LOG_NAME, QUOTAS_NAME = "cluster_log", "cluster_gpu_number"
HELIOS = LogFormat(
    needs=("job_id", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time", "duration"),
    renamed={"vc": "pool", "gpu_num": "gpus", "cpu_num": "cores"},
    further={"node_num": lean_counts, "queue": lean_counts},
)


class HeliosReader:
    """Reads the logs of one or several clusters, and their quotas day by day where those are given too.

    Sources are told apart by their headers and belong together by cluster, which is the name of the folder that a
    `cluster_log.csv` lies in (or what the file's own name adds to that). Of several clusters, ids and pools read
    `cluster/id` and `cluster/vc`; of one they are verbatim. `duration` is the log's own column.
    """

    name = "helios"
    needs = HELIOS.needs

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is a cluster's log or its quotas."""
        header = header_of(head)
        return set(self.needs) <= set(header) or is_quotas(header)

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the logs.

        Parameters
        ----------
        sources : cluster_log.csv of each cluster, and cluster_gpu_number.csv of those whose quotas are known
        timezone : IANA zone of the times; None reads the wall clock as UTC, and a note says so
        strict : make rows that would be left out, or start and end that contradict, an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, two files are of one cluster, or quotas are given without their log.
        """
        clock = Clock(timezone)
        tables = [source for source in sources if _is_table(source)]
        logs = by_cluster([source for source in sources if source not in tables], _cluster)
        quotas = _matched(by_cluster(tables, _cluster), logs)
        trace = read_logs(logs, HELIOS, clock, strict, zone_note(timezone, ZONE, "wall-clock times of UTC+8"))
        if not quotas:
            return Reading(trace)
        return read_quotas(trace, quotas, len(logs), clock)


def _is_table(source: PathLike) -> bool:
    """Whether a source is a table of quotas."""
    return is_quotas(header_of(read_file(source, HEAD_BYTES).data))


def _cluster(path: PathLike) -> str:
    return cluster_named(path, (LOG_NAME, QUOTAS_NAME))


def _matched(quotas: dict[str, PathLike], logs: dict[str, PathLike]) -> dict[str, PathLike]:
    """Quotas by the cluster of the log that they belong to."""
    if not logs:
        raise ConfigError(f"helios needs a cluster's {LOG_NAME}.csv, got {', '.join(map(str, quotas.values()))} alone")
    # one of each belong together, whatever their folders are called
    if len(quotas) == len(logs) == 1:
        return dict(zip(logs, quotas.values(), strict=True))
    for cluster, path in quotas.items():
        if cluster not in logs:
            raise ConfigError(f"{path}: quotas of cluster {cluster}, but its {LOG_NAME}.csv is not given; name it too")
    return quotas
