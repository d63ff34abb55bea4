"""SIA, Figures 5, 24, 15b (sections 4.1, 6.3, appendix C): schedulers with exact knowledge on synthetic workloads."""

from collections.abc import Sequence

import numpy as np

from jobcast.traces.generators.sia import VARIANTS
from papers.results import Claim, Done, Measure, Page, claims, draws_text, grid, number, result
from papers.sia import measures as m
from papers.sia.bench import FCFS, GSSF, MMFS, SIA_EXACT, SIA_VC, SSF, Bench, Row, Synthetic, milp
from papers.sia.measures import mean, median, over_draws, ranges, table

GRID_S = 600.0
"""Of submissions, durations and the MILP's starts: every policy runs on the same rounded draws."""
MILP = milp(GRID_S, 30)
ROWS = (FCFS, MILP, SIA_VC, SIA_EXACT, GSSF, MMFS, SSF)
MOST_SEEDS = 3
"""As in the paper."""
FREE = (MILP, SIA_VC, SIA_EXACT)
"""Those that must slow nobody."""
PANELS = (m.RATIO, m.WORST, m.TOTAL)
"""The paper's three: speedup, the worst slowdown, all slowdowns together."""
COLUMNS = (m.RATIO, m.GMEAN, m.MEAN, m.P5, m.P95, m.SLOWED, m.TOTAL, m.WORST)
SMALL_GRID_S = 300.0
SMALL_MILP = milp(SMALL_GRID_S, 20)
SMALL = Synthetic("base", SMALL_GRID_S, days=1.0)
SMALL_DRAWS = 3
"""Times `bench.seeds`: the paper speaks of tens of smaller traces."""
SIMILAR = 0.1


def figure5(bench: Bench, page: Page) -> None:
    """The potential on three workloads: the page, table and plot, into a folder."""
    variants = ("base", "more_queues", "higher_load")
    write_potential(bench, page, "Figure 5: the potential of anticipation", variants)


def figure24(bench: Bench, page: Page) -> None:
    """The same on the base workload and eight variants."""
    write_potential(bench, page, "Figure 24: the potential on nine workloads", tuple(VARIANTS))


def write_potential(bench: Bench, page: Page, title: str, variants: Sequence[str]) -> None:
    """Run the schedulers on variants of the workload; write the page, table and plot of a figure into a folder."""
    workloads = [Synthetic(variant, GRID_S) for variant in variants]
    seeds = min(bench.seeds, MOST_SEEDS)
    done, cases = bench.run(workloads, ROWS, range(seeds)), [one.name for one in workloads]
    page.runs(done)
    ranges(page, title, done, PANELS)
    shown = {"draws": draws_text(seeds), "grid": GRID_S / 60.0, "table": table(done, "workload", COLUMNS)}
    shown |= {"milp": _milp(done, cases), **_found(done, cases), "sharing": claims(_sharing(done, cases))}
    page.write(title=title, **shown)


def _milp(done: Sequence[Done], cases: Sequence[str]) -> str:
    rows = []
    for case in cases:
        gaps, solve_s = (measure.of(done, case, MILP.title) for measure in (m.GAP, m.SOLVE))
        waits = (f"{mean(m.WAIT, done, case, row.title) / 60:.1f}" for row in (MILP, SIA_VC))
        gap = number(100 * float(np.median(gaps)), 1), number(100 * float(gaps.max()), 1)
        rows.append((case, *gap, number(float(solve_s.mean()), 0), *waits))
    return grid(("workload", "gap %, median", "most", "s to solve", "mean wait, min", "of sia_vc"), rows)


def _found(done: Sequence[Done], cases: Sequence[str]) -> dict[str, str]:
    """What section 4.1 says beside what came out."""

    def everywhere(holds: Sequence[bool]) -> str:
        return result(f"{sum(holds)} of {len(cases)} workloads", all(holds))

    slowed = m.most_slowed(done, cases, FREE)
    hurt = {row.title: max(mean(m.SLOWED, done, case, row.title) for case in cases) for row in (GSSF, MMFS, SSF)}
    hurt_text = "; ".join(f"{name} {pct:.1f} %" for name, pct in hurt.items())
    geometric = "; ".join(f"{row.title} {_by(m.GMEAN, done, cases[0], row):.1f}" for row in ROWS[1:])
    jct = [{row.title: _by(m.RATIO, done, case, row) for row in ROWS} for case in cases]
    return {
        "free": result(f"{slowed:.1f} % at most of {'; '.join(row.title for row in FREE)}", slowed == 0.0),
        "best": everywhere([max(one, key=one.__getitem__) == MILP.title for one in jct]),
        "gssf": everywhere([one[GSSF.title] > one[SSF.title] for one in jct]),
        "mmfs": everywhere([one[SSF.title] > one[MMFS.title] for one in jct]),
        "hurt": result(f"{hurt_text} at most", all(pct > 0 for pct in hurt.values())),
        "geometric": result(geometric),
    }


def _sharing(done: Sequence[Done], cases: Sequence[str]) -> list[Claim]:
    """Of the workloads that were run: whether sharing is worth more than on the base workload."""
    found = []
    for variant in ("higher load", "more queues"):
        if variant in cases and "base" in cases:
            base, here = _by(m.RATIO, done, "base", MILP), _by(m.RATIO, done, variant, MILP)
            said = f"{variant}: sharing is worth more"
            found.append(Claim(said, "yes", f"{here:.2f} against {base:.2f}", here > base))
    return found


def _by(measure: Measure, done: Sequence[Done], case: str, row: Row) -> float:
    return median(measure, done, case, row.title)


def figure15b(bench: Bench, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    title, count = "Figure 15b: the virtual clock against the MILP", SMALL_DRAWS * bench.seeds
    done = page.runs(bench.run([SMALL], (SMALL_MILP, SIA_VC), range(count)))
    over_draws(page, title, done, (m.GMEAN, m.RATIO, m.WAIT, m.CPU))
    (ours, fast), (best, slow) = (
        [median(measure, done, SMALL.name, row.title) for measure in (m.GMEAN, m.CPU)] for row in (SIA_VC, SMALL_MILP)
    )
    page.write(
        title=title,
        draws=draws_text(count),
        grid=SMALL_GRID_S,
        gap=100.0 * float(m.GAP.of(done, SMALL.name, SMALL_MILP.title).max()),
        table=table(done, "workload", (m.GMEAN, m.RATIO, m.SLOWED, m.WAIT)),
        alike=result(f"{ours:.2f} against {best:.2f}, medians", abs(ours / best - 1.0) <= SIMILAR),
        cpu=result(f"{slow / fast:,.0f} times", slow > 10 * fast),
    )
