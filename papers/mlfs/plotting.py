"""How MLFS's figures show runs: a panel or a table a measure over x, and distributions of completion times."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from papers.mlfs.rows import ROWS
from papers.plotting import alike, panels
from papers.results import Done, Means, Measure, Page, by_policy, names_of, of_case

TITLES = tuple(row.title for row in ROWS)
COLUMNS = 3
TALL_PANEL = 2.6
FIRST_MIN = 1.0


def tables_over_x(found: Means, measures: Sequence[Measure]) -> list[str]:
    """Means over draws: a heading and a table a case."""
    cases = names_of(found)[0]
    return [part for case in cases for part in (f"## {case}", by_policy(of_case(found, case), measures))]


def over_x(page: Page, title: str, found: Means, measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: a panel a measure, a line a policy over the cases."""
    cases, names = names_of(found)
    style = alike(TITLES, names)

    def panel(axes: Axes, measure: Measure) -> None:
        for label in names:
            values = [found[case, label][measure.key] * measure.scale for case in cases]
            axes.plot(range(len(cases)), values, marker="o", markersize=3, label=label, **style[label].line)
        axes.set_xticks(range(len(cases)), [case.removeprefix("x = ") for case in cases])

    columns = min(COLUMNS, len(measures))
    height = max(1.3, -(-len(measures) // columns)) * TALL_PANEL
    panels(page, title, measures, panel, height=height, columns=columns)


def jct_cdfs(page: Page, title: str, done: Sequence[Done], cases: Sequence[str]) -> None:
    """Draw `NAME.svg`: distributions of completion times, a panel a case; draws put together."""
    names = names_of(done)[1]
    style = alike(TITLES, names)

    def panel(axes: Axes, case: str) -> None:
        for label in names:
            pooled = np.sort(np.concatenate([one.jct_s for one in done if (one.case, one.name) == (case, label)]))
            axes.plot(pooled / 60.0, np.linspace(0.0, 1.0, len(pooled)), label=label, **style[label].line)
        axes.set(xscale="log", xlabel="JCT, min", ylabel="share of jobs", ylim=(0, 1.02), xlim=(FIRST_MIN, None))
        axes.xaxis.set_major_formatter("{x:g}")

    panels(page, title, cases, panel, height=1.4 * TALL_PANEL, columns=len(cases))
