"""`jobcast profiles show`: what a table of profiles holds."""

from pathlib import Path
from typing import Any

import polars as pl

from jobcast import __version__
from jobcast.domain.errors import TraceError
from jobcast.traces.profiles import read_profiles


def show_profiles(path: Path, model: str | None = None, gpu_type: str | None = None) -> dict[str, Any]:
    """Rows of a table, of one model and GPU type where they are named. Raises TraceError where none is left."""
    table = read_profiles(path)
    kept = table.frame
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
    lines = ["seconds an epoch, by number of GPUs", f"{'model':<20}{'batch size':>11}  {'GPU type':<12}"]
    lines[-1] += "".join(f"{one:>10}" for one in gpus)
    for (model, size, kind), its in by_line.items():
        cells = "".join(f"{its[one]:>10.4g}" if one in its else f"{'-':>10}" for one in gpus)
        lines.append(f"{model:<20}{size:>11}  {kind:<12}{cells}")
    return "\n".join(lines)
