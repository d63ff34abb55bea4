"""What of a trace can be shared, written with its audit: the work of `jobcast trace anonymise` and `twin`."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jobcast import __version__
from jobcast.domain.clock import HOUR_S
from jobcast.domain.hardware import PoolsTable
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import to_json
from jobcast.traces.anonymise import anonymised
from jobcast.traces.files import replacing
from jobcast.traces.likeness import Release, likeness, linkage, membership
from jobcast.traces.pools import derive_pools, read_pools, write_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace
from jobcast.traces.twin import rigid, twin_of
from jobcast.traces.words import renamed, secret_seed

GUESS = 0.55
"""An area under the ROC curve up to which an attacker is taken to do little better than guess."""
Told = tuple[dict[str, Any], str]


def export(path: Path, asked: Mapping[str, Any], console: Console) -> Told:
    """Write an export; its audit as figures and as text. Raises TraceError, PoolsError and ConfigError."""
    trace, key = read_trace(path), asked["key"]
    how: dict[str, Any] = {name: asked[name] for name in ("k", "jitter_s", "shift")}
    made = anonymised(trace, _quotas(trace, asked, console), seed=asked["seed"], **how)
    _write(made.trace, made.pools, asked)
    if key:
        with replacing(key) as draft:
            os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
            draft.write_text(to_json(dict(made.key)))
        console.note(f"{key}: the secret, undoes the export; keep it to yourself")
    words = made.key["words"]["pool"]
    result = _audit(
        trace, made.trace, words, lambda half, number: anonymised(half, seed=number, **how).trace, 0, console
    )
    result = {"done": dict(made.done), **result, "linkage": linkage(trace, made.trace)}
    return result, _export_text(result)


def twin(path: Path, asked: Mapping[str, Any], console: Console) -> Told:
    """Write a twin; its audit as figures and as text. Raises TraceError, PoolsError and ConfigError."""
    read, weeks = read_trace(path), asked["weeks"]
    seed: int = secret_seed() if asked["seed"] is None else asked["seed"]
    trace = rigid(read)
    console.note(*trace.notes[len(read.notes) :])
    quotas = _quotas(trace, asked, console)
    drawn = twin_of(trace, weeks=weeks, seed=seed)
    made, table, words = renamed(drawn, quotas, np.random.default_rng(seed))
    _write(made, table, asked)
    result = _audit(trace, made, words["pool"], lambda half, number: twin_of(half, seed=number), seed, console, weeks)
    left = [name for name in read.jobs.columns if name not in made.jobs.columns]
    text = _text([*_rows(result), ("columns left out", ", ".join(left) or "none")])
    return {"seed": seed, "left_out_columns": left, **result}, text


def _quotas(trace: Trace, asked: Mapping[str, Any], console: Console) -> PoolsTable | None:
    if pools := asked["pools"]:
        if not asked["pools_out"]:
            console.note(f"{pools}: its quotas are written nowhere; add --pools-out FILE")
        return read_pools(pools)
    return PoolsTable.of(derive_pools(trace.on_gpus)) if asked["pools_out"] else None


def _write(made: Trace, table: PoolsTable | None, asked: Mapping[str, Any]) -> None:
    write_trace(made, asked["out"])
    if asked["pools_out"] and table:
        write_pools(table, asked["pools_out"])


def _audit(
    trace: Trace,
    made: Trace,
    words: Mapping[str, str],
    release: Release,
    seed: int,
    console: Console,
    weeks: int | None = None,
) -> dict[str, Any]:
    console.note("audit: the attack makes what is shared of halves of the trace")
    attacks = {by: membership(trace, release, by, seed) for by in ("weeks", "users")}
    return {
        "jobcast": __version__,
        "trace": asdict(trace.source),
        **likeness(trace, made, words, weeks),
        "membership": {by: attack and asdict(attack) for by, attack in attacks.items()},
    }


Rows = list[tuple[str, str]]


def _rows(result: Mapping[str, Any]) -> Rows:
    """What audits of both kinds tell."""
    jobs, ks = result["jobs"], result["ks"]
    mean, worst = result["load_error_mean"], result["load_error_max"]
    rows = [
        ("jobs", f"{jobs['release']:,} for {jobs['log']:,}, GPU time {result['gpu_time']:.3f} times the trace's"),
        ("load by pool and week", f"off by {mean:.1%} of the pool's mean, at most {worst:.1%}"),
        ("distributions (KS)", ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in ks.items())),
        ("hours of the week", f"{result['week_profile_tv']:.1%} of the jobs in others"),
    ]
    for scale, pair in result["dispersion"].items():
        told = f"{pair['release']:.1f} for {pair['log']:.1f}, variance over mean of arrivals"
        rows.append((f"burstiness, {scale}", told))
    for by, attack in result["membership"].items():
        told = f"not measured: fewer than two {by} to part"
        if attack:
            interval = f"AUC {attack['auc']:.3f} ({attack['low']:.3f} to {attack['high']:.3f})"
            verdict = "hardly better than a guess" if attack["auc"] <= GUESS else "better than a guess"
            told = f"{interval} over {attack['units']} {by}, {verdict}"
        rows.append((f"membership, by {by}", told))
    return rows


def _text(rows: Rows) -> str:
    return "\n".join(f"{label:<24}{told}" for label, told in rows)


def _export_text(result: Mapping[str, Any]) -> str:
    done, link = result["done"], result["linkage"]
    users = f"{done['users_merged']} of {done['users']} became {done['common_users']} common ones"
    if not done["k_reached"]:
        users += f"; they are fewer than {done['k']}, so that the common one is not anonymous"
    by_wait = "the trace tells of nobody who waited"
    if link["alone_by_wait"] is not None:
        by_wait = f"{link['alone_by_wait']:.1%} of those that waited are alone with how long, in seconds"
    fits = f"hour of the week, width and run time of a job fit {link['median_set']:g} rows in the median"
    rows = [
        ("names replaced", ", ".join(f"{count} of {name}" for name, count in done["names"].items())),
        ("columns dropped", ", ".join(done["dropped_columns"]) or "none"),
        ("times", f"shifted by unknown {done['shift']}, jittered by up to {done['jitter_s']:g} s"),
        ("users", users),
        *_rows(result),
        ("linkage", f"{fits}; {link['alone']:.1%} of the jobs fit one row, {link['missed']:.1%} none"),
        ("linkage, by wait", by_wait),
    ]
    if any(attack and attack["auc"] > GUESS for attack in result["membership"].values()):
        rows.append(("what to do", f"--jitter {2 * done['jitter_s'] or HOUR_S:g} gives away less; so may a twin"))
    return _text(rows)
