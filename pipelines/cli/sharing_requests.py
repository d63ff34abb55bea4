"""What of a trace can be shared, written with its audit: the work of `jobcast trace anonymise` and `twin`."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jobcast import __version__
from jobcast.domain.errors import PoolsError
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
from jobcast.traces.twin import twin_of
from jobcast.traces.words import renamed

GUESS = 0.55
"""An area under the ROC curve up to which an attacker is taken to do little better than guess."""
Told = tuple[dict[str, Any], str]


def export(
    path: Path,
    *,
    out: Path,
    pools: Path | None,
    pools_out: Path | None,
    key: Path | None,
    seed: int | None,
    console: Console,
    **asked: Any,
) -> Told:
    """Write an export; its audit as figures and as text. Raises TraceError, PoolsError and ConfigError."""
    trace = read_trace(path)
    made = anonymised(trace, _quotas(trace, pools, pools_out), seed=seed, **asked)
    _write(made.trace, made.pools, out, pools_out)
    if key:
        with replacing(key) as draft:
            os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
            draft.write_text(to_json(dict(made.key)))
        console.note(f"{key}: the secret, undoes the export; keep it to yourself")
    words = made.key["words"]["pool"]
    result = _audit(
        trace, made.trace, words, lambda half, number: anonymised(half, seed=number, **asked).trace, 0, console
    )
    result = {"done": dict(made.done), **result, "linkage": linkage(trace, made.trace)}
    return result, _export_text(result)


def twin(
    path: Path, *, out: Path, pools: Path | None, pools_out: Path | None, weeks: int | None, seed: int, console: Console
) -> Told:
    """Write a twin; its audit as figures and as text. Raises TraceError, PoolsError and ConfigError."""
    trace = read_trace(path)
    drawn = twin_of(trace, weeks=weeks, seed=seed)
    made, table, words = renamed(drawn, _quotas(trace, pools, pools_out), np.random.default_rng(seed))
    _write(made, table, out, pools_out)
    result = _audit(trace, made, words["pool"], lambda half, number: twin_of(half, seed=number), seed, console)
    left = [name for name in trace.jobs.columns if name not in made.jobs.columns]
    return {"seed": seed, "left_out_columns": left, **result}, _twin_text(result, left)


def _quotas(trace: Trace, pools: Path | None, pools_out: Path | None) -> PoolsTable | None:
    if pools:
        return read_pools(pools)
    return PoolsTable.of(derive_pools(trace.on_gpus)) if pools_out else None


def _write(made: Trace, table: PoolsTable | None, out: Path, pools_out: Path | None) -> None:
    write_trace(made, out)
    if pools_out and table:
        write_pools(table, pools_out)


def _audit(
    trace: Trace, made: Trace, words: Mapping[str, str], release: Release, seed: int, console: Console
) -> dict[str, Any]:
    console.note("audit: the attack makes what is shared of halves of the trace")
    attacks = {by: membership(trace, release, by, seed) for by in ("weeks", "users")}
    return {
        "jobcast": __version__,
        "trace": asdict(trace.source),
        **likeness(trace, made, words),
        "membership": {by: attack and asdict(attack) for by, attack in attacks.items()},
    }


def _lines(result: Mapping[str, Any]) -> list[str]:
    """What audits of both kinds tell."""
    jobs, ks = result["jobs"], result["ks"]
    lines = [
        f"jobs                    {jobs['release']:,} for {jobs['log']:,}, GPU time {result['gpu_time']:.3f} times the trace's",
        f"load by pool and week   off by {result['load_error_mean']:.1%} of the pool's mean, at most {result['load_error_max']:.1%}",
        f"distributions (KS)      widths {ks['widths']:.3f}, run times {ks['run_times']:.3f}, gaps {ks['gaps']:.3f}",
        f"hours of the week       {result['week_profile_tv']:.1%} of the jobs in others",
    ]
    lines += [
        f"burstiness {scale:<13}{pair['release']:.1f} for {pair['log']:.1f} (variance over mean of arrivals)"
        for scale, pair in result["dispersion"].items()
    ]
    for by, attack in result["membership"].items():
        if attack is None:
            lines.append(f"membership, by {by:<9}not measured: fewer than two {by} to part")
            continue
        verdict = "hardly better than guessing" if attack["auc"] <= GUESS else "better than guessing"
        interval = f"{attack['auc']:.3f} ({attack['low']:.3f} to {attack['high']:.3f})"
        lines.append(f"membership, by {by:<9}AUC {interval} over {attack['units']} {by}: {verdict}")
    return lines


def _twin_text(result: Mapping[str, Any], left: list[str]) -> str:
    return "\n".join([*_lines(result), f"left out                {', '.join(left) or 'nothing'}"])


def _export_text(result: Mapping[str, Any]) -> str:
    done, link = result["done"], result["linkage"]
    names = ", ".join(f"{count} of {name}" for name, count in done["names"].items())
    reached = (
        "" if done["k_reached"] else f"; there are fewer than {done['k']} users, so the common one is not anonymous"
    )
    return "\n".join(
        [
            f"names replaced          {names}",
            f"columns dropped         {', '.join(done['dropped_columns']) or 'none'}",
            f"times                   shifted by unknown {done['shift']}, jittered by up to {done['jitter_s']:g} s",
            f"users                   {done['users_merged']} of {done['users']} became {done['common_users']} common ones{reached}",
            *_lines(result),
            f"linkage                 a job's hour of the week, width and run time fit {link['median_set']:g} rows in the median; "
            f"{link['alone']:.1%} of the jobs fit one, {link['missed']:.1%} none",
        ]
    )
