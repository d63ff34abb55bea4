"""SIA, Figure 15b (section 6.3): the virtual clock against the oracle MILP on small traces."""

from collections.abc import Sequence
from pathlib import Path

from papers.sheets import Claim
from papers.sia.bench import Bench
from papers.sia.measures import (
    GMEAN,
    RATIO,
    SLOWED,
    Measure,
    draws_text,
    median,
    table,
    write_runs,
)
from papers.sia.pages import write_draws_page
from papers.sia.plotting import over_draws
from papers.sia.units import SIA_VC, Done, Row
from papers.sia.workloads import Synthetic

GRID_S = 300.0
MILP = Row("milp", "milp", settings=(("grid_s", f"{GRID_S:g}"), ("exact", "true"), ("time_limit_s", "20")))
SMALL = Synthetic("base", GRID_S, days=1.0)
ROWS = (MILP, SIA_VC)
SMALL_DRAWS = 3
"""Times `bench.seeds`: the paper speaks of tens of smaller traces."""
WAIT = Measure("mean_wait_s", "mean wait, s", 0)
CPU = Measure("cpu_s", "s of CPU", 2)
SIMILAR = 0.1
ABOUT = (
    "{draws} of one day of the base workload on a grid of {grid:g} s, on which the MILP's schedule is executed as "
    "planned. Its gap says how far it may be from the best."
)


def figure15b(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    name, title = "figure15b", "Figure 15b: the virtual clock against the MILP"
    count = SMALL_DRAWS * bench.seeds
    done = bench.run([SMALL], ROWS, count)
    write_runs(out, name, done)
    over_draws(out, name, title, done, (GMEAN, RATIO, WAIT, CPU))
    gap = 100.0 * float(Measure("milp_gap", "").of(done, SMALL.name, MILP.title).max())
    shown = "\n\n".join(
        (f"The largest gap of the MILP is {gap:.1f} %.", table(done, "workload", (GMEAN, RATIO, SLOWED, WAIT)))
    )
    about = ABOUT.format(draws=draws_text(count), grid=GRID_S)
    write_draws_page(
        out,
        name,
        title,
        about,
        says="Distributions over draws of speedup, wait and CPU",
        shown=shown,
        found=_claims(done),
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    ours, best = (median(GMEAN, done, SMALL.name, row.title) for row in (SIA_VC, MILP))
    fast, slow = (median(CPU, done, SMALL.name, row.title) for row in (SIA_VC, MILP))
    return [
        Claim("speedups of both are alike", "similar distributions", f"{ours:.2f} against {best:.2f}, medians",
              abs(ours / best - 1.0) <= SIMILAR),
        Claim("the virtual clock takes less CPU", "orders of magnitude", f"{slow / fast:,.0f} times", slow > 10 * fast),
    ]  # fmt: skip
