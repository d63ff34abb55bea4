"""Shockwave, Figure 17 (appendix J): arrivals and run times of a real cluster."""

from pathlib import Path

from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.report.formatting import iso
from papers.results import Page, result, run_all
from papers.shockwave.runs import BASELINES, MAKESPAN, SHOCKWAVE, SIMPLE, Task, ratio, run, trials, write_cases
from papers.shockwave.workloads import philly

CASE = "philly"
JOBS, GPUS = 160, 32
PERTURBATIONS = 20
"""160 jobs: as in the Pollux paper's trace."""


def figure17(data: Path, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenario = philly(data, JOBS, GPUS)
    tasks = [Task(CASE, scenario, policy, ORACLE) for policy in (SHOCKWAVE, *BASELINES, *SIMPLE)]
    done = run_all(run, trials(tasks, 1, PERTURBATIONS))
    found, (_, table, better) = write_cases(page, "Philly's arrivals and run times", done)
    gain = 100 * (ratio(found, CASE, MAKESPAN) - 1)
    first, last = (iso(scenario.workload.jobs[at].submit_s) for at in (0, -1))
    figures = result(f"{gain:.0f} %", gain > 0)
    page.write(jobs=JOBS, most=PERTURBATIONS, first=first, last=last, table=table, better=better, gain=figures)
