"""Shockwave, Figure 10 (section 8.6): from jobs that never change their batch size to jobs that all do."""

from pathlib import Path

import numpy as np

from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from papers.plotting import write_cases
from papers.runs import FAIR, GREEDY, SHOCKWAVE, Means, Task, ratio, run_all
from papers.sheets import Claim
from papers.shockwave.workloads import drawn

STATIC_SHARES = (1.0, 0.6, 0.4, 0.0)
JOBS, GPUS = 120, 32
SEEDS = range(3)
MARKED = 0.05
"""A ratio that grows by less has not grown."""
FORECASTING = ("ossp", "themis_filter", "allox")
OTHERS = ("gavel", "gandiva_fair")
ABOUT = (
    f"{JOBS} jobs of the generator on {GPUS} GPUs, means of {len(SEEDS)} draws; those that are not static adapt by "
    "Accordion or GNS, half each. (S, D) = (0.6, 0.4): 60 % static. Baselines that ask for run times only react, as in "
    "the paper: they take the batch size of the moment for the one until the end. Shockwave forecasts by the "
    "restatement rule."
)


def mix(data: Path, seed: int, static: float, jobs: int = JOBS, gpus: int = GPUS) -> RigidScenario:
    """A draw in which a share of the jobs never changes its batch size."""
    half = (1 - static) / 2
    return drawn(data, seed, jobs=jobs, gpus=gpus, mode_shares=f"{static:g},{half:g},{half:g}")


def figure10(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for static in STATIC_SHARES:
        for scenario in (mix(data, seed, static) for seed in SEEDS):
            tasks.append(Task(_case(static), scenario, SHOCKWAVE))
            tasks += [Task(_case(static), scenario, policy, GREEDY) for policy in FORECASTING]
            tasks += [Task(_case(static), scenario, policy) for policy in OTHERS]
    heading, title = "Figure 10: static and dynamic jobs", "Static and dynamic jobs"
    write_cases(out, "figure10", heading, ABOUT, run_all(tasks), _claims, title=title)


def _case(static: float) -> str:
    return f"(S, D) = ({static:g}, {1 - static:g})"


def _claims(found: Means) -> list[Claim]:
    none, all_ = _case(STATIC_SHARES[0]), _case(STATIC_SHARES[-1])
    first, last = ratio(found, none, "makespan_s", FAIR), ratio(found, all_, "makespan_s", FAIR)
    grown = last - first > MARKED
    jct = ratio(found, none, "mean_jct_s", FAIR)
    unfair = {(case, name): found[case, name]["unfair_pct_100"] for case in (none, all_) for name in (SHOCKWAVE, *FAIR)}
    others = float(np.mean([unfair[none, name] for name in FAIR]))
    shown = ", ".join(f"{unfair[all_, name]:.0f} %" for name in ("themis_filter", "allox", SHOCKWAVE))
    grows = all(unfair[all_, name] > unfair[none, name] for name in ("themis_filter", "allox"))
    return [
        Claim("all static: makespan of Themis, Gavel, AlloX / Shockwave's", "1.18", f"{first:.2f}", first > 1),
        Claim("all static: no loss in mean JCT (theirs / Shockwave's)", "about 1", f"{jct:.2f}", None),
        Claim(
            "all static: unfair jobs, Shockwave and the three",
            "< 5 %, < 18 %",
            f"{unfair[none, SHOCKWAVE]:.1f} %, {others:.1f} %",
            unfair[none, SHOCKWAVE] < others,
        ),
        Claim("all dynamic: makespan of the three / Shockwave's", "1.3", f"{last:.2f}", last > 1),
        Claim("the win in makespan grows with the share of dynamic jobs", "yes", f"{last - first:+.2f}", grown),
        Claim(
            "all dynamic: unfair jobs of Themis, AlloX, Shockwave",
            "28 %, 22 %, 9 %",
            shown,
            unfair[all_, SHOCKWAVE] < min(unfair[all_, "themis_filter"], unfair[all_, "allox"]),
        ),
        Claim("Themis and AlloX are less fair the more jobs are dynamic", "yes", "yes" if grows else "no", grows),
    ]
