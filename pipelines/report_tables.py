"""Tables of a backtest's report: gains, what versions are worth, pool by pool, models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobcast.pipelines.gains import CONFIDENCE
from jobcast.pipelines.page import Table
from jobcast.pipelines.summaries import Summary
from jobcast.pipelines.times import iso
from jobcast.pipelines.wording import UNKNOWN, between, number, percent, share, signed, unit_for
from jobcast.simulator.metrics import SLOWED_TOLERANCE_S

Jobs = Mapping[str, Mapping[str, Any]]


def main_table(summaries: Sequence[Summary], baseline: str) -> Table | None:
    """Every configuration against the baseline. SIA, Table 17."""
    if not summaries:
        return None
    unit, unit_s = unit_for(one.get("mean_jct_s") for one in summaries)
    head = (
        "policy", "forecasts", "speedup (×, geometric mean)", "speedup, 5th to 95th percentile (×)", "jobs slowed",
        "total slowdown (min)", "worst slowdown (min)", f"mean JCT ({unit})", "utilisation", "runs",
    )  # fmt: skip
    rows = [
        (
            one.policy + (" (baseline)" if one.label == baseline else ""),
            one.forecasts or UNKNOWN,
            number(one.get("speedup_gmean")),
            between(one.get("speedup_p5"), one.get("speedup_p95")),
            percent(one.get("slowed_pct")),
            number(one.get("slowdown_total_min")),
            number(one.get("slowdown_max_min")),
            number(_scaled(one.get("mean_jct_s"), unit_s)),
            share(one.get("utilization")),
            number(one.runs),
        )
        for one in summaries
    ]
    note = (
        f"Each job is compared with itself under {baseline}. Runs = windows × seeds of forecasts that draw; "
        "figures are means over runs, of speedups geometric; the worst slowdown is the worst of all runs."
    )
    return Table("Policies and forecasts", head, rows, words=2, note=note)


def gains_table(gains: Sequence[Mapping[str, Any]]) -> Table | None:
    """Paired comparisons with their intervals."""
    if not gains:
        return None
    unit, unit_s = unit_for(gain.get("mean_jct_change_s") for gain in gains)
    percentage = f"{100 * gains[0].get('confidence', CONFIDENCE):g}"
    head = (
        "configuration", "compared with", "times as fast (×)", f"{percentage} % interval",
        "change in jobs slowed (percentage points)", f"{percentage} % interval", f"change in mean JCT ({unit})",
        f"{percentage} % interval", "jobs", "days",
    )  # fmt: skip

    def change(gain: Mapping[str, Any], figure: str, scale: float) -> tuple[str, str]:
        value, low, high = (_scaled(gain.get(f"{figure}{end}"), scale) for end in ("", "_low", "_high"))
        return signed(value), between(low, high, signed)

    rows = [
        (
            str(gain["a"]),
            str(gain["b"]),
            number(gain.get("speedup")),
            between(gain.get("speedup_low"), gain.get("speedup_high")),
            *change(gain, "slowed_change_pct", 1.0),
            *change(gain, "mean_jct_change_s", unit_s),
            number(gain.get("jobs")),
            number(gain.get("days")),
        )
        for gain in gains
    ]
    return Table("Paired gains", head, rows, words=2)


def pools_table(pools: Sequence[Mapping[str, Any]], jobs: Jobs, baseline: str) -> Table | None:
    """Quotas and, as far as jobs were replayed, how the pools fare without sharing."""
    if not pools:
        return None
    base = jobs.get(baseline)
    of_pool = np.asarray(base["pool"]).astype(str) if base is not None else np.array([])
    waits = np.asarray(base["wait_s"], dtype=float) if base is not None else np.array([])
    rows = []
    for pool in pools:
        mine = of_pool == str(pool["name"])
        given = pool.get("jobs", int(mine.sum()) if base is not None else None)
        wait_h = float(waits[mine].mean()) / 3600 if mine.any() else None
        rows.append((str(pool["name"]), number(pool.get("gpus", pool.get("quota"))), number(given), number(wait_h)))
    return Table("Pools", ("pool", "quota (GPUs)", "jobs replayed", f"mean wait under {baseline} (h)"), rows)


def pool_tables(jobs: Jobs, baseline: str) -> list[Table]:
    """Speedups and jobs slowed, pool by pool. SIA, Table 12."""
    base = jobs.get(baseline)
    labels = [label for label in jobs if label != baseline]
    if base is None or not labels:
        return []
    base_jct = np.asarray(base["jct_s"], dtype=float)
    of_pool = np.asarray(base["pool"]).astype(str)
    members = {name: np.flatnonzero(of_pool == name) for name in sorted(set(of_pool.tolist()))}
    members["all"] = np.arange(len(of_pool))
    jcts = {label: jct_of(jobs, label, baseline) for label in labels}
    speedups = [
        (name, *(number(float(np.exp(np.log(base_jct[own] / jcts[label][own]).mean()))) for label in labels))
        for name, own in members.items()
    ]
    slowed = [
        (name, *(share(float((jcts[label][own] > base_jct[own] + SLOWED_TOLERANCE_S).mean())) for label in labels))
        for name, own in members.items()
    ]
    return [
        Table(f"Speedup over {baseline} by pool (×, geometric mean)", ("pool", *labels), speedups),
        Table(f"Jobs slowed against {baseline} by pool", ("pool", *labels), slowed),
    ]


def jct_of(jobs: Jobs, label: str, baseline: str) -> Any:
    """Completion times of a configuration, shape (n_jobs,), in the order of the baseline's.

    Raises
    ------
    ValueError
        It holds another number of jobs than the baseline.
    """
    jct = np.asarray(jobs[label]["jct_s"], dtype=float)
    expected = len(jobs[baseline]["jct_s"])
    if len(jct) != expected:
        raise ValueError(f"{label}: {len(jct)} jobs but {expected} under {baseline}; give the same jobs in one order")
    return jct


def models_table(models: Sequence[Mapping[str, Any]]) -> Table | None:
    """Versions of the registry that answered."""
    if not models:
        return None
    rows = [
        (
            str(model["name"]),
            ", ".join(model.get("aliases") or ()) or UNKNOWN,
            str(model.get("algorithm") or UNKNOWN),
            instant(model.get("trained_until")),
            str(model["version"]),
        )
        for model in models
    ]
    return Table("Registered versions", ("model", "aliases", "algorithm", "trained until", "version"), rows, words=4)


def instant(value: str | float | None) -> str:
    """An instant given as text or as seconds from the epoch.

    >>> instant(86400.0), instant("2017-11-06")
    ('1970-01-02T00:00:00Z', '2017-11-06')
    """
    return value if isinstance(value, str) else iso(value) or UNKNOWN


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
