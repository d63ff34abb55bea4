"""Print the figures of a campus trace: `python -m jobcast.traces.generators [seed] [key=value ...]`."""

import sys
from collections.abc import Iterator

import polars as pl

from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Pool
from jobcast.traces.generators import generate
from jobcast.traces.generators.campus import parse_campus
from jobcast.traces.generators.campus_config import HOUR_S, MINUTE_S, CampusConfig
from jobcast.traces.generators.campus_measures import (
    base_rate,
    closed_loop_lift,
    fcfs_waits_s,
    figures,
    job_frame,
    loads,
)
from jobcast.traces.table import Trace

HEADING = "pool             jobs quota  load  lift waiting wait_h  base rate at 5, 60, 720 min"


def main(arguments: list[str]) -> None:
    """Measure one draw and print it."""
    settings = dict(word.split("=", 1) for word in arguments if "=" in word)
    seeds = [int(word) for word in arguments if "=" not in word]
    config = parse_campus(settings)
    trace, pools = generate("campus", seeds[0] if seeds else 0, settings)
    lines = [f"{name:26s} {value:10.3f}" for name, value in figures(trace, pools, config).items()]
    print("\n".join([*lines, "", HEADING, *pool_lines(trace, pools, config)]))


def pool_lines(trace: Trace, pools: list[Pool], config: CampusConfig) -> Iterator[str]:
    """One line a pool: load, closed loop, waits under strict first-come-first-served, base rates of arrivals."""
    jobs, load, from_s = job_frame(trace), loads(trace, pools, config.span_s), config.start.timestamp()
    for pool in pools:
        own = jobs.filter(pl.col("pool") == pool.name)
        submit_s, duration_s, gpus = (own[name].to_numpy() for name in ("submit_s", "duration", "gpus"))
        waits_s = fcfs_waits_s(submit_s, duration_s, gpus, pool.quota)
        rates = (base_rate(submit_s, from_s, from_s + config.span_s, MINUTE_S * k) for k in DEFAULT_HORIZONS_MIN)
        yield (
            f"{pool.name:14s} {len(own):6d} {pool.quota:5d} {load[pool.name]:5.2f}"
            f" {closed_loop_lift(jobs, pool.name):5.1f} {(waits_s > MINUTE_S).mean():7.2f}"
            f" {waits_s.mean() / HOUR_S:6.1f}  {' '.join(f'{rate:.3f}' for rate in rates)}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
