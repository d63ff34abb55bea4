"""Starts as told by futures, by queue-wait, and by both: `predict jct --begin recorded` along a trace, scored.

queue-wait is trained once, on what was known at the first instant. After each answer it is told what came
(`jobcast promises`), so that weights follow past errors; nothing is read before it was known.

    python benchmarks/bench_combined_starts.py TRACE --policy easy --gpus 32 --from TIME --every HOURS --instants N
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from jobcast.domain.clock import HOUR_S


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--policy", default="easy")
    parser.add_argument("--gpus", required=True)
    parser.add_argument("--from", dest="from_s", type=float, required=True, help="first instant, seconds")
    parser.add_argument("--every", type=float, required=True, help="hours")
    parser.add_argument("--instants", type=int, default=10)
    parser.add_argument("--futures", default="40")
    parser.add_argument("--stretch", type=int, default=1, help="how many times as slow the trace's clock is made")
    options = parser.parse_args()
    with TemporaryDirectory() as home:
        trace = ("--trace", stretched(options.trace, options.stretch, Path(home)))
        jobcast(home, "train", "queue-wait", *trace, "--until", repr(options.from_s))
        asked = ("predict", "jct", *trace, "--policy", options.policy, "--gpus", options.gpus, "--begin", "recorded")
        for number in range(options.instants):
            at_s = options.from_s + number * options.every * HOUR_S
            jobcast(home, *asked, "--at", repr(at_s), "--futures", options.futures)
            jobcast(home, "promises", *trace)
        tell(Path(home))


def stretched(path, factor, folder):
    """A trace whose clock goes slower from the first submission on: a log of minutes has too few instants."""
    if factor == 1:
        return path.resolve()
    jobs = pl.read_parquet(path)
    first = jobs["submit_time"].min()
    times = [name for name in jobs.columns if isinstance(jobs.schema[name], pl.Datetime)]
    lengths = [name for name in ("duration", "time_limit_s") if name in jobs.columns]
    later = [(first + (pl.col(name) - first) * factor).alias(name) for name in times]
    jobs.with_columns(*later, pl.col(lengths) * factor).write_parquet(folder / "stretched.parquet")
    return folder / "stretched.parquet"


def jobcast(home, *words):
    """A command in a home of its own."""
    command = [sys.executable, "-m", "jobcast", "--quiet", *map(str, words)]
    subprocess.run(command, env={**os.environ, "JOBCAST_HOME": home}, stdout=subprocess.DEVNULL, check=True)


def tell(home):
    """Errors by version, of the jobs that all of them told of and that started."""
    from jobcast.models.forecast_combination import pinball_losses
    from jobcast.models.promise_ledger import START, PromiseLedger
    from jobcast.models.promise_record import SHARES

    ledger, by_version = PromiseLedger(home), defaultdict(dict)
    outcomes = ledger.outcomes()
    for one in ledger.promises(kind=START):
        if outcomes[one.event].event_s is not None:
            by_version[one.version][one.event, one.at_s] = one
    common = set.intersection(*(set(rows) for rows in by_version.values()))
    print(f"{'':<40} {'n':>6} {'MSE':>7} {'2x':>7} {'3x':>7} {'90 %':>7} {'pinball':>8}")
    for version, rows in sorted(by_version.items()):
        waits, told, held = [], [], []
        for key in common:
            one, came_s = rows[key], outcomes[key[0]].event_s
            low_s, high_s = next(ends for level, *ends in one.intervals if level == 0.9)
            held.append(low_s - 1.0 <= came_s <= high_s + 1.0)
            waits.append(max(came_s - one.at_s, 1.0))
            told.append(np.maximum(np.array(one.futures_s) - one.at_s, 1.0))
        wait, told = np.log10(waits), np.log10(told)
        off = np.abs(told[:, len(SHARES) // 2] - wait)
        loss = pinball_losses(wait, told, SHARES).mean()
        shares = ((off <= np.log10(2)).mean(), (off <= np.log10(3)).mean(), np.mean(held))
        print(
            f"{version:<40} {len(wait):>6} {np.square(off).mean():>7.3f}",
            *(f"{one:>7.1%}" for one in shares),
            f"{loss:>8.4f}",
        )


if __name__ == "__main__":
    main()
