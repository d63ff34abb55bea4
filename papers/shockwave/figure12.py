"""Shockwave, Figure 12 (section 8.9): what planning costs with many active jobs."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.domain.training import Progress, Regime
from jobcast.pipelines.experiments.forecast_specs import RESTATEMENT
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.rounds import work_forecasts
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.report.look import PALETTE
from jobcast.schedulers.registry import make_rule
from jobcast.schedulers.rounds import RESTART_S, ROUND_S
from papers.plotting import save
from papers.results import Page, lines, number, result
from papers.shockwave.runs import NO_HOME, SHOCKWAVE
from papers.shockwave.workloads import drawn

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
    forecasts = work_forecasts(scenario, Ask(policy=SHOCKWAVE, spec=RESTATEMENT, home=NO_HOME)).source
    rule, state = make_rule(SHOCKWAVE, forecasts), state_of(scenario, seed)
    begin_s = perf_counter()
    rule.choose(state)
    wall_s = perf_counter() - begin_s
    return Planned(jobs, seed, wall_s, 100 * rule.figures()[GAP])


def figure12(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    planned(data, ACTIVE[0], 0)  # imports are nobody's planning time
    made = [planned(data, jobs, seed) for jobs in ACTIVE for seed in SEEDS]
    rows = [(one.jobs, one.seed, f"{one.wall_s:.3g}", f"{one.gap_pct:.4g}") for one in made]
    page.csv(("active_jobs", "seed", "wall_s", "gap_pct"), rows)
    save(page, "Planning one window", _paint, (10.4, 3.6), made)
    cells = [_line(jobs, [one for one in made if one.jobs == jobs]) for jobs in ACTIVE]
    longest = max(one.wall_s for one in made)
    page.write(
        gpus=GPUS,
        seeds=len(SEEDS),
        lines=lines(cells),
        fits=result(f"{longest:.1f} s at most", longest < ROUND_S / 2),
        gaps=result(", ".join(f"{jobs}: {gap} %" for jobs, _, _, gap, *_ in cells)),
    )


def _line(jobs: int, made: list[Planned]) -> tuple[str, ...]:
    walls, gaps = [one.wall_s for one in made], [one.gap_pct for one in made]
    wall = number(float(np.median(walls))), number(max(walls))
    gap = number(float(np.median(gaps)), 3), number(max(gaps), 3)
    return (f"{jobs:,}", *wall, *gap, number(PRINTED.get(jobs, float("nan"))))


def _paint(figure: Figure, made: list[Planned]) -> None:
    panels = figure.subplots(1, 2)
    at = [one.jobs for one in made]
    panels[0].scatter(at, [one.wall_s for one in made], color=PALETTE[0])
    panels[1].scatter(at, [one.gap_pct for one in made], color=PALETTE[0], label="here")
    panels[1].scatter(list(PRINTED), list(PRINTED.values()), color=PALETTE[1], marker="x", label="paper, 15 s")
    panels[0].set(xlabel="active jobs", ylabel="seconds", ylim=(0, None))
    panels[1].set_yscale("symlog", linthresh=0.01)
    panels[1].yaxis.set_major_formatter("{x:g}")  # pictures hold text, not what mathtext would draw of it
    panels[1].set(xlabel="active jobs", ylabel="bound gap, %", ylim=(0, None))
    panels[1].legend()
