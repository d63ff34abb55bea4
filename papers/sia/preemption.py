"""SIA, section 5.5: what it is worth that a share of the jobs may be stopped, and what resuming may cost."""

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
    Measure,
    draws_text,
    mean,
    median,
    table,
    write_runs,
)
from papers.sia.pages import draws_of, write_draws_page
from papers.sia.plotting import over_shares
from papers.sia.units import SIA, Done, Row
from papers.sia.workloads import PoolDraw

QUEUES = 4
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
COSTS_S = (0, 900)
STOPS = Measure("preemptions", "times stopped", 0)
ABOUT = (
    "Figure 13's draws of four queues, {draws}. A share of the jobs, drawn by their ids, may be stopped and loses the "
    "given seconds when it goes on; sia_preempt keeps the fewer GPUs free the more of them it could have back. The "
    "first row is SIA without preemption. All go by registered predictors; speedups are against FCFS."
)


def rows_of(cost_s: int) -> list[Row]:
    """A row a share, at one cost of resuming."""
    return [
        Row(f"{share:g}, {cost_s} s", "sia_preempt", "registry",
            (("preemptible_share", f"{share:g}"), ("resume_s", f"{cost_s}")))
        for share in SHARES
    ]  # fmt: skip


def preemption(bench: Bench, out: Path) -> None:
    """Write the page, table and plot into a folder."""
    name, title = "preemption", "Partial preemption: speedup and slowdown by the share of jobs that may be stopped"
    rows = [SIA, *(row for cost_s in COSTS_S for row in rows_of(cost_s))]
    done = bench.run([PoolDraw(QUEUES)], rows, draws_of(bench))
    write_runs(out, name, done)
    curves = {f"{cost_s} s to go on": [row.title for row in rows_of(cost_s)] for cost_s in COSTS_S}
    over_shares(out, name, title, done, (GMEAN, SLOWED, TOTAL), SHARES, curves)
    shown = table(done, "queues", (GMEAN, P90, SLOWED, TOTAL, WORST, STOPS))
    about = ABOUT.format(draws=draws_text(draws_of(bench)))
    write_draws_page(
        out,
        name,
        title,
        about,
        says="Speedup and slowdown by the share of jobs that may be stopped",
        shown=shown,
        found=_claims(done),
    )


def _claims(done: Sequence[Done]) -> list[Claim]:
    case = str(QUEUES)
    cheap = [median(GMEAN, done, case, row.title) for row in rows_of(COSTS_S[0])]
    dear = [median(GMEAN, done, case, row.title) for row in rows_of(COSTS_S[-1])]
    base = median(GMEAN, done, case, SIA.title)
    less = mean(TOTAL, done, case, rows_of(COSTS_S[0])[-1].title), mean(TOTAL, done, case, SIA.title)
    said = ", ".join(f"{one:.2f}" for one in cheap)
    return [
        Claim("the more jobs may be stopped, the more is lent: speedups by share", "more aggressively",
              f"{said}; SIA {base:.2f}", cheap == sorted(cheap)),
        Claim("the more so where resuming costs little", "small costs", f"{cheap[-1]:.2f} at {COSTS_S[0]} s, "
              f"{dear[-1]:.2f} at {COSTS_S[-1]} s, all jobs", cheap[-1] >= dear[-1]),
        Claim("total slowdown with all jobs stoppable at no cost, min", "-", f"{less[0]:,.0f}; SIA {less[1]:,.0f}"),
    ]  # fmt: skip
