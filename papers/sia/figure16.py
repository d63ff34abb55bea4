"""SIA, Figure 16 (section 6.4): jobs that need their GPUs on one server of eight."""

from collections.abc import Sequence
from pathlib import Path

from papers.sheets import Claim
from papers.sia.bench import Bench
from papers.sia.measures import (
    GMEAN,
    P90,
    SLOWED,
    TOTAL,
    WORST,
    mean,
    median,
    times_less,
    times_text,
)
from papers.sia.pages import write_queues_page
from papers.sia.units import HIVED, SIA, SIA_EXACT, SIA_PAPER, Done
from papers.sia.workloads import PoolDraw, names_of

QUEUES = (2, 4, 8)
DRAWS = tuple(PoolDraw(queues, locality=True) for queues in QUEUES)
ROWS = (SIA, SIA_PAPER, SIA_EXACT, HIVED)
PANELS = (GMEAN, P90, TOTAL, WORST)
ABOUT = (
    "Draws as in Figure 14, {draws} for each number of queues, of jobs of 1, 2, 4 GPUs or whole servers of eight; "
    "quotas are rounded up to a cell of 1, 2, 4 or whole servers. FCFS keeps each pool to cells of its own. hived "
    "never preempts."
)


def figure16(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_queues_page(
        bench,
        out,
        "figure16",
        "Figure 16: locality",
        ABOUT,
        says="Speedups and slowdowns with locality by number of queues",
        draws=DRAWS,
        rows=ROWS,
        panels=PANELS,
        columns=(GMEAN, P90, SLOWED, TOTAL, WORST),
        found=_claims,
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    cases = names_of(DRAWS)
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    less = times_less(*(sum(mean(TOTAL, done, case, row.title) for case in cases) for row in (SIA, HIVED)))
    slowed = max(float(SLOWED.of(done, case, SIA_EXACT.title).max()) for case in cases)
    speeds = ", ".join(f"{one:.2f}" for one in ours)
    return [
        Claim("sizable speedups, larger with more queues", "yes", f"{speeds} by queues", ours == sorted(ours)),
        Claim("far less slowdown in all than HiveD*, times", "significantly", times_text(less), less > 1.0),
        Claim("exact forecasts slow nobody", "-", f"{slowed:.2f} % at most", slowed == 0.0),
    ]
