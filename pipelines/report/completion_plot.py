"""When a job starts and ends, as a chart of its futures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.charts import Axis, Chart, curves, looks, png_of, records, svg_of
from jobcast.pipelines.report.completion_text import Clock
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.layout import Drawing, render
from jobcast.traces.files import replacing

FORMATS = (".svg", ".html", ".png")
UNITS = (("minutes", 60.0, 2 * 3600.0), ("hours", 3600.0, 3 * 86400.0), ("days", 86400.0, np.inf))
"""Name and seconds of what an axis counts in, and up to which time it does."""
LOG_FROM = 30.0
"""Futures that are so many times apart are drawn over a logarithmic axis."""
LEAST = 1.0 / 60.0
"""Of a unit, where axes begin: nobody plans by less."""
CAPTION = "Each curve: the share of simulated futures in which it has come. Thick bars below: 90 % intervals."


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


def write_plot(path: Path, title: str, told: Sequence[Curve], clock: Clock, sentence: str) -> None:
    """Draw futures as curves with their 90 % intervals as bars below, into a file whose ending names the format.

    Parameters
    ----------
    sentence : the answer in words, which a page begins with
    """
    drawn, ending = _chart(title, told, clock), path.suffix.lower()
    if ending == ".png":
        with replacing(path) as place:
            place.write_bytes(png_of(drawn))
    elif ending == ".svg":
        write_text(path, svg_of(drawn) + "\n")
    else:
        write_text(path, render("completion.html.j2", title=title, sentence=sentence, figure=Drawing(drawn, CAPTION)))


def _chart(title: str, told: Sequence[Curve], clock: Clock) -> Chart:
    import altair as alt

    last_s = max(float(one.drawn_s.max()) for one in told) - clock.at_s
    unit, unit_s = next((name, seconds) for name, seconds, until_s in UNITS if last_s < until_s)

    def later(instants_s: Floats) -> Floats:
        return np.asarray(np.maximum((instants_s - clock.at_s) / unit_s, LEAST))

    series: dict[str, tuple[Floats, Floats]] = {}
    ends: list[tuple[float, float, float]] = []
    for place, one in enumerate(told):
        at = later(np.sort(one.drawn_s))
        # From nothing on: else a curve would begin in the air.
        series[f"{one.width}: {one.kind}"] = (np.append(at[0], at), np.arange(len(at) + 1) / len(at))
        low, high = later(np.array([one.low_s, one.high_s])).tolist()
        ends.append((low, high, -0.04 - 0.05 * place))
    colours = looks(list(series))
    lows, highs, y = zip(*ends, strict=True)
    bars = (
        alt.Chart(records(low=lows, high=highs, y=y, colour=[colours[label] for label in series]))
        .mark_rule(strokeWidth=4)
        .encode(x="low:Q", x2="high:Q", y="y:Q", color=alt.Color("colour:N", scale=None))
    )
    drawn = later(np.concatenate([one.drawn_s for one in told]))
    spread = drawn.max() / drawn.min() > LOG_FROM
    x = Axis(f"{unit} from {clock.said(clock.at_s)} ({clock.name})", scale="log" if spread else "linear")
    share = Axis("share of futures in which it has come", "share", low=min(y) - 0.03, high=1.0)
    return curves(title, series, x, share, colours=colours, beside=[bars], height=300)
