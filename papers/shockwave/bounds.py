"""Shockwave on large clusters: how far its makespan is above what no schedule can beat, and its least fair job."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.schedulers.policies import RoundMechanism
from papers.page import grid, number, numbers, result, write_page, write_runs
from papers.runs import Done, run_all
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
    submit_s, run_s, share = np.array(
        [
            (job.submit_s, outcome.duration_s, job.gpus / scenario.workload.total_gpus)
            for job, outcome in zip(scenario.workload.jobs, scenario.workload.outcomes, strict=True)
        ]
    ).T
    return submit_s - submit_s[0], run_s, share


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


def bounds(data: Path, out: Path) -> None:
    """Write the page and its table into a folder."""
    sizes = [size for size in SIZES.values() if size[0] in DRAWN]
    scenarios = {
        f"{jobs} jobs, {gpus} GPUs, seed {seed}": drawn(data, seed, WISR, jobs=jobs, gpus=gpus)
        for jobs, gpus in sizes
        for seed in SEEDS
    }
    tasks = [
        task
        for case, one in scenarios.items()
        for task in (
            Task(case, one, SHOCKWAVE),
            Task(case, one, RULE),
            Task(case, one, "ossp", ORACLE, {"gap": "1"}, label=CLAIRVOYANT),
        )
    ]
    done = run_all(run, tasks)
    write_runs(out, "bounds", done)
    least = {case: bound_s(scenario) for case, scenario in scenarios.items()}
    reached = {case: rounds_bound_s(scenario, RoundMechanism()) for case, scenario in scenarios.items()}
    rows = [
        (one.case, one.name, *(number(_above(one, by), 3) for by in (least, reached)), WORST.text(one.figures))
        for one in done
    ]
    ours = [one for one in done if one.name == SHOCKWAVE]
    above, near = ([_above(one, by) for one in ours] for by in (least, reached))
    worst = [one.figures[WORST.key] for one in ours]
    write_page(
        __file__,
        out,
        table=grid(("workload", "policy", "makespan / bound", "/ bound of rounds", WORST.title), rows),
        above=_within(above, MOST_ABOVE, 3),
        near=_within(near, MOST_ABOVE, 3),
        least=result(numbers((reached[case] / least[case] for case in least), 3)),
        worst=_within(worst, MOST_UNFAIR, 2),
    )


def _above(one: Done, least_s: Mapping[str, float]) -> float:
    return one.figures[MAKESPAN.key] / least_s[one.case]


def _within(values: Sequence[float], most: float, digits: int) -> str:
    return result(numbers(values, digits), max(values) <= most)
