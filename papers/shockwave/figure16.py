"""Shockwave, Figure 16 (section 8.8, appendix I): contention."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papers.results import Means, Page, result, run_all
from papers.shockwave.runs import FAIR, MAKESPAN, SHOCKWAVE, UNFAIR, WORST, Task, above, ratio, run, write_cases
from papers.shockwave.workloads import drawn

CONTENTIONS = (3.0, 2.0, 1.5)
JOBS, GPUS = 52, 14
"""The paper prints no number of jobs; this is as many a GPU as in its trace of 120 on 32."""
SEEDS = range(3)
POLICIES = (SHOCKWAVE, "ossp", "themis_filter", "gavel", "allox", "gandiva_fair")


def figure16(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    cases = [f"contention {one:g}" for one in CONTENTIONS]
    tasks = [
        Task(case, scenario, policy)
        for case, contention in zip(cases, CONTENTIONS, strict=True)
        for scenario in (drawn(data, seed, jobs=JOBS, gpus=GPUS, contention=contention) for seed in SEEDS)
        for policy in POLICIES
    ]
    found, tables = write_cases(page, "Contention", run_all(run, tasks))
    page.write(jobs=JOBS, gpus=GPUS, seeds=len(SEEDS), tables=tables, **_found(found, cases))


def _found(found: Means, cases: Sequence[str]) -> dict[str, str]:
    gains = [100 * (ratio(found, case, MAKESPAN) - 1) for case in cases]
    gained = zip(("gain3", "gain2", "gain15"), (result(f"{gain:.0f} %", gain > 0) for gain in gains), strict=True)
    falls = gains == sorted(gains, reverse=True)
    mine, theirs = (
        float(np.mean([found[case, name][UNFAIR.key] for case in cases for name in names]))
        for names in ((SHOCKWAVE,), FAIR)
    )
    return {
        **dict(gained),
        "falls": result("yes" if falls else "no", falls),
        "unfair": result(f"{mine:.1f} %, {theirs:.1f} %", mine < theirs),
        "worst": above(ratio(found, cases[1], WORST)),
    }
