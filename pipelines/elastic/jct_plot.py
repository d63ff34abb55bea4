"""The distribution of a job's completion: the share of futures in which it has finished, by hours from then."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.elastic.predicting import HOUR_S, Answer, Question
from jobcast.pipelines.plots import INK, WIDE, draw, plain_ticks, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_FROM = 30.0
"""Futures that are so many times apart are drawn over a logarithmic axis."""


def check_plot(path: Path) -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in (".svg", ".html"):
        raise ConfigError(f"--plot {path}: end the name in .svg or .html")


def write_plot(path: Path, result: Mapping[str, Any], answers: Sequence[Answer], question: Question) -> None:
    """Draw the answers as curves, with the point forecast of each as a line and its 90 % interval as a bar below."""
    title = f"job {result['job_id']} under {result['policy']}, asked at {result['at']}"
    svg = draw(title, lambda figure: _paint(figure, answers, question), WIDE).replace("currentColor", INK)
    svg = svg.replace("<svg ", '<svg style="background:white" ', 1)
    if path.suffix.lower() == ".html":
        svg = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<body style="font-family:sans-serif;max-width:70rem;margin:2rem auto">{svg}'
            "</body></html>"
        )
    path.write_text(svg + "\n", encoding="utf-8")


def _paint(figure: "Figure", answers: Sequence[Answer], question: Question) -> None:
    axes = figure.subplots()
    names = [f"{one.gpus} GPU" + "s" * (one.gpus > 1) for one in answers]
    hours = [np.sort(one.ends_s - question.at_s) / HOUR_S for one in answers]
    drawn = styles(names)
    for place, (one, name, at) in enumerate(zip(answers, names, hours, strict=True)):
        style = drawn[name]
        share = np.arange(1, len(at) + 1) / len(at)
        axes.step(at, share, where="post", label=name, **style.line)
        low, high = np.quantile(at, [0.05, 0.95])
        axes.plot([low, high], [-0.05 - 0.05 * place] * 2, color=style.color, linewidth=4, solid_capstyle="butt")
        if np.isfinite(one.point_s):
            axes.axvline((one.point_s - question.at_s) / HOUR_S, color=style.color, linewidth=0.9, linestyle=":")
    least, most = min(at[0] for at in hours), max(at[-1] for at in hours)
    if least > 0 and most / least > LOG_FROM:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    axes.set_xlabel("hours from the question; bars: 90 % intervals; dotted: declared sizes, nothing more arriving")
    axes.set_ylabel("share of futures in which it has finished")
    axes.set_yticks(np.linspace(0.0, 1.0, 6))
    axes.legend(loc="lower right")
