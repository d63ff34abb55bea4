"""SIA, Figure 15a (section 6.3): what predictors are worth, and what perfect ones would be."""

from collections.abc import Sequence
from pathlib import Path

from papers.bench import Done
from papers.page import numbers, result, write_page
from papers.sia.bench import MMFS, SIA, SIA_EXACT, SIA_PAPER, SIA_RANDOM, SIA_RANDOM_ARRIVALS, SIA_VC, Bench
from papers.sia.figure14 import DRAWS
from papers.sia.measures import GMEAN, SLOWED, TOTAL, WORST, mean, median
from papers.sia.queues import over_queues

ROWS = (SIA, SIA_PAPER, SIA_RANDOM_ARRIVALS, SIA_RANDOM, SIA_EXACT, SIA_VC, MMFS)
SIMILAR = 3.0
"""Totals that differ by less than this factor are called similar here."""


def figure15a(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    title, columns = "Figure 15a: what the predictors are worth", (GMEAN, SLOWED, TOTAL, WORST)
    done, shown = over_queues(bench, out, title, DRAWS, ROWS, (GMEAN, TOTAL), columns)
    write_page(__file__, out, **shown, **_found(done))


def _found(done: Sequence[Done]) -> dict[str, str]:
    cases = [one.name for one in DRAWS]
    total = {row.title: sum(mean(TOTAL, done, case, row.title) for case in cases) / len(cases) for row in ROWS}
    ours, arrivals, random = (total[row.title] for row in (SIA, SIA_RANDOM_ARRIVALS, SIA_RANDOM))
    totals = "; ".join(f"{name} {minutes:,.0f}" for name, minutes in total.items())
    alike = f"{random:,.0f} against {total[MMFS.title]:,.0f} min"
    slowed = max(float(SLOWED.of(done, case, row.title).max()) for case in cases for row in (SIA_EXACT, SIA_VC))
    speed = {row.title: [median(GMEAN, done, case, row.title) for case in cases] for row in (SIA, SIA_EXACT, SIA_VC)}
    more, gaps = (
        [one / other for one, other in zip(speed[better.title], speed[worse.title], strict=True)]
        for better, worse in ((SIA_EXACT, SIA), (SIA_VC, SIA_EXACT))
    )
    return {
        "totals": result(totals, ours < arrivals < random),
        "random": result(alike, random * SIMILAR > total[MMFS.title]),
        "exact": result(f"{slowed:.2f} % slowed at most", slowed == 0.0),
        "raised": result(numbers(more), min(more) >= 1.0),
        "gaps": result(f"{numbers(gaps)} times", gaps[-1] < gaps[0]),
    }
