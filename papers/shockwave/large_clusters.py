"""Shockwave on large clusters: Figure 9 (section 8.5), and how far it is above what no schedule can beat."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.schedulers.policies import RoundMechanism
from papers.results import Claim, Means, Page, Replayed, claims, grid, number, numbers, read_rows, result, run_all
from papers.shockwave.runs import MAKESPAN, RULE, SHOCKWAVE, UNFAIR, WORST, Task, ratio, run, trials, write_cases
from papers.shockwave.workloads import TACC, WISR, drawn, published, resampled

OTHERS = (RULE, "ossp", "themis_filter", "gavel", "allox", "gandiva_fair")
SIZES = {"64 GPUs, 220 jobs": (220, 64), "128 GPUs, 460 jobs": (460, 128), "256 GPUs, 900 jobs": (900, 256)}
PERTURBATIONS = 3
RATIOS = read_rows(Path(__file__).with_name("figure9.csv"))
"""Makespan and worst FTF relative to Shockwave's, as printed."""
LARGE = (460, 900)
"""Numbers of jobs that no trace at hand was published with."""
MOST_ABOVE, MOST_UNFAIR = 1.03, 1.3
"""Our own bars."""
RESAMPLED, DRAWN = "resampled", "drawn"
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


def workloads(data: Path) -> dict[str, RigidScenario]:
    """By name: jobs of the published traces at both tables of throughputs, and draws of the generator."""
    kinds: Sequence[tuple[str, Callable[..., RigidScenario], str, int]] = (
        (RESAMPLED, resampled, TACC, 3),
        (RESAMPLED, resampled, WISR, 3),
        (DRAWN, drawn, WISR, 2),
    )
    return {
        f"{name}, {rates.removesuffix('.csv')}, {jobs} jobs, {gpus} GPUs, seed {seed}": make(
            data, seed, rates, jobs=jobs, gpus=gpus
        )
        for name, make, rates, seeds in kinds
        for jobs, gpus in SIZES.values()
        if jobs in LARGE
        for seed in range(seeds)
    }


def bounds(data: Path, page: Page) -> None:
    """Write the page and its table into a folder."""
    scenarios = workloads(data)
    tasks: list[Task] = []
    for case, one in scenarios.items():
        exact = Task(case, one, "ossp", ORACLE, {"gap": "1"}, label=CLAIRVOYANT)
        tasks += [Task(case, one, SHOCKWAVE), Task(case, one, RULE), exact]
    done = page.runs(run_all(run, tasks))
    least = {
        case: (bound_s(scenario), rounds_bound_s(scenario, RoundMechanism())) for case, scenario in scenarios.items()
    }
    shares = [[one.figures[MAKESPAN.key] / bound for bound in least[one.case]] for one in done]
    rows = [
        (one.case, one.name, *(number(value, 3) for value in share), WORST.text(one.figures))
        for one, share in zip(done, shares, strict=True)
    ]
    page.write(
        table=grid(("workload", "policy", "makespan / bound", "/ bound of rounds", WORST.title), rows),
        claims=claims(claim for kind in (RESAMPLED, DRAWN) for claim in _claims(kind, done, least)),
    )


def _claims(kind: str, done: Sequence[Replayed], least: Mapping[str, tuple[float, float]]) -> list[Claim]:
    """Our bars beside what Shockwave reached on the workloads of a kind."""
    ours = [one for one in done if one.name == SHOCKWAVE and one.case.startswith(kind)]
    plain_s, rounds_s = np.array([least[one.case] for one in ours]).T
    makespan_s = np.array([one.figures[MAKESPAN.key] for one in ours])
    return [
        _claim(f"{kind}: makespan / bound", makespan_s / plain_s, MOST_ABOVE, 3),
        _claim(f"{kind}: makespan / bound of rounds", makespan_s / rounds_s, MOST_ABOVE, 3),
        Claim(f"{kind}: bound of rounds / bound", "", numbers(rounds_s / plain_s, 3)),
        _claim(f"{kind}: worst FTF", np.array([one.figures[WORST.key] for one in ours]), MOST_UNFAIR, 2),
    ]


def _claim(text: str, values: Floats, most: float, digits: int) -> Claim:
    return Claim(text, f"at most {most:g}", numbers(values, digits), bool(values.max() <= most))


def figure9(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenarios = {
        case: published(data, jobs, gpus, WISR) if jobs not in LARGE else drawn(data, 0, WISR, jobs=jobs, gpus=gpus)
        for case, (jobs, gpus) in SIZES.items()
    }
    tasks = [Task(case, one, policy) for case, one in scenarios.items() for policy in (SHOCKWAVE, *OTHERS)]
    done = run_all(run, trials(tasks, 1, PERTURBATIONS))
    found, tables = write_cases(page, "Larger clusters", done)
    ossp = [100 * (1 / ratio(found, case, MAKESPAN, ("ossp",)) - 1) for case in SIZES]
    worst, mine = (float(np.mean([found[case, SHOCKWAVE][one.key] for case in SIZES])) for one in (WORST, UNFAIR))
    theirs = float(np.mean([found[case, row["policy"]][UNFAIR.key] for case in SIZES for row in RATIOS]))
    page.write(
        tables=tables,
        most=PERTURBATIONS,
        claims=claims(_ratios(found)),
        ossp=result(", ".join(f"{value:.0f} %" for value in ossp), min(ossp) > 0),
        worst=result(f"{worst:.2f}"),
        unfair=result(f"{mine:.1f} %, {theirs:.1f} %", mine < theirs),
    )


def _ratios(found: Means) -> list[Claim]:
    made = []
    for policy, said, makespan, worst in (row.values() for row in RATIOS):
        spans, unfair = ([ratio(found, case, one, (policy,)) for case in SIZES] for one in (MAKESPAN, WORST))
        fairness = float(np.mean(unfair))
        made.append(Claim(f"makespan of {said} / Shockwave's", makespan, numbers(spans), min(spans) > 1))
        made.append(Claim(f"worst FTF of {said} / Shockwave's, mean", worst, f"{fairness:.2f}", fairness > 1))
    return made
