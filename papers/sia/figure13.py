"""SIA, Figure 13 (section 6.2): many schedulers on random draws of four queues."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers.bench import Done
from papers.measures import Measure, draws_text
from papers.page import result, write_page, write_runs
from papers.sia import measures as m
from papers.sia.bench import GSSF, HIVED, MMFS, SIA, SIA_PAPER, SJF, SSF, THEMIS, Bench
from papers.sia.measures import GMEAN, SLOWED, TOTAL, WORST, mean, median, paired_text, table
from papers.sia.plotting import over_draws
from papers.sia.workloads import PoolDraw

QUEUES = 4
ROWS = (SIA, SIA_PAPER, MMFS, HIVED, THEMIS, SSF, SJF, GSSF)
PANELS = (GMEAN, SLOWED, TOTAL, WORST)
PAPER_LESS = 100.0
"""SIA's slowdowns are smaller than max-min's by 100 to 1,000 times, section 6.2."""


def figure13(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    title = f"Figure 13: {bench.draws} draws of four queues"
    done = bench.run([PoolDraw(QUEUES)], ROWS, range(bench.draws))
    write_runs(out, "figure13", done)
    over_draws(out, "figure13", title, done, PANELS)
    shown = table(done, "queues", (GMEAN, m.MEAN, SLOWED, TOTAL, WORST))
    write_page(__file__, out, title=title, draws=draws_text(bench.draws), table=shown, **_found(done))


def _found(done: Sequence[Done]) -> dict[str, str]:
    case = str(QUEUES)
    speed = {row.title: median(GMEAN, done, case, row.title) for row in ROWS}
    ours, per_queue = speed[SIA.title], max(speed[row.title] for row in (SSF, SJF))
    rivals = max(speed[row.title] for row in (MMFS, HIVED, THEMIS))
    none = 100.0 * float(np.mean(TOTAL.of(done, case, SIA.title) == 0.0))
    return {
        "speeds": result(", ".join(f"{name} {value:.2f}" for name, value in speed.items()), ours >= rivals),
        "per_queue": result(f"{ours:.2f} against {per_queue:.2f}", ours > per_queue),
        "total": _less(TOTAL, done),
        "worst": _less(WORST, done),
        "nobody": result(f"{none:.0f} %"),
        "own": result(paired_text(GMEAN.of(done, case, SIA.title), GMEAN.of(done, case, SIA_PAPER.title))),
    }


def _less(measure: Measure, done: Sequence[Done]) -> str:
    ours, theirs = (mean(measure, done, str(QUEUES), row.title) for row in (SIA, MMFS))
    times = m.times_less(ours, theirs)
    here = f"{m.times_text(times)}, {ours:,.1f} against {theirs:,.0f} min, means over draws"
    return result(here, times >= PAPER_LESS)
