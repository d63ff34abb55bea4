"""SIA, Figure 16 (section 6.4): jobs that need their GPUs on one server of eight."""

from pathlib import Path

from papers.page import result, write_page
from papers.sia.bench import HIVED, SIA, SIA_EXACT, SIA_PAPER, Bench
from papers.sia.measures import GMEAN, P90, SLOWED, TOTAL, WORST, mean, times_less, times_text
from papers.sia.queues import growing, over_queues
from papers.sia.workloads import PoolDraw

DRAWS = tuple(PoolDraw(queues, locality=True) for queues in (2, 4, 8))
ROWS = (SIA, SIA_PAPER, SIA_EXACT, HIVED)
PANELS, COLUMNS = (GMEAN, P90, TOTAL, WORST), (GMEAN, P90, SLOWED, TOTAL, WORST)


def figure16(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    done, shown = over_queues(bench, out, "Figure 16: locality", DRAWS, ROWS, PANELS, COLUMNS)
    cases = [one.name for one in DRAWS]
    less = times_less(*(sum(mean(TOTAL, done, case, row.title) for case in cases) for row in (SIA, HIVED)))
    slowed = max(float(SLOWED.of(done, case, SIA_EXACT.title).max()) for case in cases)
    found = {
        "growing": growing(done, DRAWS),
        "less": result(times_text(less), less > 1.0),
        "exact": result(f"{slowed:.2f} % at most", slowed == 0.0),
    }
    write_page(__file__, out, **shown, **found)
