"""Shockwave, Figures 3 and 14 (section 2.3, appendix A.2): what scaling batches costs in accuracy.

The accuracies are those that Pollux's authors measured, of whole trainings at fixed batch sizes. A training that
changes its batch size is told by the epochs of those at the size nearest to what it has, as in their simulator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jobcast.domain.arrays import Floats
from jobcast.models.goodput import efficiency, noise_scale
from jobcast.pipelines.experiments.scaling_jobs import Application, application
from jobcast.pipelines.report.look import PALETTE
from jobcast.traces.goodput_tables import NoiseCurve
from papers.plotting import save
from papers.results import Page, lines, number, result
from papers.shockwave.pollux_jobs import tables_of

GPUS = 2
"""As in section 2.3."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Batch sizes of a training by epoch; minutes that it takes, and its metric at each end, %. All (n_epochs,)."""

    name: str
    sizes: Floats
    end_min: Floats
    metric: Floats


def schedules(app: Application, curves: Mapping[int, NoiseCurve], first: int) -> tuple[Schedule, Schedule, Schedule]:
    """The smallest batch throughout, the largest goodput from that epoch on, and from the first on.

    Parameters
    ----------
    curves : measured, by batch size
    first : epoch, from 1, at whose begin the expert lets the batch grow
    """
    small, measured = min(curves), np.array(list(curves))
    pollux = np.array([phase.batch_size[GPUS - 1] for phase in app.work.phases], dtype=np.float64)
    vanilla, epochs = np.full_like(pollux, small), np.arange(len(pollux))
    work = np.diff(curves[small].progress, prepend=0.0) * small
    noise = noise_scale(curves[small], small)

    def schedule(name: str, sizes: Floats) -> Schedule:
        useful = [float(efficiency(size, small, one)) for size, one in zip(sizes, noise, strict=True)]
        rates = useful * np.array([app.samples_s(GPUS, int(size)) for size in sizes])
        nearest = measured[np.abs(np.log(measured / sizes[:, None])).argmin(axis=1)]
        metric = [100 * curves[size].metric[epoch] for epoch, size in zip(epochs, nearest.tolist(), strict=True)]
        return Schedule(name, sizes, np.cumsum(work / rates) / 60, np.array(metric))

    expert = np.where(epochs + 1 < first, vanilla, pollux)
    return schedule("vanilla", vanilla), schedule("expert", expert), schedule("pollux", pollux)


def figure3(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder: cifar10, whose expert waits for 20 epochs."""
    _written(data, page, "cifar10", 21)


def figure14(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder: ncf, whose expert scales at epoch 3."""
    _written(data, page, "ncf", 3)


def _written(data: Path, page: Page, name: str, first: int) -> None:
    tables = tables_of(data)
    curves = tables.curves[name]
    vanilla, _, pollux = made = schedules(application(name, tables, GPUS), curves, first)
    epochs = range(len(vanilla.sizes))
    rows = [
        (one.name, at + 1, *(f"{of[at]:.5g}" for of in (one.sizes, one.end_min, one.metric)))
        for one in made
        for at in epochs
    ]
    page.csv(("schedule", "epoch", "batch_size", "end_min", "metric_pct"), rows)
    save(page, "Accuracy and batch size", _paint, (10.4, 3.6), made)
    ends = {size: 100 * float(curve.metric[-1]) for size, curve in curves.items()}
    lost, chance = float(vanilla.metric[-1] - pollux.metric[-1]), float(np.abs(np.diff(list(ends.values()))).max())
    faster = [float(vanilla.end_min[-1] / one.end_min[-1]) for one in made]
    page.write(
        gpus=GPUS,
        lines=lines(_line(one, by) for one, by in zip(made, faster, strict=True)),
        fixed=lines((f"{size:,}", number(end), number(100 * curves[size].metric.max())) for size, end in ends.items()),
        begins=result(", ".join(f"{size:,.0f}" for size in pollux.sizes[:2])),
        faster=result(f"{faster[-1]:.1f} times", faster[-1] > 1.0),
        expert=result(f"{faster[1]:.1f} times", faster[1] > 1.0),
        lost=result(f"{lost:.2f} points, chance up to {chance:.2f}", lost > 0.0 if abs(lost) > chance else None),
    )


def _line(one: Schedule, faster: float) -> tuple[str, ...]:
    sizes = f"{one.sizes[0]:,.0f} to {one.sizes[-1]:,.0f}"
    return one.name, sizes, number(float(one.end_min[-1]), 1), number(faster, 1), number(float(one.metric[-1]))


def _paint(figure: Figure, made: Sequence[Schedule]) -> None:
    metric, sizes = figure.subplots(1, 2)
    for one, color in zip(made, PALETTE, strict=False):
        epochs = np.arange(1, len(one.sizes) + 1)
        metric.plot(epochs, one.metric, color=color, label=one.name)
        sizes.plot(epochs, one.sizes, color=color, label=one.name)
    sizes.set_yscale("log", base=2)
    sizes.yaxis.set_major_formatter("{x:,.0f}")  # pictures hold text, not what mathtext would draw of it
    metric.set(xlabel="epoch", ylabel="validation, %")
    sizes.set(xlabel="epoch", ylabel="batch size")
    sizes.legend()
