"""SIA, Figure 13 (section 6.2): many schedulers on random draws of four queues, and what gains cost in harm."""

import numpy as np

from papers.results import Done, Measure, Page, draws_text, result
from papers.sia import bench as who
from papers.sia import measures as m
from papers.sia.measures import GMEAN, SLOWED, TOTAL, WORST, mean, median, paired_table, paired_text, table
from papers.sia.plotting import frontier, over_draws
from papers.sia.workloads import PoolDraw

QUEUES = 4
ROWS = (who.SIA, who.SIA_PAPER, who.MMFS, who.HIVED, who.THEMIS, who.SSF, who.SJF, who.GSSF)
OTHERS = (who.SIA_RISK, who.SIA_PLAN, who.SIA_EXACT, who.SIA_VC)
"""Not in the paper's figure; on as many draws as the figures after it."""
SHARING = (
    *(row.title for row in OTHERS),
    *(row.title for row in (who.SIA, who.SIA_PAPER, who.MMFS, who.HIVED, who.THEMIS, who.GSSF)),
)
PANELS = (GMEAN, SLOWED, TOTAL, WORST)
PAPER_LESS = 100.0
"""SIA's slowdowns are smaller than max-min's by 100 to 1,000 times, section 6.2."""


def figure13(bench: who.Bench, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    title = f"Figure 13: {bench.draws} draws of four queues"
    done = bench.run([PoolDraw(QUEUES)], ROWS, range(bench.draws))
    more = bench.run([PoolDraw(QUEUES)], OTHERS, range(bench.fewer))
    page.runs([*done, *more])
    over_draws(page, title, done, PANELS)
    columns = (GMEAN, m.MEAN, SLOWED, TOTAL, WORST)
    # The same draws of all, so that medians compare.
    shared = [one for one in (*more, *done) if one.name in SHARING and (one.seed or 0) < bench.fewer]
    frontier(page.named("figure13-frontier"), "What is gained and what it costs others", shared, TOTAL, GMEAN)
    tables = {"table": table(done, "queues", columns), "frontier": table(shared, "queues", columns)}
    tables["paired"] = paired_table(shared, "queues", who.SIA.title)
    draws = {"draws": draws_text(bench.draws), "fewer": draws_text(bench.fewer)}
    page.write(title=title, **draws, **tables, **_found(done))


def _found(done: list[Done]) -> dict[str, str]:
    case = str(QUEUES)
    speed = {row.title: median(GMEAN, done, case, row.title) for row in ROWS}
    ours, per_queue = speed[who.SIA.title], max(speed[row.title] for row in (who.SSF, who.SJF))
    rivals = max(speed[row.title] for row in (who.MMFS, who.HIVED, who.THEMIS))
    none = 100.0 * float(np.mean(TOTAL.of(done, case, who.SIA.title) == 0.0))
    return {
        "speeds": result(", ".join(f"{name} {value:.2f}" for name, value in speed.items()), ours >= rivals),
        "per_queue": result(f"{ours:.2f} against {per_queue:.2f}", ours > per_queue),
        "total": _less(TOTAL, done),
        "worst": _less(WORST, done),
        "nobody": result(f"{none:.0f} %"),
        "own": result(paired_text(GMEAN.of(done, case, who.SIA.title), GMEAN.of(done, case, who.SIA_PAPER.title))),
    }


def _less(measure: Measure, done: list[Done]) -> str:
    ours, theirs = (mean(measure, done, str(QUEUES), row.title) for row in (who.SIA, who.MMFS))
    times = m.times_less(ours, theirs)
    here = f"{m.times_text(times)}, {ours:,.1f} against {theirs:,.0f} min, means over draws"
    return result(here, times >= PAPER_LESS)
