"""SIA, Figure 13 (section 6.2): many schedulers on random draws of four queues."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers.sheets import Claim
from papers.sia.bench import Bench
from papers.sia.measures import (
    GMEAN,
    MEAN,
    SLOWED,
    TOTAL,
    WORST,
    draws_text,
    mean,
    median,
    paired_text,
    table,
    times_less,
    times_text,
    write_runs,
)
from papers.sia.pages import write_draws_page
from papers.sia.plotting import over_draws
from papers.sia.units import GSSF, HIVED, MMFS, SIA, SIA_PAPER, SJF, SSF, THEMIS, Done
from papers.sia.workloads import PoolDraw

QUEUES = 4
ROWS = (SIA, SIA_PAPER, MMFS, HIVED, THEMIS, SSF, SJF, GSSF)
PANELS = (GMEAN, SLOWED, TOTAL, WORST)
PAPER_LESS = 100.0
"""SIA's slowdowns are smaller than max-min's by 100 to 1,000 times, section 6.2."""
ABOUT = (
    "{draws} of four pools of Philly each (of those with at least 100 jobs), with loads drawn from U[0.6, 1.1] by "
    "which quotas are scaled; two weeks from 2017-11-06, of which the jobs of the first two days do not count; "
    "predictors trained on the five weeks before, ours by default and the paper's own. Speedups are of each job "
    "against FCFS without sharing. hived and themis_np never preempt; ssf, sjf, gssf and themis_np are told exact "
    "durations."
)


def figure13(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    name, title = "figure13", f"Figure 13: {bench.draws} draws of four queues"
    done = bench.run([PoolDraw(QUEUES)], ROWS, bench.draws)
    write_runs(out, name, done)
    over_draws(out, name, title, done, PANELS)
    shown = table(done, "queues", (GMEAN, MEAN, SLOWED, TOTAL, WORST))
    about = ABOUT.format(draws=draws_text(bench.draws))
    write_draws_page(
        out,
        name,
        title,
        about,
        says="Distributions over draws of speedup, slowed jobs, total and worst slowdown",
        shown=shown,
        found=_claims(done),
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    case = str(QUEUES)
    speed = {row.title: median(GMEAN, done, case, row.title) for row in ROWS}
    per_queue = max(speed[row.title] for row in (SSF, SJF))
    total, theirs = (mean(TOTAL, done, case, row.title) for row in (SIA, MMFS))
    worst, longest = (mean(WORST, done, case, row.title) for row in (SIA, MMFS))
    none = 100.0 * float(np.mean(TOTAL.of(done, case, SIA.title) == 0.0))
    said = ", ".join(f"{name} {value:.2f}" for name, value in speed.items())
    rivals = max(speed[row.title] for row in (MMFS, HIVED, THEMIS))
    return [
        Claim("SIA's speedup is equal to or better than that of the alternatives", "yes", said,
              speed[SIA.title] >= rivals),
        Claim("... and above schedulers within a pool", "yes", f"{speed[SIA.title]:.2f} against {per_queue:.2f}",
              speed[SIA.title] > per_queue),
        _less("total slowdown below max-min's by, times", total, theirs),
        _less("worst slowdown below max-min's by, times", worst, longest),
        Claim("draws in which SIA slows nobody", "most", f"{none:.0f} %"),
        Claim("SIA's speedup over that of the paper's own predictors", "-",
              paired_text(GMEAN.of(done, case, SIA.title), GMEAN.of(done, case, SIA_PAPER.title))),
    ]  # fmt: skip


def _less(said: str, ours: float, theirs: float) -> Claim:
    times = times_less(ours, theirs)
    here = f"{times_text(times)}, {ours:,.1f} against {theirs:,.0f} min, means over draws"
    return Claim(said, "100 to 1,000", here, times >= PAPER_LESS)
