"""Shockwave, Figure 10 (section 8.6): from jobs that never change their batch size to jobs that all do."""

from pathlib import Path

import numpy as np

from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from papers.results import Means, Page, number, result, run_all
from papers.shockwave.runs import FAIR, GREEDY, JCT, MAKESPAN, SHOCKWAVE, UNFAIR, Task, above, ratio, run, write_cases
from papers.shockwave.workloads import drawn

STATIC_SHARES = (1.0, 0.6, 0.4, 0.0)
JOBS, GPUS = 120, 32
SEEDS = range(3)
MARKED = 0.05
"""A ratio that grows by less has not grown."""
FORECASTING = ("ossp", "themis_filter", "allox")
OTHERS = ("gavel", "gandiva_fair")


def mix(data: Path, seed: int, static: float, jobs: int = JOBS, gpus: int = GPUS) -> RigidScenario:
    """A draw in which a share of the jobs never changes its batch size."""
    half = (1 - static) / 2
    return drawn(data, seed, jobs=jobs, gpus=gpus, mode_shares=f"{static:g},{half:g},{half:g}")


def figure10(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for static in STATIC_SHARES:
        for scenario in (mix(data, seed, static) for seed in SEEDS):
            tasks.append(Task(_case(static), scenario, SHOCKWAVE))
            tasks += [Task(_case(static), scenario, policy, GREEDY) for policy in FORECASTING]
            tasks += [Task(_case(static), scenario, policy) for policy in OTHERS]
    found, tables = write_cases(page, "Static and dynamic jobs", run_all(run, tasks))
    page.write(jobs=JOBS, gpus=GPUS, seeds=len(SEEDS), tables=tables, **_found(found))


def _case(static: float) -> str:
    return f"(S, D) = ({static:g}, {1 - static:g})"


def _found(found: Means) -> dict[str, str]:
    none, all_ = _case(STATIC_SHARES[0]), _case(STATIC_SHARES[-1])
    first, last = (ratio(found, case, MAKESPAN) for case in (none, all_))
    static, dynamic = ({name: found[case, name][UNFAIR.key] for name in (SHOCKWAVE, *FAIR)} for case in (none, all_))
    others = float(np.mean([static[name] for name in FAIR]))
    themis, allox, mine = (dynamic[name] for name in ("themis_filter", "allox", SHOCKWAVE))
    less_fair = themis > static["themis_filter"] and allox > static["allox"]
    return {
        "first": above(first),
        "jct": result(number(ratio(found, none, JCT))),
        "unfair_static": result(f"{static[SHOCKWAVE]:.1f} %, {others:.1f} %", static[SHOCKWAVE] < others),
        "last": above(last),
        "grown": result(f"{last - first:+.2f}", last - first > MARKED),
        "unfair_dynamic": result(f"{themis:.0f} %, {allox:.0f} %, {mine:.0f} %", mine < min(themis, allox)),
        "less_fair": result("yes" if less_fair else "no", less_fair),
    }
