"""Who owes whom for a finished run: GPU-hours lent and borrowed, minutes saved and lost, energy, by pool and user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.pipelines.report.job_table import MICROSECOND_DIGITS
from jobcast.simulator import metrics

HOUR_S, MINUTE_S = 3_600.0, 60.0
NOBODY = "(nobody)"
"""Who used what is metered and belongs to no job: nodes that idle draw power too."""
NO_BASELINE = "minutes saved and lost are not known: the run has no baseline; simulate again with --baseline fcfs"
NO_QUOTAS = "nothing is known of lending: the run gives GPUs by no quotas of pools"
ROUNDING = 10.0**-MICROSECOND_DIGITS
ENERGY = ("energy_kwh", "energy_eur")


@dataclass(frozen=True, slots=True, eq=False)
class Loans:
    """What pools held beyond their quotas, and whose idle GPUs those were.

    Attributes
    ----------
    gpu_h : (n_pools, n_pools) GPU-hours that the row's pool lent to the column's
    by_job_h : (n_jobs,) GPU-hours on loan
    """

    gpu_h: Floats
    by_job_h: Floats


def loans_of(table: RunTable) -> Loans:
    """Loans of a run by pools' quotas.

    At each instant a pool borrows what its jobs hold beyond its quota. It comes from all pools with idle quota, in
    proportion to how much of theirs is idle, so that what is lent and what is borrowed are the same GPU-hours. Within
    a pool its jobs that run on others' GPUs carry the loan, in proportion to their GPUs; where those hold less than
    the loan (a run that marks none), the pool's other jobs carry the rest.
    """
    if table.quotas is None:
        raise ConfigError(f"{table.path}: {NO_QUOTAS}")
    held, quotas = table.held, table.quotas.astype(np.float64)[:, None]
    instants = np.unique(np.concatenate([held.from_s, held.until_s]))
    hours = np.diff(instants, append=instants[-1:]) / HOUR_S
    begin, end = np.searchsorted(instants, held.from_s), np.searchsorted(instants, held.until_s)
    guest = ~table.dedicated[held.job]
    pool = table.pool[held.job]
    shape = (len(table.pools), len(instants))
    guests, hosts = (_level(shape, pool[of], begin[of], end[of], held.gpus[of]) for of in (guest, ~guest))
    over, idle = np.maximum(guests + hosts - quotas, 0.0), np.maximum(quotas - guests - hosts, 0.0)
    # Rates are per GPU-hour: of each GPU that a job holds, this part is borrowed.
    by_guests = np.minimum(over, guests)
    rates = [_ratio(by_guests, guests), _ratio(over - by_guests, hosts)]
    until_h = [np.concatenate([np.zeros((shape[0], 1)), np.cumsum(rate * hours, axis=1)], axis=1) for rate in rates]
    of_guest, of_host = (hours[pool, end] - hours[pool, begin] for hours in until_h)
    on_loan = np.where(guest, of_guest, of_host)
    by_job: Floats = np.bincount(held.job, held.gpus * on_loan, len(table)).astype(np.float64)
    # Lenders by their part of all idle GPUs; one product of matrices sums over instants.
    return Loans(gpu_h=_ratio(idle, idle.sum(axis=0)) @ (over * hours).T, by_job_h=by_job)


def _level(shape: tuple[int, int], pool: Ints, begin: Ints, end: Ints, gpus: Floats) -> Floats:
    """GPUs held from each instant on, (n_pools, n_instants)."""
    change: Floats = np.zeros(shape)
    np.add.at(change, (pool, begin), gpus)
    np.subtract.at(change, (pool, end), gpus)
    return np.cumsum(change, axis=1)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def job_accounts(table: RunTable, loans: Loans | None) -> pl.DataFrame:
    """A row a job: pool, user, GPU-hours used and borrowed, minutes saved and lost, energy; null where not known."""
    held, rows = table.held, table.rows
    used = np.bincount(held.job, weights=held.gpus * (held.until_s - held.from_s) / HOUR_S, minlength=len(table))
    users = rows["user"] if "user" in rows.columns else pl.Series([None] * len(table), dtype=pl.String)
    columns: dict[str, Any] = {
        "pool": rows["pool"],
        "user": users.fill_null(""),
        "used_gpu_h": used,
        "borrowed_gpu_h": None if loans is None else loans.by_job_h,
        **_minutes(table),
        **{name: rows[name].cast(pl.Float64) if name in rows.columns else None for name in ENERGY},
    }
    numbers = {name: pl.Float64 for name in columns if name not in ("pool", "user")}
    return pl.DataFrame(columns).with_columns(pl.col(name).cast(kind) for name, kind in numbers.items())


def _minutes(table: RunTable) -> dict[str, Floats | None]:
    """Minutes that jobs ended earlier, and later, than under the baseline; a job that never ran counts for neither."""
    base_s = table.seconds("baseline_end_time")
    if base_s is None:
        return {"saved_min": None, "lost_min": None}
    ran = np.isfinite(base_s) & np.isfinite(table.end_s)
    ours, theirs = (np.where(ran, end_s, table.submit_s) - table.submit_s for end_s in (table.end_s, base_s))
    # What `simulate` calls slowed: rounding is neither gain nor loss.
    differs = metrics.is_slowed(ours, theirs) | metrics.is_slowed(theirs, ours)
    gain = np.where(differs, theirs - ours, 0.0) / MINUTE_S
    return {"saved_min": np.maximum(gain, 0.0), "lost_min": np.maximum(-gain, 0.0)}


def invoice(table: RunTable, eur_per_gpu_h: float | None = None) -> dict[str, Any]:
    """The accounts of a run.

    Parameters
    ----------
    table : a finished run
    eur_per_gpu_h : what a GPU-hour on loan costs, from whom borrows to whom lends

    Returns
    -------
    dict
        `pools`, `users` : a row each, with `jobs` and the columns of `job_accounts` summed; pools with `gpus`,
        `lent_gpu_h` and, where there is a price, `balance_eur`. `loans`: `{lender, borrower, gpu_h}`. `total`: sums.
        `notes`: what is not known.
    """
    if table.quotas is None and eur_per_gpu_h is not None:
        raise ConfigError(f"--price: {NO_QUOTAS}; leave it out")
    lent = None if table.quotas is None else loans_of(table)
    jobs = job_accounts(table, lent)
    users, pools = _summed(jobs, ["pool", "user"]), _summed(jobs, ["pool"])
    if lent is not None:
        pools = _with_loans(table, lent, pools, eur_per_gpu_h)
    if idle := _unclaimed(table, jobs):
        pools.append({"pool": NOBODY, "jobs": 0, **idle})
        users.append({"pool": NOBODY, "user": "", "jobs": 0, **idle})
    notes = [NO_BASELINE] if jobs["saved_min"].null_count() else []
    notes += [NO_QUOTAS] if lent is None else []
    return {
        "pools": pools,
        "users": users,
        "loans": [] if lent is None else _loan_rows(table, lent),
        "total": _total(pools),
        "notes": [*table.notes, *notes],
    }


def _with_loans(
    table: RunTable, loans: Loans, pools: Sequence[Mapping[str, Any]], eur_per_gpu_h: float | None
) -> list[dict[str, Any]]:
    """Rows of pools with their quotas and what they lent; pools without jobs, which lend all the same, among them."""
    assert table.quotas is not None
    empty = {name: 0.0 for name in pools[0] if name not in ("pool", *ENERGY)} | {"jobs": 0}
    by_name, rows = {row["pool"]: row for row in pools}, []
    for name, gpus, lent_h in zip(table.pools, table.quotas.tolist(), loans.gpu_h.sum(axis=1).tolist(), strict=True):
        row = {**by_name.get(name, {"pool": name, **empty}), "gpus": gpus, "lent_gpu_h": lent_h}
        if eur_per_gpu_h is not None:
            row["balance_eur"] = eur_per_gpu_h * (lent_h - row["borrowed_gpu_h"])
        rows.append(row)
    return rows


def _loan_rows(table: RunTable, loans: Loans) -> list[dict[str, Any]]:
    return [
        {
            "lender": table.pools[lender],
            "borrower": table.pools[borrower],
            "gpu_h": float(loans.gpu_h[lender, borrower]),
        }
        for lender, borrower in np.argwhere(loans.gpu_h > 0)
    ]


def _summed(jobs: pl.DataFrame, keys: Sequence[str]) -> list[dict[str, Any]]:
    figures = [name for name in jobs.columns if name not in ("pool", "user")]
    # The sum of nulls alone is not known, rather than nothing.
    sums = [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name) for name in figures]
    return jobs.group_by(keys).agg(pl.len().alias("jobs"), *sums).sort(keys).to_dicts()


def _unclaimed(table: RunTable, jobs: pl.DataFrame) -> dict[str, Any]:
    """Energy that no job is charged with: of all nodes from the first submission to the last end, less the jobs'."""
    whole = {name: table.figures.get(name) for name in ENERGY if jobs[name].null_count() < len(jobs)}
    left = {name: float(value) - float(jobs[name].sum()) for name, value in whole.items() if value is not None}
    # A CSV holds microwatt-hours.
    return left if any(abs(value) > ROUNDING * len(jobs) for value in left.values()) else {}


def _total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for row in rows for name in row if name != "pool")
    known = {name: [row[name] for row in rows if row.get(name) is not None] for name in names}
    return {name: _sum(values) if values else None for name, values in known.items()}


def _sum(values: Sequence[float]) -> float:
    # Jobs and GPUs are whole numbers and stay so.
    return sum(values) if isinstance(values[0], int) else fsum(values)
