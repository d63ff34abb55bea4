"""Plots of ANDREAS's figures: four panels over nodes, the Gantt chart, and power over time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import DASHES, WIDE, plain_ticks, styles
from jobcast.simulator.log import Spans
from papers.andreas.measures import CALL, ENERGY, MAKESPAN, TOTAL, values_of
from papers.andreas.units import Done
from papers.confidence import interval_of
from papers.plotting import save
from papers.sheets import HOUR_S

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
    cases = list(dict.fromkeys(one.case for one in done))
    names = list(dict.fromkeys(one.name for one in done))
    style, nodes = styles(names), [int(case) for case in cases]

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(2, 2)
        for axes, measure in zip(panels.flat, PANELS, strict=True):
            for label in names:
                found = [interval_of(values_of(measure, done, case, label)) for case in cases]
                axes.plot(nodes, [one.mean for one in found], marker="o", ms=3, label=label, **style[label].line)
                low, high = [one.low for one in found], [one.high for one in found]
                axes.fill_between(nodes, low, high, color=style[label].color, alpha=0.15, linewidth=0)
            axes.set_title(measure.title, loc="left")
            axes.set(xlabel="nodes", xticks=nodes)
            if measure is CALL:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
        plain_ticks(panels.flat[-1].yaxis)
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 2 * TALL_PANEL))


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


def gantt(
    out: Path, name: str, title: str, spans: Spans, jobs: Sequence[str], nodes: Sequence[tuple[str, int]]
) -> None:
    """Draw `NAME.svg`: a lane a GPU, bars of the jobs that hold it.

    Parameters
    ----------
    jobs : (n_jobs,) their names
    nodes : (n_nodes,) names and GPUs
    """
    gpus = [count for _, count in nodes]
    first = np.concatenate([[0], np.cumsum(gpus)])
    labels = [f"{node}, GPU {at + 1}" if count > 1 else node for node, count in nodes for at in range(count)]
    style, begin_s = styles(jobs), float(spans.from_s.min())
    span_h = (float(spans.until_s.max()) - begin_s) / HOUR_S

    def paint(figure: "Figure") -> None:
        axes: Axes = figure.subplots()
        for at, node, lane in lanes_of(spans, gpus):
            job, y = jobs[spans.job[at]], int(first[node]) + lane
            left, wide = (spans.from_s[at] - begin_s) / HOUR_S, (spans.until_s - spans.from_s)[at] / HOUR_S
            hatch = "" if style[job].dashes == DASHES[0] else "//"
            axes.barh(y, wide, 0.8, left, color=style[job].color, hatch=hatch, edgecolor="white", linewidth=0.8)
            if wide > LABELLED * span_h:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
                axes.text(left + wide / 2, y, job, ha="center", va="center", fontsize=8, bbox=box)
        axes.set_yticks(range(len(labels)), labels)
        axes.set(xlabel="hours", xlim=(0, None))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)

    save(out, name, title, paint, (WIDE[0], 1.2 + LANE * len(labels)))


def power(out: Path, name: str, title: str, instants_s: np.ndarray, watts: np.ndarray, nodes: Sequence[str]) -> None:
    """Draw `NAME.svg`: watts of nodes over time, a panel a node; arguments as of `power_over_time`."""
    hours = (instants_s - instants_s[0]) / HOUR_S
    style = styles(nodes)

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(len(nodes), 1, sharex=True, sharey=True))
        for axes, node, column in zip(panels, nodes, watts.T, strict=True):
            axes.step(hours, column, where="post", color=style[node].color)
            axes.set_title(f"{node}, W", loc="left")
            axes.set(ylim=(0, 1.08 * watts.max()), xlim=(0, hours[-1]))
        panels[-1].set_xlabel("hours")

    save(out, name, title, paint, (WIDE[0], 0.6 + 1.4 * len(nodes)))
