"""Plots of ANDREAS's figures: four panels over nodes, the Gantt chart, and power over time."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from jobcast.pipelines.report.plots import plain_ticks, styles
from papers.andreas.measures import CALL, ENERGY, MAKESPAN, TOTAL
from papers.plotting import panels
from papers.results import HOUR_S, Done, Floats, Measure, Page, interval_of, names_of

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
        axes.set_title(measure.title, loc="left")
        axes.set(xlabel="nodes", xticks=nodes)
        if measure is CALL:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)

    def last(axes: Axes) -> None:
        plain_ticks(axes.yaxis)

    panels(page, title, PANELS, panel, height=2 * TALL_PANEL, columns=2, last=last)


def power(page: Page, title: str, instants_s: Floats, watts: Floats, nodes: Sequence[str]) -> None:
    """Draw `NAME.svg`: watts of nodes over time, a panel a node; arguments as of `power_over_time`."""
    hours = (instants_s - instants_s[0]) / HOUR_S
    style = styles(nodes)

    def panel(axes: Axes, node: str) -> None:
        axes.step(hours, watts[:, nodes.index(node)], where="post", color=style[node].color)
        axes.set_title(f"{node}, W", loc="left")
        axes.set(ylim=(0, 1.08 * watts.max()), xlim=(0, hours[-1]))

    def last(axes: Axes) -> None:
        axes.set_xlabel("hours")

    height = 0.6 + 1.4 * len(nodes)
    panels(page, title, nodes, panel, height=height, last=last, legend=False, sharex=True, sharey=True)
