"""The charts of a backtest: gain against risk, speedups, slowdowns, utilisation, gains with intervals.

SIA, Figures 11, 13 and 15.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.pipelines.report.charts import (
    INK,
    MOST_POINTS,
    MUTED,
    NAME_PX,
    PALETTE,
    Axis,
    Chart,
    bands,
    chart,
    colour,
    curves,
    distributions,
    height_of,
    line_at,
    milliseconds,
    named_rows,
    records,
    shade,
    thin_cdf,
    wrapped,
    zoomed,
)
from jobcast.pipelines.report.formatting import between, number, percent, shown_zone

RECOMMENDED, NOW, ALLOWED, REFUSED, FUTURE = (
    "recommended",
    "in use now",
    "could be run",
    "slows too many",
    "cannot be had",
)
KINDS = {RECOMMENDED: PALETTE[2], NOW: INK, ALLOWED: PALETTE[0], REFUSED: PALETTE[1], FUTURE: MUTED}
"""What a point of gain against risk is, and its colour."""
SHAPES = ("diamond", "square", "circle", "triangle-up", "cross")


def _decades(most: float) -> list[float]:
    """0 and the powers of ten up to a number: from 1 on, or the last one below it where it is less.

    >>> _decades(250.0), _decades(0.36), _decades(0.0)
    ([0.0, 1.0, 10.0, 100.0], [0.0, 0.1], [0.0])
    """
    if not most:
        return [0.0]
    first = min(0, math.floor(math.log10(most)))
    return [0.0, *takewhile(lambda one: one <= most, (10.0**power for power in count(first)))]


def gain_against_risk(points: Sequence[Mapping[str, Any]]) -> Chart:
    """Hours saved a week against hours by which slowed jobs are later a week, a point a policy and setting.

    Parameters
    ----------
    points : each `label`, `policy`, `kind` of `KINDS`, `saved_h_week`, `slowdown_h_week`, `slowed_pct`, `speedup`,
        `command`
    """
    import altair as alt

    kinds = [kind for kind in KINDS if any(one["kind"] == kind for one in points)]
    # Where several lie on one place, what is recommended and what is in use are on top.
    points = sorted(points, key=lambda one: -list(KINDS).index(one["kind"]))
    columns = {name: [one[name] for one in points] for name in ("label", "saved_h_week", "slowdown_h_week", "command")}
    data = records(
        series=[one["kind"] for one in points],
        **columns,
        name=[one["policy"] if one["kind"] in (RECOMMENDED, NOW) else "" for one in points],
        slowed=[percent(one["slowed_pct"]) for one in points],
        speedup=[number(one["speedup"]) for one in points],
    )
    x = alt.X("slowdown_h_week:Q", title="hours a week by which slowed jobs end later")
    # Nobody slowed is the aim, and a logarithm has no place for it.
    # By itself such a scale has ticks at its upper end alone.
    most = max(columns["slowdown_h_week"], default=0.0)
    x = x.scale(type="symlog", domainMin=0, constant=1).axis(format=",~r", values=_decades(most))
    y = alt.Y("saved_h_week:Q", title="hours saved a week").axis(format=",~r").scale(padding=NAME_PX)
    base = alt.Chart(data).encode(x=x, y=y)
    told = {
        "label": "policy", "saved_h_week": "hours saved a week", "slowdown_h_week": "hours slowed a week",
        "slowed": "jobs slowed", "speedup": "speedup", "series": "which is",
    }  # fmt: skip
    shapes = alt.Scale(domain=kinds, range=[dict(zip(KINDS, SHAPES, strict=True))[kind] for kind in kinds])
    marks = base.mark_point(size=110, filled=True, opacity=0.9).encode(
        color=colour(kinds, KINDS, legend=True),
        shape=alt.Shape("series:N", scale=shapes),
        tooltip=[
            {"field": field, "title": title, **({"format": ",.3~r", "type": "quantitative"} if "_h_" in field else {})}
            for field, title in told.items()
        ],
    )
    # Inwards from both edges, so that no name is cut.
    middle = "scale('x', datum.slowdown_h_week) > width / 2"
    names = base.mark_text(
        dy=-13, dx=alt.expr(f"{middle} ? 6 : -2"), align=alt.expr(f"{middle} ? 'right' : 'left'")
    ).encode(text="name:N")
    return chart("Gain against risk", alt.layer(line_at("y", 0.0), marks, names), 320)


def weekly_walk(windows: Sequence[Mapping[str, Any]]) -> Chart:
    """Hours saved a week by window: what the walk used, and the best in hindsight."""
    numbers = [one["window"] + 1.0 for one in windows]
    series = {
        "the walk": (numbers, [one["saved_h_week"] for one in windows]),
        "best in hindsight": (numbers, [one["best_saved_h_week"] for one in windows]),
    }
    x, y = Axis("window", "count"), Axis("hours saved a week")
    return curves("Hours saved by window", series, x, y, interpolate="linear", dots=True, height=200)


def speedups(values: Mapping[str, ArrayLike], colours: Mapping[str, str], baseline: str) -> Chart:
    """Distribution of the jobs' speedups (JCT of the baseline / JCT), a curve a configuration. SIA, Figure 11."""
    x = Axis("speedup (log scale); left of 1 = slowed", scale="log")
    return distributions(f"Speedups of jobs against {baseline}", values, x, "jobs at or below", colours)


def slowdowns(minutes: Mapping[str, ArrayLike], colours: Mapping[str, str]) -> Chart | None:
    """Share of all jobs that are slowed by at least so many minutes, a curve a configuration. SIA, Figure 13.

    None where nobody is slowed.

    Parameters
    ----------
    minutes : by which each job ends later than under the baseline; 0 or less = not slowed
    """
    shown = {}
    for label, values in minutes.items():
        given = np.asarray(values, dtype=np.float64)
        # A logarithmic axis has no place for those that are not slowed.
        late = given[given > 0]
        if len(late):
            at, below = thin_cdf(late)
            # Share at or above each value, of all jobs and not only of slowed ones.
            shown[label] = (at * 60.0, (1 - below + 1 / len(late)) * len(late) / len(given))
    if not shown:
        return None
    x, y = Axis("ends later by at least (log scale)", "length", "log"), Axis("share of all jobs", "share", "log")
    return curves("Jobs slowed by at least so much", shown, x, y, colours=colours, interpolate="step-before")


def utilisation(series: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Chart:
    """Share of the cluster's GPUs at work over time, a band a configuration.

    Parameters
    ----------
    series : label -> (times in seconds from the epoch, ascending and evenly spaced; shares of 1)
    """
    rows: dict[str, list[Any]] = {"row": [], "from": [], "to": [], "value": []}
    means = {}
    for label, pair in series.items():
        times_s, shares, step_h = coarser(*pair)
        # By a space at which no line is broken.
        means[label] = f"{label} ({100 * float(np.mean(shares)) if len(shares) else 0.0:.0f}\u00a0%)"
        rows["row"] += [means[label]] * len(shares)
        rows["from"] += milliseconds(times_s).tolist()
        rows["to"] += milliseconds(times_s + 3600.0 * step_h).tolist()
        rows["value"] += shares.tolist()
    settings = Axis(f"{shown_zone()}", "time").settings()
    return bands(
        "GPUs at work over time, and in the mean",
        list(means.values()),
        rows,
        {"type": "rect", "clip": True},
        {"shorthand": "from", **settings},
        zoom=True,
        x2="to:T",
        color=shade("share of all GPUs at work", 1.0, "~%"),
        tooltip=[Axis("from", "time").tooltip("from"), Axis("at work", "share").tooltip("value")],
    )


def busy(times_s: ArrayLike, shares: ArrayLike) -> Chart:
    """Share of the GPUs at work over time, of one cluster; see `utilisation`."""
    import altair as alt

    at, values, step_h = coarser(times_s, shares)
    x, y = Axis(f"{shown_zone()}; means over {step_h:g} h", "time"), Axis("GPUs at work", "share", low=0.0, high=1.0)
    # The last mean holds until its end.
    at, values = np.append(at, at[-1:] + 3600.0 * step_h), np.append(values, values[-1:])
    drawn = alt.Chart(records(x=milliseconds(at), y=values), name="busy").mark_area(
        interpolate="step-after", color=PALETTE[0], opacity=0.8, clip=True
    )
    encoded = drawn.encode(
        x=alt.X("x", **x.settings()), y=alt.Y("y", **y.settings()), tooltip=[x.tooltip("x"), y.tooltip("y")]
    )
    return chart("Utilisation over time", zoomed(encoded), 150)


def coarser(times_s: ArrayLike, shares: ArrayLike) -> tuple[Floats, Floats, float]:
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


def gains_forest(gains: Sequence[Mapping[str, Any]]) -> Chart:
    """Geometric-mean speedup of one configuration over another, with confidence intervals, a band a comparison.

    Parameters
    ----------
    gains : each `label`, `against`, `ratio`, `low`, `high` (see `backtest_results.gains_between`)
    """
    rows = [gain for gain in gains if gain["ratio"]]
    ends = [(gain["low"] or gain["ratio"], gain["high"] or gain["ratio"]) for gain in rows]
    return intervals(
        "Paired gains with confidence intervals",
        [f"{gain['label']} over {gain['against']}" for gain in rows],
        [gain["ratio"] for gain in rows],
        ends,
        Axis("times as fast (log scale)", scale="log"),
        [low > 1 or high < 1 for low, high in ends],
        marked=1.0,
    )


def intervals(
    title: str,
    names: Sequence[str],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    x: Axis,
    clear: Sequence[bool],
    marked: float | None = None,
) -> Chart:
    """A dot on a bar a row, grey where it tells nothing apart."""
    import altair as alt

    order = [wrapped(name) for name in names]
    told = [f"{number(value)} ({between(*end)})" for value, end in zip(values, ends, strict=True)]
    data = records(
        row=order, value=values, low=[low for low, _ in ends], high=[high for _, high in ends], told=told,
        colour=[PALETTE[0] if one else MUTED for one in clear],
    )  # fmt: skip
    base = alt.Chart(data).encode(
        y=named_rows(order),
        color=alt.Color("colour:N", scale=None),
        tooltip=[{"field": "row"}, {"field": "told", "title": x.title}],
    )
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low", **x.settings()), x2="high:Q")
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("value", **x.settings()))
    layers = ([] if marked is None else [line_at("x", marked)]) + [bars, dots]
    return chart(title, alt.layer(*layers), height_of(order, 28))
