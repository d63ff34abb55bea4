"""What is measured of runs, what ANDREAS saves against others on the same draws, and the plots of both."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from jobcast.domain.arrays import Floats
from jobcast.pipelines.report.look import plain_ticks, styles
from papers.andreas.bench import OURS
from papers.plotting import panels
from papers.results import HOLDS, HOUR_S, REVERSED, Done, Interval, Measure, Page, grid, interval_of, names_of, number

ENERGY = Measure("energy_eur", "energy, EUR")
TARDINESS = Measure("tardiness_eur", "tardiness, EUR")
TOTAL = Measure("total_eur", "total, EUR")
MAKESPAN = Measure("makespan_s", "makespan, h", scale=1 / HOUR_S)
LATE = Measure("late_pct", "late, %", 1)
CALL = Measure("decision_ms_mean", "a call, ms")
PREEMPTIONS = Measure("preemptions", "preemptions", 0)
MOVES = Measure("migrations", "moves", 0)
SHOWN = (ENERGY, TARDINESS, TOTAL, MAKESPAN, LATE, PREEMPTIONS, MOVES, CALL)
SAVED = (TOTAL, ENERGY, TARDINESS, MAKESPAN)
SINGLE = "one draw, so that there are no intervals"


def savings_pct(measure: Measure, done: Sequence[Done], case: str, other: str, ours: str = OURS) -> Floats:
    """(n_draws,) by how much less ANDREAS takes than another on the same draw, %; NaN where that takes nothing."""
    base, own = (measure.of(done, case, name) for name in (other, ours))
    saved: Floats = np.full(len(base), np.nan)
    np.divide(100.0 * (base - own), base, out=saved, where=base > 0.0)
    # Where neither takes anything nothing is saved, which is a number.
    saved[(base == 0.0) & (own == 0.0)] = 0.0
    return saved


def over(
    measure: Measure, done: Sequence[Done], cases: Sequence[str], others: Sequence[str], ours: str = OURS
) -> Interval:
    """Mean saving over cases and others by draw, and its interval over draws, %."""
    by_draw = [savings_pct(measure, done, case, other, ours) for case in cases for other in others]
    return interval_of(np.mean(by_draw, axis=0))


def holds(saved: Interval) -> bool | None:
    """Whether something is saved: with confidence; open where the interval holds 0; by the mean for a single draw."""
    if np.isnan(saved.low):
        return saved.mean > 0
    return {HOLDS: True, REVERSED: False}.get(saved.verdict)


def of_sums_pct(measure: Measure, done: Sequence[Done], cases: Sequence[str], other: str) -> float:
    """By how much less ANDREAS takes than another over all draws and cases put together, %."""
    base, own = (sum(measure.of(done, case, name).sum() for case in cases) for name in (other, OURS))
    return float(100.0 * (1.0 - own / base)) if base > 0.0 else float("nan")


def savings_tables(done: Sequence[Done], cases: Sequence[str], others: Sequence[str], head: str) -> list[str]:
    """What ANDREAS saves: of the total cost by case, then of each measure over all cases."""
    by_case = [(case, *(over(TOTAL, done, [case], [other]).text() for other in others)) for case in cases]
    every = [(other, *(over(one, done, cases, [other]).text() for one in SAVED)) for other in others]
    every = [(*row, number(of_sums_pct(TOTAL, done, cases, row[0]), 1)) for row in every]
    last = ("all of them", *(over(one, done, cases, others).text() for one in SAVED), "")
    return [
        "Of the total cost, %, against:",
        grid((head, *others), by_case),
        f"Of each, %, over all {head}; the last column is of the sums over all draws:",
        grid(("against", *(one.word for one in SAVED), "total, of the sums"), (*every, last)),
    ]


PANELS = (ENERGY, TOTAL, MAKESPAN, CALL)
"""The paper's four: energy cost, total cost, time of the whole run, and of an optimiser's call."""
TALL_PANEL = 2.7


def over_nodes(page: Page, title: str, done: Sequence[Done]) -> None:
    """Draw `NAME.svg`: means over draws by number of nodes, a line a policy, with their 95 % intervals."""
    cases, names = names_of(done)
    style, nodes = styles(names), [int(case) for case in cases]

    def panel(axes: Axes, measure: Measure) -> None:
        for label in names:
            found = [interval_of(measure.of(done, case, label)) for case in cases]
            axes.plot(nodes, [one.mean for one in found], marker="o", ms=3, label=label, **style[label].line)
            low, high = [one.low for one in found], [one.high for one in found]
            axes.fill_between(nodes, low, high, color=style[label].color, alpha=0.15, linewidth=0)
        axes.set(xlabel="nodes", xticks=nodes)
        if measure is CALL:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)

    # The last is that of calls, on a logarithmic axis.
    panels(page, title, PANELS, panel, height=2 * TALL_PANEL, columns=2, last=lambda axes: plain_ticks(axes.yaxis))


def power(page: Page, title: str, instants_s: Floats, watts: Floats, nodes: Sequence[str]) -> None:
    """Draw `NAME.svg`: watts of nodes over time, a panel a node; arguments as of `power_over_time`."""
    hours = (instants_s - instants_s[0]) / HOUR_S
    style = styles(nodes)

    def panel(axes: Axes, node: str) -> None:
        axes.step(hours, watts[:, nodes.index(node)], where="post", color=style[node].color)
        axes.set_title(f"{node}, W", loc="left")
        axes.set(ylim=(0, 1.08 * watts.max()), xlim=(0, hours[-1]))

    height, last = 0.6 + 1.4 * len(nodes), partial(Axes.set_xlabel, xlabel="hours")
    panels(page, title, nodes, panel, height=height, last=last, legend=False, sharex=True, sharey=True)
