"""Helios: logs of four clusters of SenseTime, April to September 2020, one CSV row a job.

Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021;
S-Lab-System-Group/HeliosData. Times are wall-clock times of UTC+8 without an offset; durations are seconds.
"""

from collections.abc import Sequence

from jobcast.domain.errors import ConfigError
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.narrow import lean_counts
from jobcast.traces.readers.cluster_log import LogFormat, by_cluster, cluster_named, read_logs
from jobcast.traces.readers.helios_quotas import is_quotas, read_quotas
from jobcast.traces.readers.reading import Reading, zone_note
from jobcast.traces.times import Clock

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
    if len(quotas) == len(logs) == 1:
        return dict(zip(logs, quotas.values(), strict=True))
    for cluster, path in quotas.items():
        if cluster not in logs:
            raise ConfigError(f"{path}: quotas of cluster {cluster}, but its {LOG_NAME}.csv is not given; name it too")
    return quotas
