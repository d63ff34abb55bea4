"""Plots of SIA's figures: spreads over draws by case, distributions over draws, and lines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.pipelines.plots import WIDE, plain_ticks, styles, thin_cdf
from jobcast.pipelines.reproduce.plotting import save
from jobcast.pipelines.reproduce.sia.measures import Measure
from jobcast.pipelines.reproduce.sia.units import Done

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TALL_PANEL = 2.7
FLOORS = {"slowdown_total_min": 1.0, "slowdown_max_min": 1.0}
"""Below this a logarithmic axis goes linearly to 0: a minute."""
NESTED = ((12.5, 87.5, 0.5), (25.0, 75.0, 0.9))
"""Boxes of Figure 14: percentiles, and width as a share of a group's."""
KNOWN = ("sia", "mmfs", "fcfs", "gssf", "ssf", "sia_vc", "milp", "hived", "themis_np", "sjf")


def _styles(names: Sequence[str]) -> Any:
    """Styles by which a policy looks alike in all figures."""
    return styles([*KNOWN, *(name for name in names if name not in KNOWN)])


def _names(done: Sequence[Done]) -> tuple[list[str], list[str]]:
    return list(dict.fromkeys(one.case for one in done)), list(dict.fromkeys(one.name for one in done))


def _scale(axes: "Axes", measure: Measure) -> None:
    if measure.key in FLOORS:
        axes.set_yscale("symlog", linthresh=FLOORS[measure.key])
        axes.set_ylim(bottom=0)
    elif measure.log:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)


def ranges(out: Path, name: str, title: str, done: Sequence[Done], measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: a panel a measure; by case a bar a policy from least to most over draws, a dot at the median."""
    cases, names = _names(done)
    style = _styles(names)

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(len(measures), 1, sharex=True))
        for axes, measure in zip(panels, measures, strict=True):
            for place, label in enumerate(names):
                at = np.arange(len(cases)) + 0.8 * ((place + 0.5) / len(names) - 0.5)
                values = [measure.of(done, case, label) for case in cases]
                low, high = [each.min() for each in values], [each.max() for each in values]
                axes.vlines(at, low, high, color=style[label].color, linewidth=5, alpha=0.45)
                middle = [float(np.median(each)) for each in values]
                axes.plot(at, middle, "o", ms=4, color=style[label].color, label=label)
            axes.set_title(measure.title, loc="left")
            _scale(axes, measure)
        panels[-1].set_xticks(range(len(cases)), [case.replace(" ", "\n") for case in cases], fontsize=8)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], TALL_PANEL * len(measures)))


def boxes(out: Path, name: str, title: str, done: Sequence[Done], measures: Sequence[Measure], x: str) -> None:
    """Draw `NAME.svg`: nested boxes of percentiles over draws, by case and policy, a panel a measure."""
    cases, names = _names(done)
    style, wide = _styles(names), 0.8 / len(names)

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(len(measures), 1, sharex=True))
        for axes, measure in zip(panels, measures, strict=True):
            for place, label in enumerate(names):
                at = np.arange(len(cases)) + wide * (place + 0.5) - 0.4
                values = [measure.of(done, case, label) for case in cases]
                for low, high, share in NESTED:
                    ends = np.array([np.percentile(each, (low, high)) for each in values])
                    axes.bar(at, ends[:, 1] - ends[:, 0], wide * share, ends[:, 0], color=style[label].color, alpha=0.5)
                middle = [float(np.median(each)) for each in values]
                axes.plot(at, middle, "_", ms=7, mew=2, color=style[label].color, label=label)
            axes.set_title(measure.title, loc="left")
            axes.grid(axis="x", visible=False)
            _scale(axes, measure)
        panels[-1].set_xticks(range(len(cases)), cases)
        panels[-1].set_xlabel(x)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], TALL_PANEL * len(measures)))


def over_draws(out: Path, name: str, title: str, done: Sequence[Done], measures: Sequence[Measure]) -> None:
    """Draw `NAME.svg`: distributions over draws, a panel a measure, a line a policy."""
    cases, names = _names(done)
    style = _styles(names)

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(2, -(-len(measures) // 2)).ravel()
        for axes, measure in zip(panels, measures, strict=False):
            for label in names:
                x, share = thin_cdf(np.concatenate([measure.of(done, case, label) for case in cases]))
                axes.step(x, share, where="post", label=label, **style[label].line)
            axes.set(xlabel=measure.title, ylabel="share of draws", ylim=(0, 1.02))
            if measure.key in FLOORS:
                axes.set_xscale("symlog", linthresh=FLOORS[measure.key])
            elif measure.log:
                axes.set_xscale("log")
                plain_ticks(axes.xaxis)
        for axes in panels[len(measures) :]:
            axes.set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 2 * TALL_PANEL))


def lines(out: Path, name: str, title: str, done: Sequence[Done], measures: Sequence[Measure], x: str) -> None:
    """Draw `NAME.svg`: a panel a measure, a line a policy over cases that are numbers."""
    cases, names = _names(done)
    style, at = _styles(names), [float(case.partition(",")[0]) for case in cases]

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(1, len(measures)))
        for axes, measure in zip(panels, measures, strict=True):
            for label in names:
                values = [float(np.median(measure.of(done, case, label))) for case in cases]
                axes.plot(at, values, marker="o", ms=3, label=label, **style[label].line)
            axes.set_title(measure.title, loc="left")
            axes.set(xlabel=x, xticks=at)
            _scale(axes, measure)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 1.2 * TALL_PANEL))


def over_shares(
    out: Path,
    name: str,
    title: str,
    done: Sequence[Done],
    measures: Sequence[Measure],
    shares: Sequence[float],
    curves: Mapping[str, Sequence[str]],
) -> None:
    """Draw `NAME.svg`: a panel a measure, a line a curve over shares, means over draws of one case.

    Parameters
    ----------
    shares : (n,) of the x axis
    curves : label of a line -> (n,) names of its runs
    """
    case, style = done[0].case, styles(list(curves))

    def paint(figure: "Figure") -> None:
        panels = np.atleast_1d(figure.subplots(1, len(measures)))
        for axes, measure in zip(panels, measures, strict=True):
            for label, names in curves.items():
                values = [float(measure.of(done, case, one).mean()) for one in names]
                axes.plot(shares, values, marker="o", ms=3, label=label, **style[label].line)
            axes.set_title(measure.title, loc="left")
            axes.set(xlabel="share that may be stopped", xticks=shares, ylim=(0, None))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 1.2 * TALL_PANEL))
