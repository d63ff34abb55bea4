"""SIA, Figures 2 and 3 (section 2): how much of their GPUs pools use, and how their jobs differ, on public traces."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.report.look import plain_ticks, styles
from jobcast.traces.describe import Description, describe
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from papers.plotting import panels
from papers.results import Page, grid, result
from papers.sia.bench import ACTUAL_LOAD, PHILLY_FILE, TRAINED_FROM, TWO_WEEKS, Bench, pool_work

USED = "utilization_hourly"
SHOWN = {
    USED: "Figure 2: share of all GPUs at work, by hour",
    "interarrival_cv": "3a: gaps between jobs, deviation / mean, by pool",
    "burst_share": "3b: most GPUs asked for in 5 min / GPUs, by pool",
    "duration_spread": "3c: run time, p99 / median, by pool",
}
MOSTLY = 0.9
"""A pool's jobs are of one width where so many are."""


def of_pools(holds: Callable[[dict[str, Any]], bool]) -> Callable[[Description], float]:
    """Share of the pools whose figures hold something."""
    return lambda one: float(np.mean([holds(asdict(pool)) for pool in one.pools.values()]))


SHARES: dict[str, Callable[[Description], float]] = {
    "GPUs at work, mean": lambda one: float(np.mean(one.utilization_hourly)),
    "pools whose gaps vary more than at random": of_pools(lambda pool: pool["interarrival_cv"] > 1),
    "pools that a burst asked for more than they have": of_pools(lambda pool: pool["burst_share"] > 1),
    "pools with p99 over 10 medians": of_pools(lambda pool: pool["duration_spread"] > 10),
    "pools of one width": of_pools(lambda pool: max(pool["widths"].values()) >= MOSTLY * pool["jobs"]),
    "job within 5 min after one ends": lambda one: one.total.followed_after_completion,
    "... at random": lambda one: one.total.followed_at_random,
}
CLAIMED = dict(zip(("gaps", "bursts", "spread", "alike"), list(SHARES)[1:5], strict=True))
"""Fields of the page's template."""


def described(data: Path) -> dict[str, Description]:
    """Philly's busy weeks, its pools at the load that stands for their sizes, and the campus with its own."""
    from_s, until_s = parse_time(TRAINED_FROM), parse_time(TWO_WEEKS[1])
    philly = read_trace(data / PHILLY_FILE, format="philly")
    work = pool_work(philly, from_s, until_s)
    quotas = [one.pool(ACTUAL_LOAD) for one in work.values()]
    return {
        "Philly": describe(philly.between(from_s, until_s).of_pools(work), quotas),
        "campus": describe(*generate("campus", 0)),
    }


def usage(bench: Bench, page: Page) -> None:
    """Write the figures' page, table and plot into a folder."""
    found = described(bench.data)
    style = styles(list(found))

    def panel(axes: Axes, curve: str) -> None:
        for name, one in found.items():
            axes.step(one.curves[curve].x, one.curves[curve].y, where="post", label=name, **style[name].line)
        axes.set(xlabel=SHOWN[curve], ylabel="at or below", ylim=(0, 1.02))
        if curve != USED:
            axes.set_xscale("log")
            plain_ticks(axes.xaxis)

    panels(page, "Figures 2 and 3: pools", list(SHOWN), panel, height=5.4, columns=2, titled=False)
    shares = {name: {said: share(one) for said, share in SHARES.items()} for name, one in found.items()}
    page.csv(("trace", *SHARES), [(name, *(f"{v:.4g}" for v in of.values())) for name, of in shares.items()])
    rows = [
        (name, f"{len(one.pools)}", f"{one.total.jobs:,}", *(f"{100 * share:.0f} %" for share in shares[name].values()))
        for name, one in found.items()
    ]

    def most(said: str) -> str:
        told = ", ".join(f"{name} {100 * of[said]:.0f} %" for name, of in shares.items())
        return result(told, min(of[said] for of in shares.values()) > 0.5)

    claims = {field: most(said) for field, said in CLAIMED.items()}
    page.write(table=grid(("trace", "pools", "jobs", *SHARES), rows), **claims)
