"""Philly's list of machines: CSV, machineId, number of GPUs, single GPU mem ("m31,8, 24GB")."""

from collections.abc import Sequence

import polars as pl

from jobcast.traces.check import REMEDY
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import FileBytes

MACHINE, GPUS = "machineId", "number of GPUs"


def is_machine_list(header: Sequence[str]) -> bool:
    """Whether a header is that of a list of machines.

    >>> is_machine_list(["machineId", "number of GPUs", "single GPU mem"])
    True
    """
    return {MACHINE, GPUS} <= set(header)


def machines_note(file: FileBytes) -> str:
    """What the list tells: how many machines and GPUs the cluster had in all.

    Raises
    ------
    TraceError
        The file is malformed, or holds what is no number of GPUs.
    """
    frame, place = read_csv(file)
    gpus = frame[GPUS].str.strip_chars().cast(pl.Int64, strict=False)
    place.refuse(gpus.is_null() | (gpus < 0), frame[GPUS], "must be a whole number of GPUs", REMEDY)
    return f"{len(gpus):,} machines with {int(gpus.sum()):,} GPUs in all; quotas of virtual clusters are not told"
