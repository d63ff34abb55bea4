"""How every plot of jobcast looks: an SVG string in the page's text colour, the same for the same data.

And the plots of a backtest: speedups, slowdowns, utilisation, gains with intervals. SIA, Figures 11, 13 and 15.
"""

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.pipelines.report.formatting import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1a2b3c"
"""Stands for the colour of the page's text while a plot is drawn."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
"""Okabe and Ito (2008), distinguishable with any colour vision; without yellow, which vanishes on white."""
DASHES = ("-", "--", ":", "-.")
MOST_POINTS = 400
"""Points of a curve in a page."""
TAIL_POINTS = 50
"""Points of a distribution function that go to each of its ends."""
WIDE = (10.4, 4.4)
NARROW = (5.1, 3.8)
"""Sizes of figures in inches, as a page shows them; a narrower page shrinks them."""
LABEL_COLUMNS = 28
DECADES_RATIO = 30.0
"""A logarithmic axis that spans less is marked at 1, 2 and 5 of a decade ..."""
LINEAR_RATIO = 3.0
"""... and one that spans less than this at even distances."""

SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "jobcast",
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "legend.fontsize": 9.0,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True, slots=True)
class Style:
    """Colour and dashes of a line."""

    color: str
    dashes: str

    @property
    def line(self) -> dict[str, Any]:
        """Arguments for matplotlib."""
        return {"color": self.color, "linestyle": self.dashes}


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """A style a label, colours first, then dashes, so that a label looks alike in all plots of a page.

    >>> styles(["fcfs", "sia"])["sia"]
    Style(color='#D55E00', dashes='-')
    """
    return {
        label: Style(PALETTE[i % len(PALETTE)], DASHES[i // len(PALETTE) % len(DASHES)])
        for i, label in enumerate(labels)
    }


def draw(title: str, paint: "Callable[[Figure], None]", size: tuple[float, float] = WIDE) -> str:
    """An SVG of what `paint` puts on an empty figure.

    Parameters
    ----------
    title : what the plot shows, read aloud in place of it
    size : inches
    """
    buffer = io.StringIO()
    with painted(title, paint, size) as figure:
        # A date would make every drawing another one.
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    return _inline(buffer.getvalue(), title)


@contextmanager
def painted(title: str, paint: "Callable[[Figure], None]", size: tuple[float, float] = WIDE) -> "Iterator[Figure]":
    """A figure with what `paint` puts on it, to be saved while the look of all plots holds; see `draw`."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        # Without pyplot, which keeps figures for ever and may want a screen.
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(title, x=0.005, ha="left", fontsize=11, fontweight="bold")
        paint(figure)
        yield figure


def _inline(svg: str, title: str) -> str:
    """An SVG fit for a page that holds others: named, without ids that could clash, in the page's text colour."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    # Only ids that something refers to are kept: the rest would clash on a page.
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    names = {name for pair in used for name in pair if name}
    prefix = re.sub(r"\W+", "-", title.lower()).strip("-")
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in names else "", svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    # The page's colour, so that plots follow a dark theme.
    svg = svg.replace(INK, "currentColor").replace("<g>\n", "<g>")
    named = f'<svg role="img" aria-label="{escape(title, quote=True)}" '
    return svg.replace("<svg ", named, 1).strip()


def thin_cdf(values: ArrayLike, points: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Distribution function of finite values: at most `points` of them ascending, the share at or below each.

    A part of the points goes to both tails, which are what one looks for.

    >>> thin_cdf([3.0, 1.0, 2.0, 2.0])
    (array([1., 2., 2., 3.]), array([0.25, 0.5 , 0.75, 1.  ]))
    """
    known = np.asarray(values, dtype=np.float64)
    known = np.sort(known[np.isfinite(known)])
    count = len(known)
    if count <= points:
        return known, np.arange(1, count + 1) / max(count, 1)
    # Densest at the very ends.
    tail = np.geomspace(1, count, TAIL_POINTS)
    ranks = np.concatenate([np.linspace(1, count, points - 2 * TAIL_POINTS), tail, count + 1 - tail])
    rank = np.unique(ranks.round().astype(np.int64))
    return known[rank - 1], rank / count


def wrapped(label: str) -> str:
    """A label over several lines, broken where it has joints.

    >>> wrapped("sia registry:will-jobs-arrive=2,new-load=1")
    'sia registry:will-jobs-\\narrive=2,new-load=1'
    """
    return "\n".join(textwrap.wrap(label, LABEL_COLUMNS)) or label


def plain_ticks(*axes: Any) -> None:
    """Write the ticks of logarithmic axes as plain numbers; call it when all is drawn."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    for axis in axes:
        low, high = axis.get_view_interval()
        if high / low < LINEAR_RATIO:
            axis.set_major_locator(MaxNLocator(5))
            axis.set_minor_locator(NullLocator())
        else:
            subs = (1.0, 2.0, 5.0) if high / low < DECADES_RATIO else (1.0,)
            axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=8))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.4g}" if x < 1000 else f"{x:,.0f}"))
        axis.set_minor_formatter(NullFormatter())


def percent_ticks(axis: Any) -> None:
    """Write the ticks of an axis of shares as percentages."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:g} %"))


def date_ticks(axes: "Axes") -> None:
    """Write an x axis of seconds from the epoch as UTC dates."""
    from datetime import UTC, datetime

    from matplotlib.ticker import FixedLocator, FuncFormatter

    low, high = axes.get_xlim()
    day_s = 86400.0
    # At most eight dates, at whole days and weeks.
    step = next((s for s in (1, 2, 3, 7, 14, 28, 56, 112) if (high - low) / day_s / s <= 8), 224) * day_s
    axes.xaxis.set_major_locator(FixedLocator(np.arange(np.ceil(low / step) * step, high, step).tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{datetime.fromtimestamp(x, UTC):%d %b}"))


def legend_beside(axes: "Axes") -> None:
    """Put the legend to the right of the plot, where it hides no curve."""
    lines, labels = axes.get_legend_handles_labels()
    names = [wrapped(label) for label in labels]
    axes.legend(lines, names, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=2.4)


PANEL_IN = 0.85


def speedup_cdf(
    speedups: Mapping[str, ArrayLike], looks: Mapping[str, Style] | None = None, baseline: str = "the baseline"
) -> str:
    """Distribution of the jobs' speedups (JCT of the baseline / JCT), a curve a configuration. SIA, Figure 11."""
    looks = looks or styles(list(speedups))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axvline(1.0, color=INK, linewidth=0.9, alpha=0.6)
        for label, values in speedups.items():
            axes.step(*thin_cdf(values), where="post", label=label, **looks[label].line)
        axes.set_xscale("log")
        axes.set_ylim(-0.01, 1.02)
        plain_ticks(axes.xaxis)
        percent_ticks(axes.yaxis)
        axes.set_xlabel(f"speedup: JCT under {baseline} / JCT (log scale; left of 1 = slowed)")
        axes.set_ylabel("jobs at or below")
        legend_beside(axes)

    return draw(f"Distribution of job speedups against {baseline}", paint)


def slowdown_curve(slowdowns_min: Mapping[str, ArrayLike], looks: Mapping[str, Style] | None = None) -> str:
    """Share of all jobs that are slowed by more than so many minutes, a curve a configuration. SIA, Figure 13.

    Parameters
    ----------
    slowdowns_min : minutes by which each job ends later than under the baseline; 0 or less = not slowed
    """
    looks = looks or styles(list(slowdowns_min))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for label, values in slowdowns_min.items():
            minutes = np.asarray(values, dtype=np.float64)
            # A logarithmic axis has no place for those that are not slowed.
            late = minutes[minutes > 0]
            if len(late):
                x, below = thin_cdf(late)
                # Share at or above each value, of all jobs and not only of slowed ones.
                above = (1 - below + 1 / len(late)) * len(late) / len(minutes)
                axes.step(x, above, where="pre", label=label, **looks[label].line)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_ticks(axes.xaxis, axes.yaxis)
        percent_ticks(axes.yaxis)
        axes.set_xlabel("minutes later than under the baseline (log scale)")
        axes.set_ylabel("jobs slowed by at least that (log scale)")
        if axes.lines:
            legend_beside(axes)
        else:
            axes.text(0.5, 0.5, "no job is slowed", transform=axes.transAxes, ha="center")

    return draw("Share of jobs slowed by at least so many minutes", paint)


def utilisation(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    looks: Mapping[str, Style] | None = None,
    title: str = "Utilisation over time by configuration",
) -> str:
    """Share of the cluster's GPUs at work over time, a panel a configuration.

    Parameters
    ----------
    series : label -> (times in seconds from the epoch, ascending and evenly spaced; shares of 1)
    """
    looks = looks or styles(list(series))
    curves = {label: _coarser(*pair) for label, pair in series.items()}
    steps_h = max((step for *_, step in curves.values()), default=1.0)

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(len(curves), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (label, (times_s, shares, _)) in zip(panels, curves.items(), strict=True):
            axes.fill_between(times_s, shares, step="post", color=looks[label].color, alpha=0.75, linewidth=0)
            axes.set_ylim(0, 1.02)
            axes.margins(x=0)
            axes.set_yticks([0, 0.5, 1])
            percent_ticks(axes.yaxis)
            mean = float(np.mean(shares)) if len(shares) else 0.0
            axes.set_title(f"{label} (mean {100 * mean:.0f} %)", loc="left", fontsize=9, pad=3)
        date_ticks(panels[-1])
        panels[-1].set_xlabel(f"UTC; GPUs at work as a share of all, means over {steps_h:g} h")

    return draw(title, paint, (WIDE[0], 1.0 + PANEL_IN * max(1, len(curves))))


def _coarser(times_s: ArrayLike, shares: ArrayLike) -> tuple[Floats, Floats, float]:
    """At most `MOST_POINTS` means of neighbours, and the hours that each covers."""
    times, values = np.asarray(times_s, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    group = max(1, -(-len(times) // MOST_POINTS))
    # Means and not samples: a spike of an hour must still count.
    starts = np.arange(0, len(times), group)
    step_h = group * (times[1] - times[0]) / 3600 if len(times) > 1 else 1.0
    if not len(times):
        return times, values, 1.0
    counts = np.diff(np.append(starts, len(times)))
    return times[starts], np.add.reduceat(values, starts) / counts, round(float(step_h), 2)


def gains_forest(gains: Sequence[Mapping[str, Any]]) -> str:
    """Geometric-mean speedup of one configuration over another, with confidence intervals, a line a comparison.

    Parameters
    ----------
    gains : each `label`, `against`, `ratio`, `low`, `high` (see `backtest_results.gains_between`)
    """
    rows = [gain for gain in gains if gain["ratio"]]
    names = [f"{wrapped(gain['label'])}\nover {wrapped(gain['against'])}" for gain in rows]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axvline(1.0, color=INK, linewidth=0.9, alpha=0.6)
        for row, gain in enumerate(rows):
            value = gain["ratio"]
            low, high = gain["low"] or value, gain["high"] or value
            clear = low > 1 or high < 1
            axes.plot([low, high], [row, row], color=PALETTE[0] if clear else INK, linewidth=2.4, alpha=0.8)
            axes.plot([value], [row], "o", color=PALETTE[0] if clear else INK, markersize=6)
            axes.annotate(number(value), (value, row), xytext=(0, 7), textcoords="offset points", ha="center",
                          fontsize=9)  # fmt: skip
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.75)
        axes.set_xlabel("times as fast (geometric mean, log scale; right of 1 = the first is faster)")
        axes.grid(axis="y", visible=False)

    return draw("Paired gains with confidence intervals", paint, (WIDE[0], 1.3 + 0.6 * max(1, len(rows))))
