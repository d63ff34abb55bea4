"""Shockwave, Figures 16 and 17 (section 8.8, appendices I and J): contention, and jobs as on a real cluster."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.report.formatting import iso
from papers.results import Means, Page, result, run_all
from papers.shockwave import runs as r
from papers.shockwave.workloads import drawn, philly

CONTENTIONS = (3.0, 2.0, 1.5)
JOBS, GPUS = 52, 14
"""The paper prints no number of jobs; this is as many a GPU as in its trace of 120 on 32."""
SEEDS = range(3)
CONTENDING = (r.SHOCKWAVE, "ossp", "themis_filter", "gavel", "allox", "gandiva_fair")


def figure16(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    cases = [f"contention {one:g}" for one in CONTENTIONS]
    tasks = [
        r.Task(case, scenario, policy)
        for case, contention in zip(cases, CONTENTIONS, strict=True)
        for scenario in (drawn(data, seed, jobs=JOBS, gpus=GPUS, contention=contention) for seed in SEEDS)
        for policy in CONTENDING
    ]
    found, tables = r.write_cases(page, "Contention", run_all(r.run, tasks))
    page.write(jobs=JOBS, gpus=GPUS, seeds=len(SEEDS), tables=tables, **_found(found, cases))


def _found(found: Means, cases: Sequence[str]) -> dict[str, str]:
    gains = [100 * (r.ratio(found, case, r.MAKESPAN) - 1) for case in cases]
    gained = zip(("gain3", "gain2", "gain15"), (result(f"{gain:.0f} %", gain > 0) for gain in gains), strict=True)
    falls = gains == sorted(gains, reverse=True)
    mine, theirs = (
        float(np.mean([found[case, name][r.UNFAIR.key] for case in cases for name in names]))
        for names in ((r.SHOCKWAVE,), r.FAIR)
    )
    return {
        **dict(gained),
        "falls": result("yes" if falls else "no", falls),
        "unfair": result(f"{mine:.1f} %, {theirs:.1f} %", mine < theirs),
        "worst": r.above(r.ratio(found, cases[1], r.WORST)),
    }


CASE = "philly"
PHILLY_JOBS, PHILLY_GPUS = 160, 32
PERTURBATIONS = 20
"""160 jobs: as in the Pollux paper's trace."""


def figure17(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenario = philly(data, PHILLY_JOBS, PHILLY_GPUS)
    tasks = [r.Task(CASE, scenario, policy, ORACLE) for policy in (r.SHOCKWAVE, *r.BASELINES, *r.SIMPLE)]
    done = run_all(r.run, r.trials(tasks, 1, PERTURBATIONS))
    found, (_, table, better) = r.write_cases(page, "Philly's arrivals and run times", done)
    gain = 100 * (r.ratio(found, CASE, r.MAKESPAN) - 1)
    first, last = (iso(scenario.workload.jobs[at].submit_s) for at in (0, -1))
    figures = result(f"{gain:.0f} %", gain > 0)
    page.write(jobs=PHILLY_JOBS, most=PERTURBATIONS, first=first, last=last, table=table, better=better, gain=figures)
