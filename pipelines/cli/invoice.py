"""`jobcast invoice`: what pools and users owe each other for a finished run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.cli import options
from jobcast.pipelines.report.formatting import number
from jobcast.pipelines.report.layout import aligned

COLUMNS = {
    "jobs": "jobs",
    "gpus": "GPUs",
    "used_gpu_h": "used, GPU-h",
    "lent_gpu_h": "lent, GPU-h",
    "borrowed_gpu_h": "borrowed, GPU-h",
    "balance_eur": "balance, EUR",
    "saved_min": "saved, min",
    "lost_min": "lost, min",
    "energy_kwh": "kWh",
    "energy_eur": "energy, EUR",
}


@click.command(name="invoice")
@options.log_option
@click.option("--by", type=click.Choice(["pool", "user"]), default="pool", show_default=True, help="Rows of the table.")
@click.option("--price", type=options.Finite(min=0.0), metavar="EUR", help="Of a GPU-hour on loan.")
@options.log_pools_option
@options.json_option
def command(log_path: Path, by: str, price: float | None, pools_path: Path | None, json_to: str | None) -> None:
    """Account for a run: GPU-hours lent and borrowed, minutes saved and lost against the baseline, energy and its cost.

    A pool borrows what its jobs hold beyond its quota, from all pools with idle GPUs, in proportion to what is idle of
    each: what is lent is what is borrowed. With --price the borrowers pay the lenders; the balances add up to nothing.
    Energy is told where the run metered it; what nodes drew for no job stands in a row of its own.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --out log.csv
      jobcast invoice --out log.csv
      jobcast invoice --out log.csv --by user --json invoice.json
      jobcast invoice --out log.csv --price 0.80
    """
    from jobcast.pipelines.experiments.explain.run_table import read_run_table
    from jobcast.pipelines.experiments.invoice import invoice

    console = options.console_of()
    options.check_places(json_to, (log_path, pools_path))
    result = invoice(read_run_table(log_path, pools_path), price)
    console.note(*result["notes"])
    rows = [*result[f"{by}s"], {"pool": "all", "user": "", **result["total"], "balance_eur": None}]
    options.table_or_json(result, json_to, _table(rows, ("pool", "user") if by == "user" else ("pool",)), console)


def _table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    shown = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    lines = [[*(str(row[key]) for key in keys), *(number(row.get(name)) for name in shown)] for row in rows]
    return aligned([[*keys, *(COLUMNS[name] for name in shown)], *lines])
