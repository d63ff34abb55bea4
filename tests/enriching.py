"""A plain trace with a user's facts, made by the command once a module."""

from pathlib import Path
from typing import Any


def enriched_once(shell: Any, folder: Path, trace: str, nodes: str, *words: str) -> tuple[object, ...]:
    """Options of the trace in a folder, enriched with the facts that `words` name, and of its nodes."""
    jobs, cluster = folder / "enriched" / "jobs.parquet", folder / "nodes.yaml"
    if not jobs.exists():
        (folder / "plain.csv").write_text(trace)
        cluster.write_text(nodes)
        shell.works("trace", "enrich", folder / "plain.csv", *words, "--out", folder / "enriched")
    return ("--trace", jobs, "--cluster", cluster)
