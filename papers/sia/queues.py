"""SIA, Figures 14, 15a and 16 (sections 6.2 to 6.4): draws of several numbers of queues; preemption (5.5) in one."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from papers.results import Done, Measure, Page, draws_text, numbers, result
from papers.sia import bench as who
from papers.sia import measures as m
from papers.sia.bench import PoolDraw
from papers.sia.measures import boxes

DRAWS = tuple(PoolDraw(queues) for queues in (2, 4, 6, 8))
LOCAL = tuple(PoolDraw(queues, locality=True) for queues in (2, 4, 8))
OTHERS = (who.MMFS, who.HIVED, who.THEMIS)
BY_FORECASTS = (who.SIA, who.SIA_PAPER, who.SIA_RANDOM_ARRIVALS, who.SIA_RANDOM, who.SIA_EXACT, who.SIA_VC, who.MMFS)
ALL = (m.GMEAN, m.MEAN, m.P90, m.P99, m.SLOWED, m.TOTAL, m.WORST)
SIMILAR = 3.0
"""Totals that differ by less than this factor are called similar here."""
QUEUES, SHARES, COSTS_S = 4, (0.0, 0.25, 0.5, 0.75, 1.0), (0, 900)
"""Of draws in which a share of the jobs may be stopped, and what it costs to go on."""


def figure14(bench: who.Bench, page: Page) -> None:
    """Numbers of queues that share, and the tails of speedups: the page, table and plot, into a folder."""
    title, panels = "Figure 14: numbers of queues that share", (m.GMEAN, m.P90, m.TOTAL, m.WORST)
    done, shown = _over_queues(bench, page, title, DRAWS, (who.SIA, who.SIA_PAPER, *OTHERS), panels)
    cases = [one.name for one in DRAWS]
    ours = _speeds(done, cases, who.SIA)
    rivals = [max(m.median(m.GMEAN, done, case, row.title) for row in OTHERS) for case in cases]
    better = [case for case, one, other in zip(cases, ours, rivals, strict=True) if one >= other]
    less = [m.times_less(*(m.mean(m.TOTAL, done, case, row.title) for row in (who.SIA, who.MMFS))) for case in cases]
    found = {
        "growing": _growing(done, cases),
        "above": result(f"with {', '.join(better) or 'no number of'} queues", cases[-1] in better),
        "less": result("; ".join(map(m.times_text, less)), min(less) >= 10.0),
    }
    page.write(**shown, **found)


def figure15a(bench: who.Bench, page: Page) -> None:
    """What predictors are worth, and what perfect ones would be: the page, table and plot, into a folder."""
    title = "Figure 15a: what the predictors are worth"
    done, shown = _over_queues(bench, page, title, DRAWS, BY_FORECASTS, (m.GMEAN, m.TOTAL))
    cases = [one.name for one in DRAWS]
    total = {
        row.title: sum(m.mean(m.TOTAL, done, case, row.title) for case in cases) / len(cases) for row in BY_FORECASTS
    }
    ours, arrivals, random = (total[row.title] for row in (who.SIA, who.SIA_RANDOM_ARRIVALS, who.SIA_RANDOM))
    totals = "; ".join(f"{name} {minutes:,.0f}" for name, minutes in total.items())
    alike = f"{random:,.0f} against {total[who.MMFS.title]:,.0f} min"
    slowed = m.most_slowed(done, cases, (who.SIA_EXACT, who.SIA_VC))
    speeds = [np.array(_speeds(done, cases, row)) for row in (who.SIA, who.SIA_EXACT, who.SIA_VC)]
    more, gaps = speeds[1] / speeds[0], speeds[2] / speeds[1]
    found = {
        "totals": result(totals, ours < arrivals < random),
        "random": result(alike, random * SIMILAR > total[who.MMFS.title]),
        "exact": result(f"{slowed:.2f} % slowed at most", slowed == 0.0),
        "raised": result(numbers(more), min(more) >= 1.0),
        "gaps": result(f"{numbers(gaps)} times", gaps[-1] < gaps[0]),
    }
    page.write(**shown, **found)


def figure16(bench: who.Bench, page: Page) -> None:
    """Jobs that need their GPUs on one server of eight: the page, table and plot, into a folder."""
    rows, panels = (who.SIA, who.SIA_PAPER, who.SIA_EXACT, who.HIVED), (m.GMEAN, m.P90, m.TOTAL, m.WORST)
    done, shown = _over_queues(bench, page, "Figure 16: locality", LOCAL, rows, panels)
    cases = [one.name for one in LOCAL]
    less = m.times_less(
        *(sum(m.mean(m.TOTAL, done, case, row.title) for case in cases) for row in (who.SIA, who.HIVED))
    )
    slowed = m.most_slowed(done, cases, (who.SIA_EXACT,))
    found = {
        "growing": _growing(done, cases),
        "less": result(m.times_text(less), less > 1.0),
        "exact": result(f"{slowed:.2f} % at most", slowed == 0.0),
    }
    page.write(**shown, **found)


def _costing(cost_s: int) -> list[who.Row]:
    """A row a share, at one cost of resuming."""
    settings = [{"preemptible_share": f"{share:g}", "resume_s": f"{cost_s}"} for share in SHARES]
    titles = [f"{share:g}, {cost_s} s" for share in SHARES]
    return [who.Row(title, "sia_preempt", own, "registry") for title, own in zip(titles, settings, strict=True)]


def preemption(bench: who.Bench, page: Page) -> None:
    """Write the page, table and plot into a folder."""
    title = "Partial preemption: speedup and slowdown by the share of jobs that may be stopped"
    rows = {cost_s: _costing(cost_s) for cost_s in COSTS_S}
    compared = [who.SIA, *(row for of in rows.values() for row in of)]
    done = page.runs(bench.run([PoolDraw(QUEUES)], compared, range(bench.fewer)))
    case = str(QUEUES)

    def curve(of: list[who.Row], measure: Measure) -> list[float]:
        return [m.mean(measure, done, case, row.title) for row in of]

    curves = {f"{cost_s} s to go on": partial(curve, of) for cost_s, of in rows.items()}
    m.lines(page, title, (m.GMEAN, m.SLOWED, m.TOTAL), "share that may be stopped", SHARES, curves)
    first, last = COSTS_S
    cheap, dear = ([m.median(m.GMEAN, done, case, row.title) for row in rows[cost_s]] for cost_s in COSTS_S)
    speed = m.median(m.GMEAN, done, case, who.SIA.title)
    less, total = (m.mean(m.TOTAL, done, case, row.title) for row in (rows[first][-1], who.SIA))
    page.write(
        title=title,
        draws=draws_text(bench.fewer),
        table=m.table(done, "queues", (m.GMEAN, m.P90, m.SLOWED, m.TOTAL, m.WORST, m.STOPS)),
        growing=result(f"{numbers(cheap)}; SIA {speed:.2f}", cheap == sorted(cheap)),
        cheaper=result(f"{cheap[-1]:.2f} at {first} s, {dear[-1]:.2f} at {last} s, all jobs", cheap[-1] >= dear[-1]),
        total=result(f"{less:,.0f}; SIA {total:,.0f}"),
    )


def _over_queues(
    bench: who.Bench,
    page: Page,
    title: str,
    draws: Sequence[PoolDraw],
    rows: Sequence[who.Row],
    panels: Sequence[Measure],
) -> tuple[list[Done], dict[str, str]]:
    """Run rows on draws of several numbers of queues; write the table of runs and the boxes of a figure into a folder.

    Parameters
    ----------
    title : of the figure, which begins with its number
    panels : measures of the plot

    Returns
    -------
    done : the runs
    shown : how many draws there are, their table, and who.SIA beside the others draw by draw, for the page
    """
    done = page.runs(bench.run(draws, rows, range(bench.fewer)))
    boxes(page, title, done, panels)
    tables = {"table": m.table(done, "queues", ALL), "paired": m.paired_table(done, "queues", who.SIA.title)}
    return done, {"draws": draws_text(bench.fewer), **tables}


def _speeds(done: Sequence[Done], cases: Sequence[str], row: who.Row) -> list[float]:
    return [m.median(m.GMEAN, done, case, row.title) for case in cases]


def _growing(done: Sequence[Done], cases: Sequence[str]) -> str:
    """Whether who.SIA's speedup grows with the number of queues."""
    ours = _speeds(done, cases, who.SIA)
    return result(f"{numbers(ours)} by queues", ours == sorted(ours))
