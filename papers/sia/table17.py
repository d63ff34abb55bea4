"""SIA, Table 17 and Figure 18 (section 6.5): all pools of a trace, smaller pools, and without the largest donors."""

from collections.abc import Sequence
from pathlib import Path

from papers.sheets import Claim, claims, picture, write_page
from papers.sia.bench import Bench
from papers.sia.measures import (
    MEAN,
    P5,
    P95,
    RATIO,
    SLOWED,
    TOTAL,
    WORST,
    Measure,
    median,
    table,
    write_runs,
)
from papers.sia.plotting import lines
from papers.sia.units import MMFS, SIA, SIA_EXACT, SIA_PAPER, Done
from papers.sia.workloads import WholePhilly

SCALES = (0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)
DONORS = 2
ALL, WITHOUT = WholePhilly(), WholePhilly(without_donors=DONORS)
ROWS = (MMFS, SIA, SIA_PAPER, SIA_EXACT)
COLUMNS = (MEAN, P95, P5, SLOWED, TOTAL, WORST)
"""Those of Table 17."""
PRINTED = {
    (ALL.name, MMFS.title): "3.94, 357.6, 1.0, 1.76, 5027, 163",
    (ALL.name, SIA.title): "3.71, 390.7, 1.0, 0, 0, 0",
    (WITHOUT.name, MMFS.title): "2.65, 298.6, 0.15, 5.96, 358871, 643",
    (WITHOUT.name, SIA.title): "3.25, 282.0, 1.0, 0, 0, 0",
}
ABOUT = (
    "Helios is not at hand; Philly's pools with at least 100 jobs from 2017-11-06 to 2017-11-26 stand in for it, with "
    "quotas of load 0.8 (their sizes are not on record) and predictors trained on the five weeks before; SIA takes "
    "predicted durations here, while the paper had none to learn from on Helios. At this load far more jobs wait than "
    "on Helios, where over 80 % saw no queue."
)


def table17(bench: Bench, out: Path) -> None:
    """Write the table's and the figure's page and plot into a folder."""
    name, title = "table17", "Table 17 and Figure 18: all pools"
    done = bench.run([ALL, WITHOUT], ROWS, 1)
    scaled = bench.run([WholePhilly(scale) for scale in SCALES], ROWS, 1)
    write_runs(out, name, [*scaled, *(one for one in done if one.case == WITHOUT.name)])
    lines(out, name, "Figure 18: pools scaled", scaled, (RATIO, SLOWED, TOTAL), "scale of all pools")
    parts = [
        f"# {title}",
        ABOUT,
        "## Table 17: quotas of load 0.8, and without the two pools that give most",
        table(done, "pools", COLUMNS),
        "## Figure 18: pools scaled",
        picture(name, "Speedup and slowdown by size of the pools"),
        table(scaled, "scale", (RATIO, *COLUMNS)),
        "## Against the paper",
        claims(_claims(done, scaled)),
    ]
    write_page(out, name, parts)


def _claims(done: Sequence[Done], scaled: Sequence[Done]) -> list[Claim]:
    found = [
        Claim(f"{name}, pools {case}: {'; '.join(one.title for one in COLUMNS)}", printed,
              ", ".join(f"{median(one, done, case, name):.{one.digits}f}" for one in COLUMNS))
        for (case, name), printed in PRINTED.items()
    ]  # fmt: skip
    slowed = _both(SLOWED, done, WITHOUT.name)
    less = _both(TOTAL, done, ALL.name)
    small, full = (_both(RATIO, scaled, f"{scale:g}")[0] for scale in (SCALES[0], 1.0))
    return [
        *found,
        Claim("SIA slows far fewer jobs than max-min without the donors", "0 against 5.96 %",
              f"{slowed[0]:.2f} against {slowed[1]:.2f} %", slowed[0] < slowed[1]),
        Claim("total slowdown of SIA below max-min's", "0 against 5027 min",
              f"{less[0]:,.0f} against {less[1]:,.0f} min", less[0] < less[1]),
        Claim("smaller pools gain more in mean JCT", "yes", f"{small:.2f} at 0.8, {full:.2f} at 1", small > full),
    ]  # fmt: skip


def _both(measure: Measure, done: Sequence[Done], case: str) -> tuple[float, float]:
    return median(measure, done, case, SIA.title), median(measure, done, case, MMFS.title)
