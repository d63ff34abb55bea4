"""How the plots of papers and benchmarks look: SVG by matplotlib, the same for the same data."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from jobcast.pipelines.report import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1a2b3c"
"""Stands for the colour of the page's text while a plot is drawn."""
PALETTE = (*charts.PALETTE, INK)
DASHES = ("-", "--", ":", "-.")
WIDE = (10.4, 4.4)
"""Size of figures in inches, as a page shows them; a narrower page shrinks them."""
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


def legend_beside(axes: "Axes") -> None:
    """Put the legend to the right of the plot, where it hides no curve."""
    lines, labels = axes.get_legend_handles_labels()
    names = [charts.wrapped(label) for label in labels]
    axes.legend(lines, names, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=2.4)
