"""Cluster files by their endings: YAML, or openb's list of nodes as CSV."""

from pathlib import Path

from jobcast.traces.gpu_nodes import GpuNodes, read_gpu_nodes
from jobcast.traces.openb_nodes import read_openb_nodes


def read_nodes(path: Path) -> GpuNodes:
    """Nodes of a cluster file; what ends in .csv is a list of openb's. Raises PoolsError."""
    return read_openb_nodes(path) if path.suffix.lower() == ".csv" else read_gpu_nodes(path)
