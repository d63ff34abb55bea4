"""SIA, Figure 15b (section 6.3): the virtual clock against the oracle MILP on small traces."""

from papers.results import Page, draws_text, result
from papers.sia.bench import SIA_VC, Bench, Synthetic, milp
from papers.sia.measures import CPU, GAP, GMEAN, RATIO, SLOWED, WAIT, median, over_draws, table

GRID_S = 300.0
MILP = milp(GRID_S, 20)
SMALL = Synthetic("base", GRID_S, days=1.0)
SMALL_DRAWS = 3
"""Times `bench.seeds`: the paper speaks of tens of smaller traces."""
SIMILAR = 0.1


def figure15b(bench: Bench, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    title, count = "Figure 15b: the virtual clock against the MILP", SMALL_DRAWS * bench.seeds
    done = page.runs(bench.run([SMALL], (MILP, SIA_VC), range(count)))
    over_draws(page, title, done, (GMEAN, RATIO, WAIT, CPU))
    (ours, fast), (best, slow) = (
        [median(measure, done, SMALL.name, row.title) for measure in (GMEAN, CPU)] for row in (SIA_VC, MILP)
    )
    page.write(
        title=title,
        draws=draws_text(count),
        grid=GRID_S,
        gap=100.0 * float(GAP.of(done, SMALL.name, MILP.title).max()),
        table=table(done, "workload", (GMEAN, RATIO, SLOWED, WAIT)),
        alike=result(f"{ours:.2f} against {best:.2f}, medians", abs(ours / best - 1.0) <= SIMILAR),
        cpu=result(f"{slow / fast:,.0f} times", slow > 10 * fast),
    )
