"""SIA, Figure 15a (section 6.3): what predictors are worth, and what perfect ones would be."""

from collections.abc import Sequence
from pathlib import Path

from papers.sheets import Claim
from papers.sia.bench import Bench
from papers.sia.figure14 import DRAWS
from papers.sia.measures import (
    GMEAN,
    SLOWED,
    TOTAL,
    WORST,
    mean,
    median,
)
from papers.sia.pages import write_queues_page
from papers.sia.units import (
    MMFS,
    SIA,
    SIA_EXACT,
    SIA_PAPER,
    SIA_RANDOM,
    SIA_RANDOM_ARRIVALS,
    SIA_VC,
    Done,
)
from papers.sia.workloads import names_of

ROWS = (SIA, SIA_PAPER, SIA_RANDOM_ARRIVALS, SIA_RANDOM, SIA_EXACT, SIA_VC, MMFS)
PANELS = (GMEAN, TOTAL)
SIMILAR = 3.0
"""Totals that differ by less than this factor are called similar here."""
ABOUT = (
    "Figure 14's draws, {draws} for each number of queues. In the second row a fair coin stands in for the arrival "
    "predictor, in the third a uniform bin for that of durations too."
)


def figure15a(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_queues_page(
        bench,
        out,
        "figure15a",
        "Figure 15a: what the predictors are worth",
        ABOUT,
        says="Speedup and total slowdown by number of queues and forecasts",
        draws=DRAWS,
        rows=ROWS,
        panels=PANELS,
        columns=(GMEAN, SLOWED, TOTAL, WORST),
        found=_claims,
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    cases = names_of(DRAWS)
    total = {row.title: sum(mean(TOTAL, done, case, row.title) for case in cases) / len(cases) for row in ROWS}
    speed = {row.title: [median(GMEAN, done, case, row.title) for case in cases] for row in ROWS}
    exact = max(float(SLOWED.of(done, case, row.title).max()) for case in cases for row in (SIA_EXACT, SIA_VC))
    less = total[SIA.title] < total[SIA_RANDOM_ARRIVALS.title] < total[SIA_RANDOM.title]
    totals = "; ".join(f"{name} {minutes:,.0f}" for name, minutes in total.items())
    similar = total[SIA_RANDOM.title] * SIMILAR > total[MMFS.title]
    gaps = [vc / coarse for vc, coarse in zip(speed[SIA_VC.title], speed[SIA_EXACT.title], strict=True)]
    gap_text = ", ".join(f"{gap:.2f}" for gap in gaps)
    more = [e / s for e, s in zip(speed[SIA_EXACT.title], speed[SIA.title], strict=True)]
    return [
        Claim("the predictors beat random ones in total slowdown, min", "much", totals, less),
        Claim("both random: slowdowns as max-min's", "statistically similar",
              f"{total[SIA_RANDOM.title]:,.0f} against {total[MMFS.title]:,.0f} min", similar),
        Claim("perfect forecasts end all slowdowns", "0", f"{exact:.2f} % slowed at most", exact == 0.0),
        Claim("... and raise speedups slightly, times by queues", "slightly", ", ".join(f"{one:.2f}" for one in more),
              min(more) >= 1.0),
        Claim("sia_vc over sia with exact forecasts shrinks with queues", "yes", f"{gap_text} times",
              gaps[-1] < gaps[0]),
    ]  # fmt: skip
