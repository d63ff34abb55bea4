"""Acme: logs of two clusters of Shanghai AI Lab, Seren and Kalos, March to August 2023, one CSV row a job.

Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI 2024; InternLM/AcmeTrace.
Times are ISO-8601 with an offset; durations are seconds.
"""

from collections.abc import Sequence

from jobcast.traces.column_types import Clock, lean_counts, lean_numbers
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike
from jobcast.traces.readers.cluster_log import LogFormat, by_cluster, cluster_named, read_logs
from jobcast.traces.readers.reading import Reading

LOG_NAME = "trace"
ACME = LogFormat(
    needs=("job_id", "gpu_num", "type", "state", "submit_time", "start_time", "end_time", "duration"),
    renamed={"gpu_num": "gpus", "cpu_num": "cores"},
    further={"node_num": lean_counts, "mem_per_pod_GB": lean_numbers, "shared_mem_per_pod": lean_numbers},
    derived=frozenset({"queue", "gpu_time"}),
    pool_from_cluster=True,
)


class AcmeReader:
    """Reads the log of one cluster or of both.

    The pool is the cluster, which the file's name tells (`trace_seren.csv` -> seren): no column does. `type`, the kind
    of workload (Pretrain, Evaluation, ...), stays a column of its own: it is too broad for `tag`, whose jobs belong
    together as one experiment. With both clusters ids read `seren/id`, for they start anew in each.
    """

    name = "acme"
    needs = ACME.needs

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` has the log's columns."""
        return set(self.needs) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the logs.

        Parameters
        ----------
        sources : trace_seren.csv, trace_kalos.csv or both
        timezone : IANA zone of times without an offset, should a file have such
        strict : make rows that would be left out, or start and end that contradict, an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or two files are of one cluster.
        """
        logs = by_cluster(sources, lambda path: cluster_named(path, (LOG_NAME,)))
        return Reading(read_logs(logs, ACME, Clock(timezone), strict))
