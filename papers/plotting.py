"""Plots of the figures, as SVG files on white."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.pipelines.report.plots import DASHES, INK, WIDE, Style, draw, legend_beside, styles, thin_cdf
from papers.runs import BASELINES, SHOCKWAVE, SIMPLE, Done, Means, means
from papers.sheets import (
    HOUR_S,
    Claim,
    claims,
    comparison,
    picture,
    who_is_better,
    write_page,
    write_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (
    ("makespan, h", "makespan_s", 1 / HOUR_S),
    ("mean JCT, h", "mean_jct_s", 1 / HOUR_S),
    ("worst FTF", "worst_ftf", 1.0),
    ("jobs with FTF > 1, %", "unfair_pct_100", 1.0),
)
TALL_PANEL = 2.6
MOST_BARS_LABELLED = 12
ALWAYS = (SHOCKWAVE, *BASELINES, *SIMPLE)


def save(out: Path, name: str, title: str, paint: "Callable[[Figure], None]", size: tuple[float, float] = WIDE) -> None:
    """Draw `NAME.svg` into a folder, made where it is missing."""
    svg = draw(title, paint, size).replace("currentColor", INK)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.svg").write_text(svg.replace("<svg ", '<svg style="background:white" ', 1) + "\n", encoding="utf-8")


def bars(out: Path, name: str, title: str, found: Means) -> None:
    """Four panels, as the paper has them: a group of bars a case, a bar a policy."""
    cases = list(dict.fromkeys(case for case, _ in found))
    names = list(dict.fromkeys(label for _, label in found))

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(2, 2)
        for axes, (said, key, scale) in zip(panels.flat, PANELS, strict=True):
            values = {one: [found.get((case, one), {}).get(key, np.nan) * scale for case in cases] for one in names}
            _grouped(axes, cases, values)
            axes.set_title(said, loc="left")
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside right center")

    save(out, name, title, paint, (WIDE[0], 2 * TALL_PANEL))


def _grouped(axes: "Axes", cases: Sequence[str], values: Mapping[str, Sequence[float]]) -> None:
    width = 0.82 / len(values)
    style = _styles(list(values))
    for i, (label, heights) in enumerate(values.items()):
        at = np.arange(len(cases)) + (i - (len(values) - 1) / 2) * width
        hatch = "" if style[label].dashes == DASHES[0] else "//"
        drawn = axes.bar(
            at, heights, width * 0.92, label=label, color=style[label].color, hatch=hatch, edgecolor="white"
        )
        if len(cases) * len(values) <= MOST_BARS_LABELLED:
            axes.bar_label(drawn, fmt="%.3g", fontsize=7, padding=1)
    axes.set_xticks(np.arange(len(cases)), cases if len(cases) > 1 else [""] * len(cases), fontsize=8.5)
    axes.grid(axis="x", visible=False)


def _styles(labels: Sequence[str]) -> dict[str, Style]:
    """Styles by which a policy looks alike in all figures."""
    return styles([*ALWAYS, *(label for label in labels if label not in ALWAYS)])


def distributions(axes: "Axes", values: Mapping[str, Sequence[float]], said: str) -> None:
    """Distribution functions, a line a name."""
    style = _styles(list(values))
    for label, numbers in values.items():
        x, share = thin_cdf(numbers)
        axes.step(x, share, where="post", label=label, **style[label].line)
    axes.set(xlabel=said, ylabel="share of jobs", ylim=(0, 1.02))
    legend_beside(axes)


def write_cases(
    out: Path,
    name: str,
    heading: str,
    about: str,
    done: Sequence[Done],
    claimed: "Callable[[Means], Iterable[Claim]]",
    *,
    title: str,
    says: str = "",
    also: Sequence[str] = (),
) -> None:
    """Write `NAME.md`, its table of runs and its bars: a table of policies for each case, then the paper's claims.

    Parameters
    ----------
    heading, about : of the page
    done : the runs, in the order of cases
    claimed : claims of the paper, from the means
    title, says : of the plot, and for those who cannot see it
    also : further parts below the plot
    """
    found = means(done)
    write_runs(out, name, done)
    bars(out, name, title, found)
    cases = dict.fromkeys(case for case, _ in found)
    tables = [part for case in cases for part in (f"## {case}", comparison(found, case), who_is_better(found, case))]
    shown = [picture(name, says or title), *also]
    write_page(out, name, [f"# {heading}", about, *tables, *shown, "## Against the paper", claims(claimed(found))])


def gpus_over_time(done: Done, groups: Sequence[int], count: int, step_s: float) -> "np.ndarray":
    """GPUs in use by group of jobs, (count, n_steps), averaged over steps from the first submission on.

    Parameters
    ----------
    groups : (n_jobs,) of each job, from 0
    """
    log, of = done.log, np.asarray(groups)
    begin_s = float(log.submit_s.min())
    steps = int(np.ceil((float(np.nanmax(log.end_s)) - begin_s) / step_s))
    used = np.zeros((count, steps))
    for seq, start_s, end_s in zip(log.spans.job, log.spans.from_s - begin_s, log.spans.until_s - begin_s, strict=True):
        for step in range(int(start_s // step_s), min(steps, int(np.ceil(end_s / step_s)))):
            held_s = min(end_s, (step + 1) * step_s) - max(start_s, step * step_s)
            used[of[seq], step] += log.gpus[seq] * held_s / step_s
    return used
