"""SIA, Figure 13 (section 6.2): many schedulers on random draws of four queues, and what gains cost in harm."""

import numpy as np

from papers.results import Done, Measure, Page, draws_text, result
from papers.sia import bench as who
from papers.sia import measures as m
from papers.sia.bench import PoolDraw

QUEUES = 4
ROWS = (who.SIA, who.SIA_PAPER, who.MMFS, who.HIVED, who.THEMIS, who.SSF, who.SJF, who.GSSF)
OTHERS = (who.SIA_RISK, who.SIA_PLAN, who.SIA_EXACT, who.SIA_VC)
"""Not in the paper's figure; on as many draws as the figures after it."""
SHARING = tuple(row.title for row in (*OTHERS, *ROWS) if row not in (who.SSF, who.SJF))
PANELS = (m.GMEAN, m.SLOWED, m.TOTAL, m.WORST)
PAPER_LESS = 100.0
"""SIA's slowdowns are smaller than max-min's by 100 to 1,000 times, section 6.2."""


def figure13(bench: who.Bench, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    title = f"Figure 13: {bench.draws} draws of four queues"
    done = bench.run([PoolDraw(QUEUES)], ROWS, range(bench.draws))
    more = bench.run([PoolDraw(QUEUES)], OTHERS, range(bench.fewer))
    page.runs([*done, *more])
    m.over_draws(page, title, done, PANELS)
    columns = (m.GMEAN, m.MEAN, m.SLOWED, m.TOTAL, m.WORST)
    # The same draws of all, so that medians compare.
    shared = [one for one in (*more, *done) if one.name in SHARING and (one.seed or 0) < bench.fewer]
    m.frontier(page.named("figure13-frontier"), "What is gained and what it costs others", shared, m.TOTAL, m.GMEAN)
    tables = {"table": m.table(done, "queues", columns), "frontier": m.table(shared, "queues", columns)}
    tables["paired"] = m.paired_table(shared, "queues", who.SIA.title)
    draws = {"draws": draws_text(bench.draws), "fewer": draws_text(bench.fewer)}
    page.write(title=title, **draws, **tables, **_found(done))


def _found(done: list[Done]) -> dict[str, str]:
    case = str(QUEUES)
    speed = {row.title: m.median(m.GMEAN, done, case, row.title) for row in ROWS}
    ours, per_queue = speed[who.SIA.title], max(speed[row.title] for row in (who.SSF, who.SJF))
    rivals = max(speed[row.title] for row in (who.MMFS, who.HIVED, who.THEMIS))
    none = 100.0 * float(np.mean(m.TOTAL.of(done, case, who.SIA.title) == 0.0))
    own = m.paired_text(*(m.GMEAN.of(done, case, row.title) for row in (who.SIA, who.SIA_PAPER)))
    return {
        "speeds": result(", ".join(f"{name} {value:.2f}" for name, value in speed.items()), ours >= rivals),
        "per_queue": result(f"{ours:.2f} against {per_queue:.2f}", ours > per_queue),
        "total": _less(m.TOTAL, done),
        "worst": _less(m.WORST, done),
        "nobody": result(f"{none:.0f} %"),
        "own": result(own),
    }


def _less(measure: Measure, done: list[Done]) -> str:
    ours, theirs = (m.mean(measure, done, str(QUEUES), row.title) for row in (who.SIA, who.MMFS))
    times = m.times_less(ours, theirs)
    here = f"{m.times_text(times)}, {ours:,.1f} against {theirs:,.0f} min, means over draws"
    return result(here, times >= PAPER_LESS)
