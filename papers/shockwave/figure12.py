"""Shockwave, Figure 12 (section 8.9): what planning costs with many active jobs."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.domain.training import Progress, Regime
from jobcast.pipelines.experiments.forecast_specs import RESTATEMENT
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.rounds import work_forecasts
from jobcast.pipelines.report.plots import PALETTE
from jobcast.schedulers.registry import make_rule
from jobcast.schedulers.rounds import RESTART_S, ROUND_S
from papers.plotting import save
from papers.runs import NO_HOME, SHOCKWAVE
from papers.sheets import Claim, claims, grid, number, picture, write_csv, write_page
from papers.shockwave.workloads import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACTIVE = (100, 500, 1_000, 2_000)
GPUS = 256
SEEDS = range(3)
PRINTED = {500: 0.03, 1_000: 0.11, 2_000: 0.44}
"""Bound gap in % after 15 s."""
GAP = "solver_gap_max"
MOST_DONE = 0.9


@dataclass(frozen=True, slots=True)
class Planned:
    """A window that was planned: seconds that it took, and how far it may be from the best, %."""

    jobs: int
    seed: int
    wall_s: float
    gap_pct: float


def state_of(scenario: RigidScenario, seed: int) -> RoundState:
    """A round in which all jobs of a scenario are there, each somewhere on its first batch size; as many run as fit."""
    rng = np.random.default_rng(seed)
    free, active = scenario.workload.total_gpus, []
    now_s = float(rng.uniform(1, 2) * 3600)
    for job in scenario.workload.jobs:
        training = job.training
        if training is None:
            continue
        epochs = float(np.floor(rng.uniform(0, MOST_DONE) * training.epochs))
        run_s = epochs * training.epoch_s[training.batch_size]
        running = job.gpus <= free
        free -= job.gpus if running else 0
        progress = Progress(epochs, (Regime(training.batch_size, epochs),))
        active.append(ActiveJob(job, run_s, run_s, running, progress))
    return RoundState(now_s, 1, ROUND_S, RESTART_S, scenario.workload.total_gpus, active)


def planned(data: Path, jobs: int, seed: int) -> Planned:
    """Plan one window for so many active jobs."""
    scenario = drawn(data, seed, jobs=jobs, gpus=GPUS, arrivals="batch")
    forecasts = work_forecasts(scenario, RESTATEMENT, home=NO_HOME, seed=0, allow_overlap=False).forecasts
    rule, state = make_rule(SHOCKWAVE, forecasts), state_of(scenario, seed)
    begin_s = perf_counter()
    rule.choose(state)
    wall_s = perf_counter() - begin_s
    return Planned(jobs, seed, wall_s, 100 * rule.figures()[GAP])


def figure12(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    planned(data, ACTIVE[0], 0)  # imports are nobody's planning time
    made = [planned(data, jobs, seed) for jobs in ACTIVE for seed in SEEDS]
    rows = [(one.jobs, one.seed, f"{one.wall_s:.3g}", f"{one.gap_pct:.4g}") for one in made]
    write_csv(out, "figure12", ("active_jobs", "seed", "wall_s", "gap_pct"), rows)
    _plot(out, made)
    write_page(out, "figure12", _parts(made))


def _parts(made: list[Planned]) -> list[str]:
    def of(jobs: int) -> list[Planned]:
        return [one for one in made if one.jobs == jobs]

    lines = [
        (
            f"{jobs:,}",
            number(float(np.median([one.wall_s for one in of(jobs)]))),
            number(max(one.wall_s for one in of(jobs))),
            number(float(np.median([one.gap_pct for one in of(jobs)])), 3),
            number(max(one.gap_pct for one in of(jobs)), 3),
            number(PRINTED.get(jobs, float("nan"))),
        )
        for jobs in ACTIVE
    ]
    longest = max(one.wall_s for one in made)
    head = ("active jobs", "median s", "longest s", "median gap, %", "largest gap, %", "gap of the paper after 15 s, %")
    gaps = ", ".join(f"{jobs:,}: {line[3]} %" for jobs, line in zip(ACTIVE, lines, strict=True))
    return [
        "# Figure 12: what planning costs",
        f"One window of 30 rounds on {GPUS} GPUs, jobs of the generator, each somewhere in its first regime; "
        f"{len(SEEDS)} draws. Seconds are of one core and differ from machine to machine. The gap is between a plan's "
        "value and a bound that none exceeds, relative to the value; it is of the programme of equation 11, whose "
        "values the paper's solver scales in a way that it does not print.",
        grid(head, lines),
        picture("figure12", "Seconds and gap by active jobs"),
        claims(
            [
                Claim(
                    "planning fits into half a round (60 s)", "15 s", f"{longest:.1f} s at most", longest < ROUND_S / 2
                ),
                Claim("bound gap (here the median)", "0.03 %, 0.11 %, 0.44 % at 500, 1,000, 2,000", gaps),
            ]
        ),
    ]


def _plot(out: Path, made: list[Planned]) -> None:
    def paint(figure: "Figure") -> None:
        panels = figure.subplots(1, 2)
        at = [one.jobs for one in made]
        panels[0].scatter(at, [one.wall_s for one in made], color=PALETTE[0])
        panels[1].scatter(at, [one.gap_pct for one in made], color=PALETTE[0], label="here")
        panels[1].scatter(list(PRINTED), list(PRINTED.values()), color=PALETTE[1], marker="x", label="paper, 15 s")
        panels[0].set(xlabel="active jobs", ylabel="seconds", ylim=(0, None))
        panels[1].set_yscale("symlog", linthresh=0.01)
        panels[1].set(xlabel="active jobs", ylabel="bound gap, %", ylim=(0, None))
        panels[1].legend()

    save(out, "figure12", "Planning one window", paint, (10.4, 3.6))
