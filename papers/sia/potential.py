"""What Figures 5 and 24 share: all schedulers with exact knowledge on synthetic workloads, the MILP among them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers.sheets import Claim, claims, grid, number, picture, write_page
from papers.sia.bench import Bench
from papers.sia.measures import (
    GMEAN,
    RATIO,
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
from papers.sia.plotting import ranges
from papers.sia.units import FCFS, GSSF, MMFS, SIA_EXACT, SIA_VC, SSF, Done, Row
from papers.sia.workloads import Synthetic

GRID_S = 600.0
"""Of submissions, durations and the MILP's starts: every policy runs on the same rounded draws."""
MILP = Row("milp", "milp", settings=(("grid_s", f"{GRID_S:g}"), ("exact", "true"), ("time_limit_s", "30")))
ROWS = (FCFS, MILP, SIA_VC, SIA_EXACT, GSSF, MMFS, SSF)
MOST_SEEDS = 3
"""As in the paper."""
FREE = (MILP, SIA_VC, SIA_EXACT)
"""Those that must slow nobody."""
PANELS = (RATIO, WORST, TOTAL)
"""The paper's three: speedup, the worst slowdown, all slowdowns together."""
GAP = Measure("milp_gap", "gap of the MILP")
ABOUT = (
    "Four queues of 8 GPUs and three days of bursts by appendix A.1, unless the workload's name says otherwise; "
    "{draws} of each. Submissions and durations are rounded up to {grid:g} minutes, so that the MILP's schedule is "
    "executed as it was planned and every policy sees the same jobs. ssf and gssf are told exact durations. The bars "
    "of the plot reach from the least to the most over draws, the dots are medians; the table has the same."
)


def write_potential(bench: Bench, out: Path, name: str, title: str, variants: Sequence[str]) -> None:
    """Run the schedulers on variants of the workload; write the page, table and plot of a figure into a folder."""
    workloads = [Synthetic(variant, GRID_S) for variant in variants]
    seeds = min(bench.seeds, MOST_SEEDS)
    done = bench.run(workloads, ROWS, seeds)
    write_runs(out, name, done)
    ranges(out, name, title, done, PANELS)
    cases = [one.name for one in workloads]
    parts = [
        f"# {title}",
        ABOUT.format(draws=draws_text(seeds), grid=GRID_S / 60.0),
        picture(name, "Speedup, worst and total slowdown by workload"),
        "## By workload",
        table(done, "workload"),
        "## The MILP",
        "How far its schedules may be from the best, by HiGHS' own bound, and its waits against those of sia_vc.",
        _milp(done, cases),
        "## Against the paper",
        claims(_claims(done, cases)),
    ]
    write_page(out, name, parts)


def _milp(done: Sequence[Done], cases: Sequence[str]) -> str:
    rows = []
    for case in cases:
        gaps, solve_s = GAP.of(done, case, MILP.title), Measure("milp_solve_s", "").of(done, case, MILP.title)
        ours, theirs = (Measure("mean_wait_s", "").of(done, case, row.title) for row in (MILP, SIA_VC))
        waits = f"{ours.mean() / 60:.1f}", f"{theirs.mean() / 60:.1f}"
        rows.append((case, number(100 * float(np.median(gaps)), 1), number(100 * float(gaps.max()), 1),
                     number(float(solve_s.mean()), 0), *waits))  # fmt: skip
    return grid(("workload", "gap %, median", "most", "s to solve", "mean wait, min", "of sia_vc"), rows)


def _claims(done: Sequence[Done], cases: Sequence[str]) -> list[Claim]:
    """What section 4.1 says beside what came out."""
    slowed = max(float(SLOWED.of(done, case, row.title).max()) for case in cases for row in FREE)
    best = [_best(done, case) for case in cases]
    oracle = sum(one == MILP.title for one in best)
    hurt = {row.title: max(mean(SLOWED, done, case, row.title) for case in cases) for row in (GSSF, MMFS, SSF)}
    hurt_text = "; ".join(f"{name} {pct:.1f} %" for name, pct in hurt.items())
    order = [_by(RATIO, done, case, GSSF) > _by(RATIO, done, case, SSF) for case in cases]
    ssf = [_by(RATIO, done, case, SSF) > _by(RATIO, done, case, MMFS) for case in cases]
    geometric = "; ".join(f"{row.title} {_by(GMEAN, done, cases[0], row):.1f}" for row in ROWS[1:])
    found = [
        Claim("the oracle slows nobody", "0", f"{slowed:.1f} % at most of {_names(FREE)}", slowed == 0.0),
        Claim("the oracle has the best JCT", "everywhere", f"{oracle} of {len(cases)} workloads", oracle == len(cases)),
        Claim("gssf has better JCT than ssf", "yes", f"{sum(order)} of {len(cases)} workloads", all(order)),
        Claim("mmfs has worse JCT than ssf", "yes", f"{sum(ssf)} of {len(cases)} workloads", all(ssf)),
        Claim("the others slow jobs down", "yes", f"{hurt_text} at most", all(pct > 0 for pct in hurt.values())),
        Claim("speedups, geometric means, base workload", "-", geometric),
    ]
    for variant, said in (("higher load", "higher load"), ("more queues", "more queues")):
        if variant in cases and "base" in cases:
            base, here = _by(RATIO, done, "base", MILP), _by(RATIO, done, variant, MILP)
            found.append(Claim(f"{said}: sharing is worth more", "yes", f"{here:.2f} against {base:.2f}", here > base))
    return found


def _by(measure: Measure, done: Sequence[Done], case: str, row: Row) -> float:
    return median(measure, done, case, row.title)


def _best(done: Sequence[Done], case: str) -> str:
    return max((row.title for row in ROWS), key=lambda name: median(RATIO, done, case, name))


def _names(rows: Sequence[Row]) -> str:
    return "; ".join(row.title for row in rows)
