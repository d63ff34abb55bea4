"""Shockwave on large clusters: how far its makespan is above what no schedule can beat, and its least fair job."""

from collections.abc import Sequence
from pathlib import Path

from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from papers.results import Done, Page, grid, number, numbers, result, run_all
from papers.shockwave.figure9 import SIZES
from papers.shockwave.runs import MAKESPAN, RULE, SHOCKWAVE, WORST, Task, run
from papers.shockwave.workloads import WISR, drawn

DRAWN = (460, 900)
SEEDS = range(2)
MOST_ABOVE, MOST_UNFAIR = 1.03, 1.3
"""Our own bars."""


def bound_s(scenario: RigidScenario) -> float:
    """No schedule ends sooner: a job's run time alone after its submission, or all work on all GPUs."""
    pairs = list(zip(scenario.workload.jobs, scenario.workload.outcomes, strict=True))
    begin_s = min(job.submit_s for job, _ in pairs)
    longest = max(job.submit_s + outcome.duration_s for job, outcome in pairs) - begin_s
    load = sum(job.gpus * outcome.duration_s for job, outcome in pairs) / scenario.workload.total_gpus
    return max(longest, load)


def bounds(data: Path, page: Page) -> None:
    """Write the page and its table into a folder."""
    sizes = [size for size in SIZES.values() if size[0] in DRAWN]
    scenarios = {
        f"{jobs} jobs, {gpus} GPUs, seed {seed}": drawn(data, seed, WISR, jobs=jobs, gpus=gpus)
        for jobs, gpus in sizes
        for seed in SEEDS
    }
    done = page.runs(
        run_all(run, [Task(case, one, name) for case, one in scenarios.items() for name in (SHOCKWAVE, RULE)])
    )
    least = {case: bound_s(scenario) for case, scenario in scenarios.items()}
    rows = [(one.case, one.name, number(_above(one, least[one.case]), 3), WORST.text(one.figures)) for one in done]
    ours = [one for one in done if one.name == SHOCKWAVE]
    above, worst = [_above(one, least[one.case]) for one in ours], [one.figures[WORST.key] for one in ours]
    page.write(
        table=grid(("workload", "policy", "makespan / bound", WORST.title), rows),
        above=_within(above, MOST_ABOVE, 3),
        worst=_within(worst, MOST_UNFAIR, 2),
    )


def _above(one: Done, least_s: float) -> float:
    return one.figures[MAKESPAN.key] / least_s


def _within(values: Sequence[float], most: float, digits: int) -> str:
    return result(numbers(values, digits), max(values) <= most)
