"""SIA, Figure 16 (section 6.4): jobs that need their GPUs on one server of eight."""

from collections.abc import Sequence
from pathlib import Path

from jobcast.pipelines.reproduce.sheets import Claim
from jobcast.pipelines.reproduce.sia.bench import Bench
from jobcast.pipelines.reproduce.sia.figure14 import draws_of
from jobcast.pipelines.reproduce.sia.measures import (
    GMEAN,
    P90,
    SLOWED,
    TOTAL,
    WORST,
    draws_text,
    mean,
    median,
    table,
    times_less,
    times_text,
    write_runs,
)
from jobcast.pipelines.reproduce.sia.pages import write_draws_page
from jobcast.pipelines.reproduce.sia.plotting import boxes
from jobcast.pipelines.reproduce.sia.units import HIVED, SIA, SIA_EXACT, Done
from jobcast.pipelines.reproduce.sia.workloads import PoolDraw

QUEUES = (2, 4, 8)
ROWS = (SIA, SIA_EXACT, HIVED)
PANELS = (GMEAN, P90, TOTAL, WORST)
ABOUT = (
    "Draws as in Figure 14, {draws} for each number of queues, of jobs of 1, 2, 4 GPUs or whole servers of eight; "
    "quotas are rounded up to a cell of 1, 2, 4 or whole servers. FCFS keeps each pool to cells of its own. hived "
    "never preempts."
)


def figure16(bench: Bench, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    name, title = "figure16", "Figure 16: locality"
    tight = bench.run([PoolDraw(queues, locality=True) for queues in QUEUES], ROWS, draws_of(bench))
    write_runs(out, name, tight)
    boxes(out, name, title, tight, PANELS, "queues")
    shown = table(tight, "queues", (GMEAN, P90, SLOWED, TOTAL, WORST))
    about = ABOUT.format(draws=draws_text(draws_of(bench)))
    write_draws_page(
        out,
        name,
        title,
        about,
        says="Speedups and slowdowns with locality by number of queues",
        shown=shown,
        found=_claims(tight),
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    cases = [str(queues) for queues in QUEUES]
    ours = [median(GMEAN, done, case, SIA.title) for case in cases]
    less = times_less(*(sum(mean(TOTAL, done, case, row.title) for case in cases) for row in (SIA, HIVED)))
    slowed = max(float(SLOWED.of(done, case, SIA_EXACT.title).max()) for case in cases)
    speeds = ", ".join(f"{one:.2f}" for one in ours)
    return [
        Claim("sizable speedups, larger with more queues", "yes", f"{speeds} by queues", ours == sorted(ours)),
        Claim("far less slowdown in all than HiveD*, times", "significantly", times_text(less), less > 1.0),
        Claim("exact forecasts slow nobody", "-", f"{slowed:.2f} % at most", slowed == 0.0),
    ]
