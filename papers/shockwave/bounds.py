"""Shockwave on large clusters: how far its makespan is above what no schedule can beat, and its least fair job."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.schedulers.policies import RoundMechanism
from papers.results import Page, grid, number, numbers, result, run_all
from papers.shockwave.figure9 import SIZES
from papers.shockwave.runs import MAKESPAN, RULE, SHOCKWAVE, WORST, Task, run
from papers.shockwave.workloads import WISR, drawn

DRAWN = (460, 900)
SEEDS = range(2)
MOST_ABOVE, MOST_UNFAIR = 1.03, 1.3
"""Our own bars."""


CLAIRVOYANT = "longest first, oracle"
"""Exact run times and no fairness: OSSP where no gap makes it ask HiGHS."""
SAME = 1e-9
"""Rounds that differ by less are the same."""


def jobs_of(scenario: RigidScenario) -> tuple[Floats, Floats, Floats]:
    """Seconds from the first submission to each, ascending, run times alone, and GPUs asked for over all, (n,) each."""
    workload = scenario.workload
    submit_s, gpus = np.array([(job.submit_s, job.gpus) for job in workload.jobs]).T
    run_s = np.array([outcome.duration_s for outcome in workload.outcomes])
    return submit_s - submit_s[0], run_s, gpus / workload.total_gpus


def bound_s(scenario: RigidScenario) -> float:
    """No schedule ends sooner: a job alone from its submission on, or all that arrives from then on by all GPUs."""
    submit_s, run_s, share = jobs_of(scenario)
    load_s = np.cumsum((share * run_s)[::-1])[::-1]
    return float(np.max(submit_s + np.maximum(run_s, load_s)))


def rounds_bound_s(scenario: RigidScenario, mechanism: RoundMechanism) -> float:
    """No schedule by rounds ends sooner: jobs have whole rounds and a start, and none before they are there.

    By any round no more can be done than if all jobs ran from their submissions on; what is left then takes all GPUs.
    """
    submit_s, run_s, share = jobs_of(scenario)
    first = np.ceil(submit_s / mechanism.round_s - SAME)
    rounds = np.ceil((run_s + mechanism.restart_s) / mechanism.round_s - SAME)
    ends = first + rounds
    until = max(at + float(share @ np.clip(ends - at, 0.0, rounds)) for at in (*first, *ends))
    # The last one may end as soon as its last round has begun.
    return float(np.ceil(until - SAME) - 1.0) * mechanism.round_s


def bounds(data: Path, page: Page) -> None:
    """Write the page and its table into a folder."""
    scenarios = {
        f"{jobs} jobs, {gpus} GPUs, seed {seed}": drawn(data, seed, WISR, jobs=jobs, gpus=gpus)
        for jobs, gpus in SIZES.values()
        if jobs in DRAWN
        for seed in SEEDS
    }
    tasks: list[Task] = []
    for case, one in scenarios.items():
        exact = Task(case, one, "ossp", ORACLE, {"gap": "1"}, label=CLAIRVOYANT)
        tasks += [Task(case, one, SHOCKWAVE), Task(case, one, RULE), exact]
    done = page.runs(run_all(run, tasks))
    rounds = RoundMechanism()
    least = {case: (bound_s(scenario), rounds_bound_s(scenario, rounds)) for case, scenario in scenarios.items()}
    shares = [[one.figures[MAKESPAN.key] / bound for bound in least[one.case]] for one in done]
    rows = [
        (one.case, one.name, *(number(value, 3) for value in share), WORST.text(one.figures))
        for one, share in zip(done, shares, strict=True)
    ]
    ours = (share for one, share in zip(done, shares, strict=True) if one.name == SHOCKWAVE)
    above, near = zip(*ours, strict=True)
    page.write(
        table=grid(("workload", "policy", "makespan / bound", "/ bound of rounds", WORST.title), rows),
        above=_within(above, MOST_ABOVE, 3),
        near=_within(near, MOST_ABOVE, 3),
        least=result(numbers((by_rounds / plain for plain, by_rounds in least.values()), 3)),
        worst=_within([one.figures[WORST.key] for one in done if one.name == SHOCKWAVE], MOST_UNFAIR, 2),
    )


def _within(values: Sequence[float], most: float, digits: int) -> str:
    return result(numbers(values, digits), max(values) <= most)
