"""When a job starts and ends: in a line that a person understands, in their own time zone, and as a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S, MINUTE_S
from jobcast.domain.clock import Clock as Clock
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.charts import Axis, Chart, curves, looks, png_of, records, svg_of
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.formatting import counted, listed
from jobcast.pipelines.report.layout import Drawing, aligned, render
from jobcast.traces.files import replacing

LEVEL = "90 %"
"""Of the intervals that are told in words, whose ends are `p5` and `p95`."""
COLUMNS = ("job", "user", "pool", "GPUs", "state", "starts", "ends by")


def sentence(job: Mapping[str, Any], clock: Clock) -> str:
    """What is forecast of a job at its own width, and when it ends at others.

    Parameters
    ----------
    job : where it stands (`job_id`, `user`, `pool`, `state`, `started`, `gpus`) and `answers` by width: ends in hours
        from the instant, and those of its `start` where it has not started
    """
    own, *others = job["answers"]
    about = ", ".join(filter(None, (job["user"], counted(own["gpus"], "GPU"), job["pool"] and f"pool {job['pool']}")))
    certain = own["p5_h"] == own["p95_h"]
    level = "if nothing else comes" if certain else f"with {LEVEL}"
    text = f"job {job['job_id']} ({about}): {_begins(job, clock)}, ends {_ends(own, clock, job)} {level}"
    for other in others:
        text += f"; with {counted(other['gpus'], 'GPU')} instead of {own['gpus']}: ends {_ends(other, clock, job)}"
    return text


def _begins(job: Mapping[str, Any], clock: Clock) -> str:
    if job["started"] is None:
        start = job["answers"][0]["start"]
        return f"starts {clock.between(*_instants(start, clock))}"
    began = clock.said(datetime.fromisoformat(job["started"]).timestamp())
    return f"runs since {began}" if job["state"] == "running" else f"ran from {began} on and waits again"


def _ends(answer: Mapping[str, Any], clock: Clock, job: Mapping[str, Any]) -> str:
    low_s, high_s = _instants(answer, clock)
    # Of a job that waits the latest end matters; of one that runs, both.
    return clock.between(low_s if job["state"] == "running" or low_s == high_s else clock.at_s, high_s)


def _instants(ends: Mapping[str, Any], clock: Clock) -> tuple[float, float]:
    return clock.at_s + ends["p5_h"] * HOUR_S, clock.at_s + ends["p95_h"] * HOUR_S


def queue_table(jobs: Sequence[Mapping[str, Any]], clock: Clock) -> str:
    """All jobs that wait or run, a line each."""
    rows = [COLUMNS]
    for job in jobs:
        own = job["answers"][0]
        begins = _begins(job, clock).removeprefix("starts ")
        ends = clock.said(ceil(_instants(own, clock)[1] / MINUTE_S) * MINUTE_S)
        rows.append((job["job_id"], job["user"], job["pool"], str(own["gpus"]), job["state"], begins, ends))
    return aligned(rows)


def calibrated_on(calibrated: Mapping[str, Mapping[str, int]]) -> str:
    """What intervals were calibrated on, empty where they were not.

    >>> calibrated_on({"start": {"due": 214, "kept": 197}, "end": {"due": 90, "kept": 82}})
    'calibrated on 214 promises of starts (197 kept) and 90 promises of ends (82 kept)'
    """
    rows = [f"{counted(one['due'], 'promise')} of {kind}s ({one['kept']} kept)" for kind, one in calibrated.items()]
    return f"calibrated on {listed(rows)}" if rows else ""


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
        .mark_rule(strokeWidth=4, strokeCap="round")  # a dot where both ends are one instant
        .encode(x="low:Q", x2="high:Q", y="y:Q", color=alt.Color("colour:N", scale=None))
    )
    drawn = later(np.concatenate([one.drawn_s for one in told]))
    spread = drawn.max() / drawn.min() > LOG_FROM
    x = Axis(f"{unit} from {clock.said(clock.at_s)} ({clock.name})", scale="log" if spread else "linear")
    share = Axis("share of futures in which it has come", "chance", low=min(y) - 0.03, high=1.0)
    return curves(title, series, x, share, colours=colours, beside=[bars], room=True, height=300)
