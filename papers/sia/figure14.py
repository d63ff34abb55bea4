"""SIA, Figure 14 (section 6.2): numbers of queues that share, and the tails of speedups."""

from collections.abc import Sequence
from pathlib import Path

from papers.sheets import Claim
from papers.sia.bench import Bench
from papers.sia.measures import (
    GMEAN,
    P90,
    P99,
    SLOWED,
    TOTAL,
    WORST,
    mean,
    median,
    times_less,
    times_text,
)
from papers.sia.pages import write_queues_page
from papers.sia.units import HIVED, MMFS, SIA, SIA_PAPER, THEMIS, Done
from papers.sia.workloads import PoolDraw, names_of

QUEUES = (2, 4, 6, 8)
DRAWS = tuple(PoolDraw(queues) for queues in QUEUES)
ROWS = (SIA, SIA_PAPER, MMFS, HIVED, THEMIS)
PANELS = (GMEAN, P90, TOTAL, WORST)
ABOUT = (
    "Draws as in Figure 13, {draws} for each number of queues (eight are all pools of Philly with at least 100 "
    "jobs in the two weeks, so that only loads differ there). Boxes reach over the middle half and "
    "three quarters of the draws."
)


def figure14(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    write_queues_page(
        bench,
        out,
        "figure14",
        "Figure 14: numbers of queues that share",
        ABOUT,
        says="Speedups and slowdowns by number of queues",
        draws=DRAWS,
        rows=ROWS,
        panels=PANELS,
        columns=(GMEAN, P90, P99, SLOWED, TOTAL, WORST),
        found=_claims,
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    cases = names_of(DRAWS)
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    rivals = [max(median(GMEAN, done, case, row.title) for row in ROWS[2:]) for case in cases]
    better = [case for case, one, other in zip(cases, ours, rivals, strict=True) if one >= other]
    less = [times_less(*(mean(TOTAL, done, case, row.title) for row in (SIA, MMFS))) for case in cases]
    times = "; ".join(map(times_text, less))
    speeds = ", ".join(f"{one:.2f}" for one in ours)
    return [
        Claim("more queues bring larger speedups", "yes", f"{speeds} by queues", ours == sorted(ours)),
        Claim("SIA's speedups lie above those of the others with more queues", "yes",
              f"with {', '.join(better) or 'no number of'} queues", cases[-1] in better),
        Claim("total slowdown below max-min's, times, by queues", "orders of magnitude", times, min(less) >= 10.0),
    ]  # fmt: skip
