"""A plain trace with a user's facts, made by the command."""

from collections.abc import Iterable
from pathlib import Path

from tests.pipelines.conftest import typed

HEADER = "job_id,pool,user,submit_time,duration,gpus"


def enriched_trace(folder: Path, rows: Iterable[str], nodes: str, *words: str) -> tuple[object, ...]:
    """Options of the trace in a folder, enriched with the facts that `words` name, and of its nodes."""
    (folder / "plain.csv").write_text("".join(f"{row}\n" for row in (HEADER, *rows)))
    (folder / "nodes.yaml").write_text(nodes)
    typed("trace", "enrich", folder / "plain.csv", *words, "--out", folder / "enriched")
    return ("--trace", folder / "enriched" / "jobs.parquet", "--cluster", folder / "nodes.yaml")
