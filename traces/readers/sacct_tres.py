"""GPUs, cores and memory in the texts by which Slurm writes trackable and generic resources (TRES, GRES)."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

NOTHING = ("", "(null)", "none", "n/a", "unknown")
UNITS_GB = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
"""Units of memory; a bare number is megabytes."""
SOCKETS = re.compile(r"\([^()]*\)")
"""What follows a GRES's count: sockets (S:0-1) or indices (IDX:0-3)."""
COUNT = re.compile(r"\d{1,15}")
SIZE = re.compile(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)[nc]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resources:
    """What a text says; None where it says nothing.

    Attributes
    ----------
    gpus : GPUs in all
    gpu_type : kinds of them, joined by + where there are several
    cores : in all
    mem_gb : memory, GB
    valid : whether all that it says of GPUs, cores and memory could be read
    """

    gpus: int | None = None
    gpu_type: str | None = None
    cores: float | None = None
    mem_gb: float | None = None
    valid: bool = True


def parse_tres(text: str) -> Resources:
    """Resources of an AllocTRES, ReqTRES or TRES text.

    GPUs are the generic entry, else the sum of the typed ones: Slurm lists the same GPUs under both.

    >>> parse_tres("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1")
    Resources(gpus=4, gpu_type='a100', cores=8.0, mem_gb=64.0, valid=True)
    >>> parse_tres("cpu=8,gres/gpu:a100=1,gres/gpu:v100=2").gpus
    3
    """
    entries = [entry.strip().partition("=") for entry in text.split(",") if entry.strip()]
    generic: int | None = None
    typed: dict[str, int] = {}
    cores = mem_gb = None
    for name, equals, value in entries:
        if name == "gres/gpu" or name.startswith("gres/gpu:"):
            if not equals or not COUNT.fullmatch(value):
                return Resources(valid=False)
            if name == "gres/gpu":
                generic = int(value)
            else:
                kind = name.removeprefix("gres/gpu:")
                typed[kind] = typed.get(kind, 0) + int(value)
        elif name == "cpu":
            cores = float(value) if COUNT.fullmatch(value) else None
        elif name == "mem":
            mem_gb = _gb(value)
    return _resources(generic, typed, cores, mem_gb)


def parse_gres(text: str) -> Resources:
    """Resources of a GRES text: AllocGRES, ReqGRES, sinfo's %G, a node's Gres.

    >>> parse_gres("gpu:a100:4(S:0-1),nvme:1,gpu:v100:2")
    Resources(gpus=6, gpu_type='a100+v100', cores=None, mem_gb=None, valid=True)
    >>> [parse_gres(text).gpus for text in ("gpu:4", "gpu", "(null)", "lustre:1")]
    [4, 1, None, None]
    """
    generic: int | None = None
    typed: dict[str, int] = {}
    for entry in SOCKETS.sub("", text).split(","):
        name, *rest = entry.strip().removeprefix("gres:").removeprefix("gres/").split(":")
        if name != "gpu":
            continue
        counted = not rest or rest[-1].isdigit()
        if len(rest) > 2 or not counted or (rest and not COUNT.fullmatch(rest[-1])):
            return Resources(valid=False)
        count = int(rest[-1]) if rest else 1
        if len(rest) == 2:
            typed[rest[0]] = typed.get(rest[0], 0) + count
        else:
            generic = (generic or 0) + count
    if generic is not None and typed:
        generic += sum(typed.values())
    return _resources(generic, typed, None, None)


def resource_columns(texts: pl.Series, parse: Callable[[str], Resources]) -> pl.DataFrame:
    """Resources of a column of texts: gpus, gpu_type, cores, mem_gb, valid; each different text is read once."""
    different = texts.drop_nulls().unique(maintain_order=True)
    read = [parse(text) if text.strip().lower() not in NOTHING else Resources() for text in different.to_list()]
    known = pl.DataFrame(
        {
            "text": different,
            "gpus": pl.Series([one.gpus for one in read], dtype=pl.Float64),
            "gpu_type": pl.Series([one.gpu_type for one in read], dtype=pl.String),
            "cores": pl.Series([one.cores for one in read], dtype=pl.Float64),
            "mem_gb": pl.Series([one.mem_gb for one in read], dtype=pl.Float64),
            "valid": pl.Series([one.valid for one in read], dtype=pl.Boolean),
        }
    )
    rows = pl.DataFrame({"text": texts}).join(known, on="text", how="left", maintain_order="left")
    return rows.drop("text").with_columns(pl.col("valid").fill_null(True))


def _resources(generic: int | None, typed: dict[str, int], cores: float | None, mem_gb: float | None) -> Resources:
    gpus = generic if generic is not None else sum(typed.values()) if typed else None
    kinds = sorted(kind for kind, count in typed.items() if count)
    return Resources(gpus, "+".join(kinds) or None, cores, mem_gb)


def _gb(text: str) -> float | None:
    found = SIZE.fullmatch(text)
    return float(found[1]) * UNITS_GB[found[2].upper() or "M"] if found else None
