"""When a job starts and ends, as a plot of its futures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.completion_text import Clock
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.plots import INK, WIDE, draw, painted, plain_ticks, styles
from jobcast.traces.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".html", ".png")
UNITS = (("minutes", 60.0, 2 * 3600.0), ("hours", 3600.0, 3 * 86400.0), ("days", 86400.0, np.inf))
"""Name and seconds of what an axis counts in, and up to which time it does."""
LOG_FROM = 30.0
"""Futures that are so many times apart are drawn over a logarithmic axis."""
LEAST = 1.0 / 60.0
"""Of a unit, where axes begin: nobody plans by less."""
DOTS_AN_INCH = 150


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The futures of one event.

    Attributes
    ----------
    width, kind : of which number of GPUs it is, and whether a start or an end
    drawn_s : (n_futures,) instants, seconds from the epoch
    low_s, high_s : the 90 % interval that is told
    """

    width: str
    kind: str
    drawn_s: Floats
    low_s: float
    high_s: float


def check_plot(path: Path) -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--plot {path}: end the name in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")


def write_plot(path: Path, title: str, curves: Sequence[Curve], clock: Clock) -> None:
    """Draw futures as curves with their 90 % intervals as bars below, into a file whose ending names the format."""

    def paint(figure: "Figure") -> None:
        _paint(figure, curves, clock)

    if path.suffix.lower() == ".png":
        with painted(title, paint) as figure, replacing(path) as place:
            figure.savefig(place, format="png", dpi=DOTS_AN_INCH, facecolor="white")
        return
    # A file of its own has no page behind it.
    svg = draw(title, paint, WIDE).replace("currentColor", INK).replace("<svg ", '<svg style="background:white" ', 1)
    if path.suffix.lower() == ".html":
        svg = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<body style="font-family:sans-serif;max-width:70rem;margin:2rem auto">{svg}'
            "</body></html>"
        )
    write_text(path, svg + "\n")


def _paint(figure: "Figure", curves: Sequence[Curve], clock: Clock) -> None:
    axes, last_s = figure.subplots(), max(float(one.drawn_s.max()) for one in curves) - clock.at_s
    unit, unit_s = next((name, seconds) for name, seconds, until_s in UNITS if last_s < until_s)

    def later(instants_s: Floats) -> Floats:
        return np.asarray(np.maximum((instants_s - clock.at_s) / unit_s, LEAST))

    # A start and an end at one width share a colour.
    colours = styles(list(dict.fromkeys(one.width for one in curves)))
    for place, one in enumerate(curves):
        look: dict[str, Any] = {"color": colours[one.width].color, "linestyle": "--" if one.kind == "start" else "-"}
        at = later(np.sort(one.drawn_s))
        # From nothing on: else a curve would begin in the air.
        share = np.arange(len(at) + 1) / len(at)
        axes.step(np.append(at[0], at), share, where="post", label=f"{one.width}: {one.kind}", **look)
        axes.plot(later(np.array([one.low_s, one.high_s])), [-0.05 - 0.05 * place] * 2, linewidth=4, **look)
    least, most = axes.get_xlim()
    drawn = later(np.concatenate([one.drawn_s for one in curves]))
    if drawn.max() / drawn.min() > LOG_FROM:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    else:
        axes.set_xlim(max(least, 0.0), most)
    axes.set_xlabel(f"{unit} from {clock.said(clock.at_s)} ({clock.name}); bars below: 90 % intervals")
    axes.set_ylabel("share of futures in which it has come")
    axes.set_yticks(np.linspace(0.0, 1.0, 6))
    axes.legend(loc="best")
