"""Does `jobcast drift` tell when a version no longer fits, and keep still when it does?

Each seed is a campus of six weeks. A version of each predictor learns from the first four; the last two are
looked at as they are and after shifts of them alone. A shift counts as harm where a figure of the version on the
shifted weeks is worse than on the same weeks unshifted by more than its second limit, and as harmless where by less
than a sixth of it; what lies between counts as neither. Told means that any week is not fine. Shifts are tried from a
kind on that goes with the seed, until one harms. A seed whose looks are in the file already is not looked at again.
queue-wait looks at a larger campus, replayed first come, first served.

Limits and shares were set by seeds 0:400, 2000:2060 and 5000:5100 of job-duration and 0:62 of the arrivals and loads,
how a version of completion-time forgets by 1000:1060, the limit of queue-wait's error by 2000:2019; others count.

    python benchmarks/bench_drift.py --seeds 6000:6100 --predictors job-duration --json drift.json
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest

from jobcast.domain.clock import DAY_S
from jobcast.domain.jobs import Pool
from jobcast.features import wait_rows
from jobcast.pipelines.lifecycle.drift import drift
from jobcast.pipelines.lifecycle.drift_verdict import FINE
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.replay_judges import Window
from jobcast.pipelines.lifecycle.standards import judged
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.surface import simulate
from jobcast.traces.generators import generate
from jobcast.traces.table import Trace

CAMPUS = {"weeks": 6, "pools": 3, "jobs": 1500, "widest": 8}
TRAINED_DAYS = 28
STEP_S = 3600.0
"""Of training rows: a twelfth of them teaches nearly as much, in a twelfth of the time."""
wait_rows.MOST_ROWS, wait_rows.MOST_INSTANTS = 6_000, 300
"""As far apart: neighbouring instants have the same jobs waiting."""
WAITS = "queue-wait"
OF_WAITS = {"jobs": 5000, "duration_median_min": 60.0}
"""Of its campus: a dozen users and sixty GPUs, for with one GPU a pool every week is another world."""
Rng = np.random.Generator
Shift = Callable[[pl.DataFrame, Rng], pl.DataFrame]


def longer(times: float) -> Shift:
    """Run times change."""
    return lambda jobs, rng: jobs.with_columns(pl.col("duration") * times)


def wider(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Jobs ask for three times as many GPUs."""
    return jobs.with_columns((pl.col("gpus") * 3).cast(jobs["gpus"].dtype))


def left(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Four users of five leave."""
    users = jobs["user"].unique().sort().to_numpy()
    return jobs.filter(pl.col("user").is_in(rng.choice(users, max(1, len(users) // 5), replace=False)))


def fewer(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Seven jobs of ten are submitted no longer, whoever they are of."""
    return jobs.filter(pl.Series(rng.random(len(jobs)) < 0.3))


def scattered(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Jobs come one by one at any hour, not in bursts at work."""
    span_us = (jobs["submit_time"].max() - jobs["submit_time"].min()) / timedelta(microseconds=1)
    after = pl.Series(rng.uniform(0.0, span_us, len(jobs)).astype(np.int64)).cast(pl.Duration("us"))
    return jobs.with_columns(pl.col("submit_time").min() + after)


def growing(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Jobs are twice as wide every three days."""
    days = (jobs["submit_time"] - jobs["submit_time"].min()).dt.total_seconds() / DAY_S
    return jobs.with_columns((pl.col("gpus") * 2.0 ** (days / 3.0)).cast(jobs["gpus"].dtype))


def mixed(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Run times have nothing to do any longer with who asks for what."""
    return jobs.with_columns(duration=pl.Series(rng.permutation(jobs["duration"].to_numpy())))


def renamed(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Users come by new names."""
    return jobs.with_columns(pl.format("new-{}", "user").alias("user"))


def doubled(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
    """Every job comes twice."""
    return pl.concat([jobs, jobs.with_columns(pl.format("{}-again", "job_id").alias("job_id"))])


def held(pools: Sequence[Pool]) -> Shift:
    """Half of each pool's GPUs are held for good."""
    names = pl.Series([pool.name for pool in pools for _ in range(pool.quota // 2)], dtype=pl.String)

    def shift(jobs: pl.DataFrame, rng: Rng) -> pl.DataFrame:
        held = (
            jobs.head(1)
            .select(pl.all().repeat_by(len(names)).explode())
            .with_columns(
                pool=names,
                job_id=pl.format("held-{}", pl.int_range(len(names))),
                gpus=pl.lit(1).cast(jobs["gpus"].dtype),
                duration=pl.lit(100 * DAY_S).cast(jobs["duration"].dtype),
            )
        )
        return pl.concat([held, jobs])

    return shift


SHIFTS: dict[str, Shift] = {
    "longer": longer(20.0),
    "slower": longer(3.0),
    "doubled": doubled,
    "shorter": longer(0.05),
    "mixed": mixed,
    "wider": wider,
    "growing": growing,
    "scattered": scattered,
    "fewer": fewer,
    "left": left,
    "renamed": renamed,
}
FAMILIES: dict[str, tuple[str | None, tuple[float, ...], tuple[str, ...]]] = {
    "will-jobs-arrive": ("lightgbm", (60,), ("scattered", "fewer", "left", "renamed")),
    "new-load": ("quantile", (60,), ("growing", "wider", "scattered", "renamed")),
    "job-duration": ("tag-pool-width", (5, 60, 720), ("mixed", "longer", "shorter", "renamed")),
    "completion-time": ("futures", (60,), ("longer", "shorter", "renamed")),
    "job-size": ("pooled", (60,), ("longer", "shorter", "mixed", "renamed")),
    WAITS: (None, (60,), ("slower", "doubled", "held", "renamed", "longer")),
}
"""Algorithm, horizons and shifts of each."""


def shifted(trace: Trace, shift: Shift, from_s: float, seed: int) -> Trace:
    """The trace with its jobs from an instant on shifted."""
    late = pl.Series(trace.submit_s >= from_s)
    end = trace.jobs["submit_time"].max()
    jobs = pl.concat([trace.jobs.filter(~late), shift(trace.jobs.filter(late), np.random.default_rng(seed))])
    return replace(trace, jobs=jobs.filter(pl.col("submit_time") <= end).sort("submit_time", "job_id"))


def queued(trace: Trace, pools: Sequence[Pool], home: Path) -> Trace:
    """The trace as its jobs wait and run, first come, first served."""
    ran = simulate(trace, "fcfs", pools, baseline="none", home=home)
    return Trace.from_frame(ran.jobs, name=trace.name)


def harm(name: str, told: dict[str, Any], still: dict[str, Any]) -> float:
    """By how much figures are worse than without the shift, the worst of them over its second limit."""
    worst = 0.0
    for limit in judged(name).limits:
        for block in told["weeks"][0]["blocks"]:
            off = [limit.excess(_pooled(one, block, limit.figure), told["nominal"]) for one in (told, still)]
            if None not in off:
                worst = max(worst, (off[0] - max(off[1], 0.0)) / limit.drifted)
    return worst


def _pooled(told: dict[str, Any], block: str, figure: str) -> dict[str, float | None]:
    """A figure over all weeks, by their rows."""
    blocks = [week["blocks"][block] for week in told["weeks"]]
    known = [(one[figure], one["n"]) for one in blocks if one.get(figure) is not None]
    rows = sum(n for _, n in known)
    return {figure: sum(value * n for value, n in known) / rows if rows else None}


def looks(seed: int, home: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What is said of some families' versions of a seed."""
    for name in names:
        yield from _looks_of(name, seed, home)


def _looks_of(name: str, seed: int, home: Path) -> Iterator[dict[str, Any]]:
    (algorithm, horizons, kinds), waits = FAMILIES[name], name == WAITS
    trace, pools = generate("campus", seed, CAMPUS | OF_WAITS if waits else CAMPUS)
    shifts = {**SHIFTS, "held": held(pools)}
    until_s = float(trace.submit_s[0]) // DAY_S * DAY_S + TRAINED_DAYS * DAY_S
    # The weeks that are looked at end where they did, even if nobody is left.
    end_s = float(trace.submit_s[-1]) + 1.0

    def met(kind: str | None = None) -> Trace:
        of = trace if kind is None else shifted(trace, shifts[kind], until_s, seed)
        return queued(of, pools, home) if waits else of

    usual = met()
    settings = TrainSettings(horizons_min=horizons, min_train_jobs=50, step_s=STEP_S)
    version = train_and_register(name, algorithm, usual, None, until_s, settings, home=home)["version"]

    def look(of: Trace) -> dict[str, Any]:
        return drift((name, str(version)), Window(of, until_s, end_s), home=home).result

    still = look(usual)
    yield _row(seed, name, "none", 0.0, still)
    first = seed % len(kinds)
    for kind in (*kinds[first:], *kinds[:first]):
        told = look(met(kind))
        row = _row(seed, name, kind, harm(name, told, still), told)
        yield row
        if row["harm"] > 1.0:
            break


def _row(seed: int, name: str, kind: str, harmed: float, told: dict[str, Any]) -> dict[str, Any]:
    off = [week for week in told["weeks"] if week["verdict"] != FINE]
    said = {"verdicts": [week["verdict"] for week in told["weeks"]], "why": off[0]["reasons"] if off else []}
    return {"seed": seed, "predictor": name, "shift": kind, "harm": harmed, "fine": not off, **said}


def summary(rows: list[dict[str, Any]]) -> str:
    """A line a family, and all of them."""
    lines = [f"{'predictor':<18}{'stationary: fine':>28}{'harmed: told':>28}{'harmless: fine':>28}"]
    for name in (*FAMILIES, ""):
        mine = [row for row in rows if name in ("", row["predictor"])]
        groups = (
            [row["fine"] for row in mine if row["shift"] == "none"],
            [not row["fine"] for row in mine if row["harm"] > 1.0],
            [row["fine"] for row in mine if row["shift"] != "none" and row["harm"] < 1 / 6],
        )
        lines.append(f"{name or 'all':<18}{''.join(map(_cell, groups))}")
    return "\n".join(lines)


def _cell(right: list[bool]) -> str:
    """A count and Wilson's interval of 95 %."""
    if not right:
        return f"{'none':>28}"
    low, high = binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    return f"{f'{sum(right)} of {len(right)} ({100 * low:.0f} to {100 * high:.0f} %)':>28}"


def main() -> None:
    """Run and print; looks so far are written after each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1000:1100")
    parser.add_argument("--predictors", default=",".join(FAMILIES))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    seeds = range(*map(int, asked.seeds.split(":")))
    known = json.loads(asked.json.read_text()) if asked.json and asked.json.exists() else []
    rows: list[dict[str, Any]] = [row for row in known if row["seed"] in seeds]
    left = [seed for seed in seeds if seed not in {row["seed"] for row in rows}]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        for done, seed in enumerate(left, 1):
            rows += looks(seed, Path(home), asked.predictors.split(","))
            if asked.json:
                write_text(asked.json, json.dumps(rows, indent=1))
            rest_min = (time.monotonic() - began) / done * (len(left) - done) / 60.0
            of = f"{len(seeds) - len(left) + done} of {len(seeds)}"
            print(f"seed {seed}: {of}, {rest_min:.0f} min left", file=sys.stderr, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
