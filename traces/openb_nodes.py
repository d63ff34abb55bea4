"""openb's list of nodes as a cluster: 1,213 nodes with GPUs of seven types (Weng et al., USENIX ATC 2023)."""

import io
from pathlib import Path

import polars as pl

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.traces.files import read_file
from jobcast.traces.gpu_nodes import GpuNodes, NodeGroup
from jobcast.traces.gpu_types import HOST_W, known_type, linear_power_w

NEEDS = ("sn", "gpu", "model")


def read_openb_nodes(path: Path) -> GpuNodes:
    """Nodes of `openb_node_list_gpu_node.csv`; those without GPUs are left out and counted.

    Watts are those assumed of each type (`gpu_types`). Raises PoolsError for a file that is no such list.
    """
    frame = _frame(path)
    bare = int((frame["gpu"] == 0).sum())
    held = frame.filter(pl.col("gpu") > 0)
    if held.is_empty():
        raise PoolsError(f"{path}: no node has a GPU; give openb_node_list_gpu_node.csv")
    groups = tuple(
        _group(str(model), int(gpus), rows["sn"].to_list(), path)
        for (model, gpus), rows in held.group_by("model", "gpu", maintain_order=True)
    )
    left_out = f", {bare} without GPUs left out" if bare else ""
    notes = (f"{path}: {held.height:,} nodes{left_out}; their watts are assumed by type",)
    return GpuNodes(groups, notes=notes)


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


def _group(model: str, gpus: int, names: list[str], path: Path) -> NodeGroup:
    known = known_type(model)
    if known is None:
        raise PoolsError(f"{path}: nothing is known of the power of GPUs {model!r}; give a YAML cluster file instead")
    return NodeGroup(model, gpus, linear_power_w(gpus, HOST_W, known.power_w), tuple(names))
