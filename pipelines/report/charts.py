"""How every chart of a page looks and works, the same for the same data: Vega-Lite by altair.

A page draws them by the script that it holds, in the width that there is, with tooltips; the same is an SVG or a PNG
where a file stands alone. Times are those of the clock that `formatting.times_in` sets.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.pipelines.report.formatting import shown_zone

if TYPE_CHECKING:
    import altair as alt

INK = "currentColor"
"""The page's text colour, which follows a dark theme."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito (2008), distinguishable with any colour vision; without yellow, which vanishes on white."""
MUTED = "#8a949e"
SERIES = (*PALETTE, INK, MUTED)
DASHES = ([1, 0], [6, 3], [2, 3], [8, 3, 2, 3])
MOST_POINTS = 400
"""Points of a curve in a page."""
TAIL_POINTS = 50
"""Points of a distribution function that go to each of its ends."""
LABEL_COLUMNS = 28
SIGNIFICANT = 6
"""Digits that a page keeps of a number."""
LINE_PX = 13
"""From a line of a label to the next."""
NEW_LINE = r"'\n'"
"""In an expression of Vega's."""
NAME_PX = 24
"""Above a point, for its name."""
DOT_PX = 5
"""Between the ends of an axis and the first and last dot, which would be cut in half."""
STATIC_WIDTH = 760
"""Pixels of a chart that stands alone."""
PNG_SCALE = 2.0
ZOOM = "drag to move, shift + wheel to zoom, double click to return"
LENGTHS_S = (0.01, 1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 28 * 86400.0)
LENGTH_TEXT = (
    "datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min' : "
    "datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
)
BOX_WIDTH = "(isFinite(containerSize()[0]) ? containerSize()[0] : width)"
"""Of the box on a page, which is known before a chart is laid out: its own width comes later, and a legend that takes
more rows by it is cut above."""
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, 'DejaVu Sans', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": INK for part in ("label", "title", "tick", "domain", "grid")},
        "gridOpacity": 0.14, "domainOpacity": 0.5, "tickOpacity": 0.5, "labelFontSize": 11, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 190, "labelOverlap": "greedy", "tickCount": 6,
    },
    # Labels near an end of the axis turn inwards; those that do not fit, or touch the one before, are left out.
    "axisX": {"labelFlush": 12, "labelBound": 5, "labelSeparation": 4},
    "legend": {
        "orient": "top", "title": None, "labelColor": INK, "labelFontSize": 11, "titleColor": INK,
        "labelLimit": {"expr": "max(width - 40, 120)"},
        "columns": {"expr": f"{BOX_WIDTH} < 500 ? 1 : {BOX_WIDTH} < 780 ? 2 : 3"},
    },
    "text": {"fill": INK, "fontSize": 11},
    "rule": {"stroke": INK},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chart:
    """A title, and a Vega-Lite specification that is as wide as the box that it is put in."""

    title: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis counts.

    Attributes
    ----------
    title : short, or a narrow page has no room for it
    kind : number, count (whole), share (of 1), chance (a share that has no ticks below 0, where something else lies),
        length (seconds) or time (seconds from the epoch)
    scale : linear, log or symlog
    low, high : where it begins and ends; None = where the data do
    """

    title: str
    kind: str = "number"
    scale: str = "linear"
    low: float | None = None
    high: float | None = None

    def settings(self, **more: float) -> dict[str, Any]:
        """Title, scale and ticks of a channel; `more` of its scale."""
        if self.kind == "time":
            clock = {
                **{"milliseconds": "%H:%M:%S.%L", "seconds": "%H:%M:%S", "minutes": "%H:%M", "hours": "%H:%M"},
                **{"date": "%d %b", "week": "%d %b", "month": "%d %b", "quarter": "%d %b", "year": "%d %b %Y"},
            }
            return {"title": self.title, "type": self.type, "scale": {"type": "utc", **more}, "axis": {"format": clock}}
        ticks = {
            "number": {"format": ",~g" if self.scale == "log" else ",~r"},
            # Between two of them a tick may stand at a half, which counts nothing.
            "count": {"format": ",~r", "tickMinStep": 1, "labelExpr": "datum.value % 1 ? '' : datum.label"},
            "share": {"format": "~%"},
            "chance": {"format": "~%", "values": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]},
            "length": {"values": list(LENGTHS_S), "labelExpr": LENGTH_TEXT},
        }[self.kind]
        scale: dict[str, Any] = {"type": self.scale, "nice": False, **more}
        scale |= {} if self.scale == "log" else {"zero": False}
        scale |= {"domainMin": self.low} if self.low is not None else {}
        scale |= {"domainMax": self.high} if self.high is not None else {}
        return {"title": self.title, "type": self.type, "scale": scale, "axis": ticks}

    def roomy(self, values: Sequence[float]) -> "Axis":
        """The axis, with room around them where all values are the same: all of its ticks would lie in one place.

        >>> Axis("run time", "length", "log").roomy([600.0, 600.0])
        Axis(title='run time', kind='length', scale='log', low=60.0, high=6000.0)
        >>> Axis("GPUs").roomy([4.0]).low, Axis("GPUs").roomy([4.0, 5.0]).low
        (2.0, None)
        >>> Axis("jobs slowed", "share").roomy([0.0]).low
        0.0
        """
        known = {float(value) for value in values if np.isfinite(value)}
        if self.kind == "time" or len(known) != 1 or self.low is not None or self.high is not None:
            return self
        (one,) = known
        if self.scale == "log":
            return replace(self, low=one / 10.0, high=one * 10.0)
        room = abs(one) / 2.0 or 1.0
        # Shares, counts and lengths that are not below 0 need no room there.
        low = max(one - room, 0.0) if self.kind != "number" and one >= 0.0 else one - room
        return replace(self, low=low, high=one + room)

    @property
    def type(self) -> str:
        """Of the data."""
        return "temporal" if self.kind == "time" else "quantitative"

    def values(self, numbers: ArrayLike) -> Any:
        """Numbers as the chart takes them."""
        given = np.asarray(numbers, dtype=np.float64)
        return milliseconds(given) if self.kind == "time" else given

    def tooltip(self, field: str) -> dict[str, Any]:
        """How one of its values is told."""
        told = {"time": "%a %d %b %Y %H:%M", "share": ".3~p", "chance": ".3~p"}.get(self.kind, ",.3~r")
        return {"field": field, "type": self.type, "title": self.title, "format": told}


def milliseconds(instants_s: ArrayLike) -> Any:
    """Instants as a chart takes them: on the clock that is shown, which the chart believes to be UTC."""
    from jobcast.traces.column_types import wall_clock_s

    return np.round(wall_clock_s(np.asarray(instants_s, dtype=np.float64), shown_zone()) * 1000.0)


def records(**columns: Iterable[Any]) -> "alt.InlineData":
    """Columns as the rows that a page holds; numbers rounded, NaN as nothing."""
    import altair as alt

    rows = zip(*columns.values(), strict=True)
    return alt.InlineData(values=[dict(zip(columns, map(_kept, row), strict=True)) for row in rows])


def _kept(value: Any) -> Any:
    if isinstance(value, str) or value is None:
        return value
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number.is_integer() else float(f"{number:.{SIGNIFICANT}g}")


def chart(title: str, drawn: Any, height: int = 260) -> Chart:
    """What altair drew, finished."""
    spec = drawn.properties(width="container", height=height).to_dict()
    # altair's own defaults give way.
    return Chart(title, {**spec, "config": CONFIG, "autosize": {"type": "fit-x", "contains": "padding"}})


def zoomed(drawn: Any) -> Any:
    """Along the x axis; the wheel alone scrolls the page."""
    import altair as alt

    return drawn.add_params(
        alt.selection_interval(name="zoom", encodings=["x"], bind="scales", zoom="wheel![event.shiftKey]")
    )


def looks(labels: Sequence[str]) -> dict[str, str]:
    """A colour a label, so that a label looks alike in all charts of a page.

    >>> looks(["fcfs", "sia"])["sia"]
    '#D55E00'
    """
    return {label: SERIES[place % len(SERIES)] for place, label in enumerate(labels)}


def colour(labels: Sequence[str], colours: Mapping[str, str] | None = None, legend: bool | None = None) -> "alt.Color":
    """The channel of series, with a legend where there are several."""
    import altair as alt

    known = colours or looks(labels)
    several = len(labels) > 1 if legend is None else legend
    scale = alt.Scale(domain=list(labels), range=[known[label] for label in labels])
    channel = alt.Color("series:N", scale=scale, sort=None)
    if not several:
        return channel.legend(None)
    lines = [wrapped(label).split("\n") for label in labels]
    if all(len(one) == 1 for one in lines):
        return channel
    # Cut at the right of a narrow page, names that begin alike could not be told apart.
    return channel.legend(labelExpr=f"{json.dumps(lines)}[datum.index]")


def curves(
    title: str,
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    x: Axis,
    y: Axis,
    *,
    colours: Mapping[str, str] | None = None,
    interpolate: str = "step-after",
    dots: bool = False,
    beside: Sequence[Any] = (),
    room: bool = False,
    height: int = 260,
) -> Chart:
    """A line a label; in the legend a click picks one out.

    Parameters
    ----------
    series : label -> (xs, ys)
    beside : layers below the lines
    room : the ends of the axes leave room for a dot, as they do with dots
    """
    import altair as alt

    parts = [
        (label, at, value)
        for label, (xs, ys) in series.items()
        for at, value in zip(x.values(xs), y.values(ys), strict=True)
    ]
    labels = list(series)
    # A line of one point would not be seen.
    single = [] if dots else [row for row in parts if np.size(series[row[0]][0]) == 1]
    if not beside:
        x, y = x.roomy([at for _, at, _ in parts]), y.roomy([value for _, _, value in parts])
    ends = {"padding": DOT_PX} if dots or room or single else {}
    told = [*([{"field": "series"}] if len(labels) > 1 else []), x.tooltip("x"), y.tooltip("y")]

    def drawn(name: str, rows: Sequence[tuple[str, Any, Any]]) -> Any:
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        data = records(**dict(zip(("series", "x", "y"), columns, strict=True)))
        return alt.Chart(data, name=name).encode(
            x=alt.X("x", **x.settings(**ends)),
            y=alt.Y("y", **y.settings(**ends)),
            color=colour(labels, colours),
            tooltip=told,
        )

    picked = alt.selection_point(name="series", fields=["series"], bind="legend")
    dashes = alt.Scale(domain=labels, range=[DASHES[i // len(SERIES) % len(DASHES)] for i in range(len(labels))])
    mark: dict[str, Any] = {"interpolate": interpolate, "strokeWidth": 1.8, "clip": True, "point": dots}
    lines = drawn("lines", parts).mark_line(**mark)
    lines = lines.encode(opacity=alt.condition(picked, alt.value(1.0), alt.value(0.12))).add_params(picked)
    if len(labels) > len(SERIES):
        lines = lines.encode(strokeDash=alt.StrokeDash("series:N", scale=dashes, sort=None))
    alone = [drawn("alone", single).mark_point(filled=True, size=30, opacity=1)] if single else []
    # The lines are what is zoomed: what stands beside them may know only the other axis.
    return chart(title, alt.layer(*beside, zoomed(lines), *alone), height)


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


def distributions(
    title: str, values: Mapping[str, ArrayLike], x: Axis, y: str, colours: Mapping[str, str] | None = None
) -> Chart:
    """Shares at or below each value, a curve a label, thinned."""
    cdfs = {label: thin_cdf(numbers) for label, numbers in values.items()}
    return curves(title, cdfs, x, Axis(y, "share", low=0.0, high=1.0), colours=colours)


def line_at(axis: str, *values: float) -> Any:
    """Thin lines at values of an axis, x or y."""
    import altair as alt

    rule = alt.Chart(records(at=values)).mark_rule(opacity=0.55, strokeDash=[4, 3])
    return rule.encode(**{axis: alt.X("at:Q") if axis == "x" else alt.Y("at:Q")})


def bands(
    title: str,
    rows: Sequence[str],
    columns: Mapping[str, Iterable[Any]],
    mark: Mapping[str, Any],
    x: Mapping[str, Any],
    *,
    step: int = 24,
    zoom: bool = False,
    **channels: Any,
) -> Chart:
    """A band a row, names left of them, in the order given.

    Parameters
    ----------
    columns : by name; `row` names the band
    mark, x : of Vega-Lite
    """
    import altair as alt

    order = [wrapped(row) for row in rows]
    data = records(**{**columns, "row": [wrapped(row) for row in columns["row"]]})
    made: dict[str, Any] = {"name": "bands", "mark": dict(mark)}
    drawn = alt.Chart(data, **made).encode(
        x=alt.X(**x),
        y=named_rows(order),
        **channels,
    )
    return chart(title, zoomed(drawn) if zoom else drawn, height_of(order, step))


def named_rows(order: Sequence[str]) -> "alt.Y":
    """The channel of bands, each with its name beside its middle, over several lines where it is long."""
    import altair as alt

    lines = f"split(datum.label, {NEW_LINE})"
    # Vega puts the first line at the middle of the band, and the others below it.
    upwards = {"expr": f"-{LINE_PX / 2:g} * (length({lines}) - 1)"}
    axis = alt.Axis.from_dict({"labelExpr": lines, "labelLineHeight": LINE_PX, "labelOffset": upwards, "grid": False})
    return alt.Y("row:N", sort=list(order), title=None, axis=axis)


def height_of(names: Sequence[str], step: int) -> int:
    """Pixels of bands of `step` each, more where a name takes several lines."""
    return len(names) * max(step, 15 * max((name.count("\n") + 1 for name in names), default=1))


def shade(title: str, most: float | None = None, form: str = ",~r") -> "alt.Color":
    """The channel of a number of 0 or more as a colour, readable with any colour vision."""
    import altair as alt

    end = {} if most is None else {"domainMax": most}
    scale = alt.Scale.from_dict({"scheme": "cividis", "domainMin": 0.0, **end})
    legend = alt.Legend(title=title, gradientLength=160, titleFontWeight="normal", titleLimit=300, format=form)
    return alt.Color("value:Q", scale=scale, legend=legend)


_NUMBERED = re.compile(r'(?<=id=")[a-z_]+\d+(?=")|(?<=url\(#)[a-z_]+\d+(?=\))')


def svg_of(one: Chart) -> str:
    """The chart as an SVG that stands alone."""
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(_alone(one), vl_version=_version()))
    # Vega numbers what a drawing refers to through the whole life of a process; the same chart is the same bytes.
    found = dict.fromkeys(_NUMBERED.findall(drawn))
    numbers = {name: f"{name.rstrip('0123456789')}{place}" for place, name in enumerate(found)}
    return _NUMBERED.sub(lambda name: numbers[name[0]], drawn)


def png_of(one: Chart) -> bytes:
    """The chart as a picture on white."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_alone(one), vl_version=_version(), scale=PNG_SCALE))


def _alone(one: Chart) -> dict[str, Any]:
    """With its title, in a width of its own, black on white."""
    text = json.dumps({**one.spec, "width": STATIC_WIDTH}).replace(f'"{INK}"', '"#1a2b3c"')
    title = {"text": one.title, "anchor": "start", "fontSize": 13}
    spec: dict[str, Any] = json.loads(text)
    return {**spec, "title": title, "config": {**spec["config"], "background": "white"}, "autosize": "pad"}


def _version() -> str:
    """Of Vega-Lite, as altair writes it and vl-convert draws it."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which loads nothing."""
    import vl_convert

    # Without a snippet all is bundled; the types know only of texts.
    return str(vl_convert.javascript_bundle(snippet=None, vl_version=_version()))  # type: ignore[arg-type]


def as_json(one: Chart) -> str:
    """The specification as a page holds it: no text of it ends the element that it stands in."""
    return json.dumps(one.spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
