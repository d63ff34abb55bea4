"""openb's list of nodes as a cluster: 1,213 nodes with GPUs of seven types (Weng et al., USENIX ATC 2023)."""

import io
from pathlib import Path

import polars as pl

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import Cluster, NodeGroup
from jobcast.traces.files import read_file

NEEDS = ("sn", "gpu", "model")


def read_openb_nodes(path: Path) -> Cluster:
    """Nodes of `openb_node_list_gpu_node.csv`; those without GPUs are left out and counted.

    Raises PoolsError for a file that is no such list.
    """
    frame = _frame(path)
    held = frame.filter(pl.col("gpu") > 0)
    bare = frame.height - held.height
    if held.is_empty():
        raise PoolsError(f"{path}: no node has a GPU; give openb_node_list_gpu_node.csv")
    groups = tuple(
        NodeGroup(str(model), int(gpus), (), tuple(rows["sn"].to_list()))
        for (model, gpus), rows in held.group_by("model", "gpu", maintain_order=True)
    )
    return Cluster(groups, notes=(f"{bare} without GPUs left out",) if bare else ())


def _frame(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_csv(io.BytesIO(read_file(path).data), infer_schema=False)
    except (TraceError, pl.exceptions.PolarsError) as error:
        raise PoolsError(f"{path}: cannot be read as CSV ({str(error).splitlines()[0]})") from error
    missing = [name for name in NEEDS if name not in frame.columns]
    if missing:
        raise PoolsError(f"{path}: column {missing[0]} missing; openb's list of nodes has sn, gpu and model")
    gpus = frame["gpu"].cast(pl.Int64, strict=False)
    wrong = (gpus.is_null() | (gpus < 0).fill_null(True)).arg_true()
    if len(wrong):
        raise PoolsError(
            f"{path}, row {wrong[0] + 1}, gpu: must be a whole number >= 0, got {frame['gpu'][int(wrong[0])]!r}; "
            "correct it"
        )
    if frame["sn"].null_count() or frame["sn"].n_unique() < frame.height:
        raise PoolsError(f"{path}, column sn: each node needs a name of its own; correct it")
    return frame.with_columns(gpus.alias("gpu"), frame["model"].fill_null("").alias("model"))
