"""SIA, Table 17 and Figure 18 (section 6.5): all pools of a trace, smaller pools, and without the largest donors."""

from functools import partial

from papers.results import Claim, Done, Measure, Page, claims, result
from papers.sia.bench import MMFS, SIA, SIA_EXACT, SIA_PAPER, Bench, WholePhilly
from papers.sia.measures import MEAN, P5, P95, RATIO, SLOWED, TOTAL, WORST, lines, median, table

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


def table17(bench: Bench, page: Page) -> None:
    """Write the table's and the figure's page and plot into a folder."""
    # Nothing of it is drawn: one seed is all there is.
    done = bench.run([ALL, WITHOUT], ROWS, range(1))
    scaled = bench.run([WholePhilly(scale) for scale in SCALES], ROWS, range(1))
    page.runs([*scaled, *(one for one in done if one.case == WITHOUT.name)])
    curves = {row.title: partial(_over_scales, scaled, row.title) for row in ROWS}
    lines(page, "Figure 18: pools scaled", (RATIO, SLOWED, TOTAL), "scale of all pools", SCALES, curves)
    slowed, theirs_slowed = _both(SLOWED, done, WITHOUT.name)
    total, theirs_total = _both(TOTAL, done, ALL.name)
    small, full = (_both(RATIO, scaled, f"{scale:g}")[0] for scale in (SCALES[0], 1.0))
    page.write(
        table=table(done, "pools", COLUMNS),
        scaled=table(scaled, "scale", (RATIO, *COLUMNS)),
        printed=claims(_printed(done)),
        slowed=result(f"{slowed:.2f} against {theirs_slowed:.2f} %", slowed < theirs_slowed),
        less=result(f"{total:,.0f} against {theirs_total:,.0f} min", total < theirs_total),
        smaller=result(f"{small:.2f} at 0.8, {full:.2f} at 1", small > full),
    )


def _printed(done: list[Done]) -> list[Claim]:
    titles, made = "; ".join(one.title for one in COLUMNS), []
    for (case, name), printed in PRINTED.items():
        here = ", ".join(f"{median(one, done, case, name):.{one.digits}f}" for one in COLUMNS)
        made.append(Claim(f"{name}, pools {case}: {titles}", printed, here))
    return made


def _over_scales(scaled: list[Done], name: str, measure: Measure) -> list[float]:
    return [median(measure, scaled, f"{scale:g}", name) for scale in SCALES]


def _both(measure: Measure, done: list[Done], case: str) -> tuple[float, float]:
    return median(measure, done, case, SIA.title), median(measure, done, case, MMFS.title)
