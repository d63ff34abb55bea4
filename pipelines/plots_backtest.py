"""Plots of a backtest: speedups, slowdowns, utilisation, gains with intervals. SIA, Figures 11, 13 and 15."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.pipelines import plots
from jobcast.pipelines.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_IN = 0.85


def speedup_cdf(
    speedups: Mapping[str, ArrayLike], looks: Mapping[str, plots.Style] | None = None, baseline: str = "the baseline"
) -> str:
    """Distribution of the jobs' speedups (JCT of the baseline / JCT), a curve a configuration. SIA, Figure 11."""
    looks = looks or plots.styles(list(speedups))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axvline(1.0, color=plots.INK, linewidth=0.9, alpha=0.6)
        for label, values in speedups.items():
            axes.step(*plots.thin_cdf(values), where="post", label=label, **looks[label].line)
        axes.set_xscale("log")
        axes.set_ylim(-0.01, 1.02)
        plots.plain_ticks(axes.xaxis)
        plots.percent_ticks(axes.yaxis)
        axes.set_xlabel(f"speedup: JCT under {baseline} / JCT (log scale; left of 1 = slowed)")
        axes.set_ylabel("jobs at or below")
        plots.legend_beside(axes)

    return plots.draw(f"Distribution of job speedups against {baseline}", paint)


def slowdown_curve(slowdowns_min: Mapping[str, ArrayLike], looks: Mapping[str, plots.Style] | None = None) -> str:
    """Share of all jobs that are slowed by more than so many minutes, a curve a configuration. SIA, Figure 13.

    Parameters
    ----------
    slowdowns_min : minutes by which each job ends later than under the baseline; 0 or less = not slowed
    """
    looks = looks or plots.styles(list(slowdowns_min))

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for label, values in slowdowns_min.items():
            minutes = np.asarray(values, dtype=np.float64)
            late = minutes[minutes > 0]
            if len(late):
                x, below = plots.thin_cdf(late)
                above = (1 - below + 1 / len(late)) * len(late) / len(minutes)
                axes.step(x, above, where="pre", label=label, **looks[label].line)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plots.plain_ticks(axes.xaxis, axes.yaxis)
        plots.percent_ticks(axes.yaxis)
        axes.set_xlabel("minutes later than under the baseline (log scale)")
        axes.set_ylabel("jobs slowed by at least that (log scale)")
        if axes.lines:
            plots.legend_beside(axes)
        else:
            axes.text(0.5, 0.5, "no job is slowed", transform=axes.transAxes, ha="center")

    return plots.draw("Share of jobs slowed by at least so many minutes", paint)


def utilisation(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    looks: Mapping[str, plots.Style] | None = None,
    title: str = "Utilisation over time by configuration",
) -> str:
    """Share of the cluster's GPUs at work over time, a panel a configuration.

    Parameters
    ----------
    series : label -> (times in seconds from the epoch, ascending and evenly spaced; shares of 1)
    """
    looks = looks or plots.styles(list(series))
    curves = {label: _coarser(*pair) for label, pair in series.items()}
    steps_h = max((step for *_, step in curves.values()), default=1.0)

    def paint(figure: "Figure") -> None:
        panels = figure.subplots(len(curves), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (label, (times_s, shares, _)) in zip(panels, curves.items(), strict=True):
            axes.fill_between(times_s, shares, step="post", color=looks[label].color, alpha=0.75, linewidth=0)
            axes.set_ylim(0, 1.02)
            axes.margins(x=0)
            axes.set_yticks([0, 0.5, 1])
            plots.percent_ticks(axes.yaxis)
            mean = float(np.mean(shares)) if len(shares) else 0.0
            axes.set_title(f"{label} (mean {100 * mean:.0f} %)", loc="left", fontsize=9, pad=3)
        plots.date_ticks(panels[-1])
        panels[-1].set_xlabel(f"UTC; GPUs at work as a share of all, means over {steps_h:g} h")

    return plots.draw(title, paint, (plots.WIDE[0], 1.0 + PANEL_IN * max(1, len(curves))))


def _coarser(times_s: ArrayLike, shares: ArrayLike) -> tuple[Floats, Floats, float]:
    """At most `MOST_POINTS` means of neighbours, and the hours that each covers."""
    times, values = np.asarray(times_s, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    group = max(1, -(-len(times) // plots.MOST_POINTS))
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
    names = [f"{plots.wrapped(gain['label'])}\nover {plots.wrapped(gain['against'])}" for gain in rows]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axvline(1.0, color=plots.INK, linewidth=0.9, alpha=0.6)
        for row, gain in enumerate(rows):
            value = gain["ratio"]
            low, high = gain["low"] or value, gain["high"] or value
            clear = low > 1 or high < 1
            axes.plot([low, high], [row, row], color=plots.PALETTE[0] if clear else plots.INK, linewidth=2.4, alpha=0.8)
            axes.plot([value], [row], "o", color=plots.PALETTE[0] if clear else plots.INK, markersize=6)
            axes.annotate(number(value), (value, row), xytext=(0, 7), textcoords="offset points", ha="center",
                          fontsize=9)  # fmt: skip
        axes.set_xscale("log")
        plots.plain_ticks(axes.xaxis)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.75)
        axes.set_xlabel("times as fast (geometric mean, log scale; right of 1 = the first is faster)")
        axes.grid(axis="y", visible=False)

    return plots.draw("Paired gains with confidence intervals", paint, (plots.WIDE[0], 1.3 + 0.6 * max(1, len(rows))))
