"""Shockwave, Figure 9 (section 8.5): 64 to 256 GPUs."""

from pathlib import Path

import numpy as np

from papers.plotting import write_cases
from papers.runs import SHOCKWAVE, Means, Task, ratio, run_all
from papers.sheets import Claim
from papers.shockwave.workloads import WISR, drawn, published

OTHERS = ("ossp", "themis_filter", "gavel", "allox", "gandiva_fair")
SIZES = {"64 GPUs, 220 jobs": (220, 64), "128 GPUs, 460 jobs": (460, 128), "256 GPUs, 900 jobs": (900, 256)}
PUBLISHED = 220  # jobs of a published trace
SEED = 0
RATIOS = (
    ("themis_filter", "Themis", "1.26-1.35", "2.5"),
    ("gavel", "Gavel", "1.3-1.34", "2.4"),
    ("allox", "AlloX", "1.35-1.37", "3.1"),
    ("gandiva_fair", "Gandiva-Fair", "1.21-1.3", "3.9"),
)
"""Makespan and worst FTF relative to Shockwave's, as printed."""
ABOUT = (
    "64 GPUs: the published trace of 220 jobs. The larger ones are draws of the generator (section 8.1) at the default "
    "contention. All policies are told the run times of the restatement rule."
)


def figure9(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenarios = {
        case: published(data, jobs, gpus, WISR) if jobs == PUBLISHED else drawn(data, SEED, WISR, jobs=jobs, gpus=gpus)
        for case, (jobs, gpus) in SIZES.items()
    }
    done = run_all(
        [Task(case, scenario, policy) for case, scenario in scenarios.items() for policy in (SHOCKWAVE, *OTHERS)]
    )
    write_cases(out, "figure9", "Figure 9: larger clusters", ABOUT, done, _claims, title="Larger clusters")


def _claims(found: Means) -> list[Claim]:
    made = []
    for name, said, makespan, worst in RATIOS:
        spans = [ratio(found, case, "makespan_s", (name,)) for case in SIZES]
        fairness = float(np.mean([ratio(found, case, "worst_ftf", (name,)) for case in SIZES]))
        made.append(Claim(f"makespan of {said} / Shockwave's", makespan, _each(spans), min(spans) > 1))
        made.append(Claim(f"worst FTF of {said} / Shockwave's, mean", worst, f"{fairness:.2f}", fairness > 1))
    ossp = [100 * (1 / ratio(found, case, "makespan_s", ("ossp",)) - 1) for case in SIZES]
    shown = ", ".join(f"{value:.0f} %" for value in ossp)
    worst_mean = float(np.mean([found[case, SHOCKWAVE]["worst_ftf"] for case in SIZES]))
    unfair = float(np.mean([found[case, SHOCKWAVE]["unfair_pct_100"] for case in SIZES]))
    others = [found[case, name]["unfair_pct_100"] for case in SIZES for name, *_ in RATIOS]
    return [
        *made,
        Claim("makespan of Shockwave above OSSP's", "5-9 %", shown, min(ossp) > 0),
        Claim("worst FTF of Shockwave, mean", "1.32", f"{worst_mean:.2f}", None),
        Claim(
            "unfair jobs: Shockwave, and the mean of the fair baselines",
            "4 %, 24 %",
            f"{unfair:.1f} %, {np.mean(others):.1f} %",
            unfair < float(np.mean(others)),
        ),
    ]


def _each(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
