"""Plots of ANDREAS's figures: four panels over nodes, the Gantt chart, and power over time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import WIDE, plain_ticks, styles
from jobcast.simulator.log import Spans
from papers.andreas.measures import CALL, ENERGY, MAKESPAN, TOTAL
from papers.bench import Done
from papers.measures import Floats, Measure, interval_of
from papers.page import HOUR_S
from papers.plotting import hatch, panels, save
from papers.runs import names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (ENERGY, TOTAL, MAKESPAN, CALL)
"""The paper's four: energy cost, total cost, time of the whole run, and of an optimiser's call."""
TALL_PANEL = 2.7
LANE = 0.42
"""Height of a GPU's lane, inches."""
LABELLED = 0.025
"""Share of the chart's width from which on a bar holds its job's name."""


def over_nodes(out: Path, name: str, title: str, done: Sequence[Done]) -> None:
    """Draw `NAME.svg`: means over draws by number of nodes, a line a policy, with their 95 % intervals."""
    cases, names = names_of(done)
    style, nodes = styles(names), [int(case) for case in cases]

    def panel(axes: "Axes", measure: Measure) -> None:
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

    def last(axes: "Axes") -> None:
        plain_ticks(axes.yaxis)

    panels(out, name, title, PANELS, panel, height=2 * TALL_PANEL, columns=2, last=last)


def lanes_of(spans: Spans, gpus: Sequence[int]) -> list[tuple[int, int, int]]:
    """(span, node, lane) of every GPU that a span holds: the first lanes of its node that are free.

    Parameters
    ----------
    gpus : (n_nodes,) of the nodes
    """
    free_s = [np.full(count, -np.inf) for count in gpus]
    found = []
    for at in np.lexsort((spans.job, spans.from_s)).tolist():
        node = int(spans.node[at])
        lanes = np.flatnonzero(free_s[node] <= spans.from_s[at])[: int(spans.gpus[at])]
        free_s[node][lanes] = spans.until_s[at]
        found += [(at, node, int(lane)) for lane in lanes]
    return found


def gantt(out: Path, name: str, title: str, spans: Spans, jobs: Sequence[str], nodes: Mapping[str, int]) -> None:
    """Draw `NAME.svg`: a lane a GPU, bars of the jobs that hold it.

    Parameters
    ----------
    jobs : (n_jobs,) their names
    nodes : GPUs by node, in order
    """
    gpus = list(nodes.values())
    first = np.concatenate([[0], np.cumsum(gpus)])
    labels = [f"{node}, GPU {at + 1}" if count > 1 else node for node, count in nodes.items() for at in range(count)]
    style, begin_s = styles(jobs), float(spans.from_s.min())
    span_h = (float(spans.until_s.max()) - begin_s) / HOUR_S

    def paint(figure: "Figure") -> None:
        axes: Axes = figure.subplots()
        for at, node, lane in lanes_of(spans, gpus):
            job, y = jobs[spans.job[at]], int(first[node]) + lane
            left, wide = (spans.from_s[at] - begin_s) / HOUR_S, (spans.until_s - spans.from_s)[at] / HOUR_S
            look, mark = style[job], hatch(style[job].dashes)
            axes.barh(y, wide, 0.8, left, color=look.color, hatch=mark, edgecolor="white", linewidth=0.8)
            # A name is wider than a short bar.
            if wide > LABELLED * span_h:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
                axes.text(left + wide / 2, y, job, ha="center", va="center", fontsize=8, bbox=box)
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlabel="hours", xlim=(0, None))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)

    save(out, name, title, paint, (WIDE[0], 1.2 + LANE * len(labels)))


def power(out: Path, name: str, title: str, instants_s: Floats, watts: Floats, nodes: Sequence[str]) -> None:
    """Draw `NAME.svg`: watts of nodes over time, a panel a node; arguments as of `power_over_time`."""
    hours = (instants_s - instants_s[0]) / HOUR_S
    style = styles(nodes)

    def panel(axes: "Axes", node: str) -> None:
        axes.step(hours, watts[:, nodes.index(node)], where="post", color=style[node].color)
        axes.set_title(f"{node}, W", loc="left")
        axes.set(ylim=(0, 1.08 * watts.max()), xlim=(0, hours[-1]))

    def last(axes: "Axes") -> None:
        axes.set_xlabel("hours")

    height = 0.6 + 1.4 * len(nodes)
    panels(out, name, title, nodes, panel, height=height, last=last, legend=False, sharex=True, sharey=True)
