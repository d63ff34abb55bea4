"""SIA, Figure 14 (section 6.2): numbers of queues that share, and the tails of speedups."""

from pathlib import Path

from papers.page import result, write_page
from papers.sia.bench import HIVED, MMFS, SIA, SIA_PAPER, THEMIS, Bench
from papers.sia.measures import GMEAN, P90, P99, SLOWED, TOTAL, WORST, mean, median, times_less, times_text
from papers.sia.queues import growing, over_queues
from papers.sia.workloads import PoolDraw

DRAWS = tuple(PoolDraw(queues) for queues in (2, 4, 6, 8))
OTHERS = (MMFS, HIVED, THEMIS)
ROWS = (SIA, SIA_PAPER, *OTHERS)
PANELS, COLUMNS = (GMEAN, P90, TOTAL, WORST), (GMEAN, P90, P99, SLOWED, TOTAL, WORST)


def figure14(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    title = "Figure 14: numbers of queues that share"
    done, shown = over_queues(bench, out, title, DRAWS, ROWS, PANELS, COLUMNS)
    cases = [one.name for one in DRAWS]
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    rivals = [max(median(GMEAN, done, case, row.title) for row in OTHERS) for case in cases]
    better = [case for case, one, other in zip(cases, ours, rivals, strict=True) if one >= other]
    less = [times_less(*(mean(TOTAL, done, case, row.title) for row in (SIA, MMFS))) for case in cases]
    found = {
        "growing": growing(done, DRAWS),
        "above": result(f"with {', '.join(better) or 'no number of'} queues", cases[-1] in better),
        "less": result("; ".join(map(times_text, less)), min(less) >= 10.0),
    }
    write_page(__file__, out, **shown, **found)
