"""SIA, section 5.5: what it is worth that a share of the jobs may be stopped, and what resuming may cost."""

from functools import partial

from papers.results import Measure, Page, draws_text, numbers, result
from papers.sia.bench import SIA, Bench, PoolDraw, Row
from papers.sia.measures import GMEAN, P90, SLOWED, STOPS, TOTAL, WORST, lines, mean, median, table

QUEUES = 4
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
COSTS_S = (0, 900)


def rows_of(cost_s: int) -> list[Row]:
    """A row a share, at one cost of resuming."""
    settings = [{"preemptible_share": f"{share:g}", "resume_s": f"{cost_s}"} for share in SHARES]
    titles = [f"{share:g}, {cost_s} s" for share in SHARES]
    return [Row(title, "sia_preempt", own, "registry") for title, own in zip(titles, settings, strict=True)]


def preemption(bench: Bench, page: Page) -> None:
    """Write the page, table and plot into a folder."""
    title = "Partial preemption: speedup and slowdown by the share of jobs that may be stopped"
    rows = {cost_s: rows_of(cost_s) for cost_s in COSTS_S}
    compared = [SIA, *(row for of in rows.values() for row in of)]
    done = page.runs(bench.run([PoolDraw(QUEUES)], compared, range(bench.fewer)))
    case = str(QUEUES)

    def curve(of: list[Row], measure: Measure) -> list[float]:
        return [mean(measure, done, case, row.title) for row in of]

    curves = {f"{cost_s} s to go on": partial(curve, of) for cost_s, of in rows.items()}
    lines(page, title, (GMEAN, SLOWED, TOTAL), "share that may be stopped", SHARES, curves)
    first, last = COSTS_S
    cheap, dear = ([median(GMEAN, done, case, row.title) for row in rows[cost_s]] for cost_s in COSTS_S)
    less, total = (mean(TOTAL, done, case, row.title) for row in (rows[first][-1], SIA))
    page.write(
        title=title,
        draws=draws_text(bench.fewer),
        table=table(done, "queues", (GMEAN, P90, SLOWED, TOTAL, WORST, STOPS)),
        growing=result(f"{numbers(cheap)}; SIA {median(GMEAN, done, case, SIA.title):.2f}", cheap == sorted(cheap)),
        cheaper=result(f"{cheap[-1]:.2f} at {first} s, {dear[-1]:.2f} at {last} s, all jobs", cheap[-1] >= dear[-1]),
        total=result(f"{less:,.0f}; SIA {total:,.0f}"),
    )
