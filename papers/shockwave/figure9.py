"""Shockwave, Figure 9 (section 8.5): 64 to 256 GPUs."""

from pathlib import Path

import numpy as np

from papers.results import Claim, Means, Page, claims, numbers, read_rows, result, run_all
from papers.shockwave.runs import MAKESPAN, RULE, SHOCKWAVE, UNFAIR, WORST, Task, ratio, run, trials, write_cases
from papers.shockwave.workloads import WISR, drawn, published

OTHERS = (RULE, "ossp", "themis_filter", "gavel", "allox", "gandiva_fair")
SIZES = {"64 GPUs, 220 jobs": (220, 64), "128 GPUs, 460 jobs": (460, 128), "256 GPUs, 900 jobs": (900, 256)}
PUBLISHED = 220  # jobs of a published trace
SEED = 0
PERTURBATIONS = 3
RATIOS = read_rows(Path(__file__).with_suffix(".csv"))
"""Makespan and worst FTF relative to Shockwave's, as printed."""


def figure9(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenarios = {
        case: published(data, jobs, gpus, WISR) if jobs == PUBLISHED else drawn(data, SEED, WISR, jobs=jobs, gpus=gpus)
        for case, (jobs, gpus) in SIZES.items()
    }
    policies = (SHOCKWAVE, *OTHERS)
    tasks = [Task(case, one, policy) for case, one in scenarios.items() for policy in policies]
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
