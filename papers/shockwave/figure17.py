"""Shockwave, Figure 17 (appendix J): arrivals and run times of a real cluster."""

from pathlib import Path

from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.pipelines.report.formatting import iso
from papers.plotting import bars
from papers.runs import BASELINES, FAIR, SHOCKWAVE, SIMPLE, Task, means, ratio, run_all
from papers.sheets import (
    Claim,
    claims,
    comparison,
    picture,
    who_is_better,
    write_page,
    write_runs,
)
from papers.shockwave.workloads import philly

CASE = "philly"
JOBS, GPUS = 160, 32
"""160 jobs: as in the Pollux paper's trace."""


def figure17(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    scenario = philly(data, JOBS, GPUS)
    done = run_all([Task(CASE, scenario, policy, ORACLE) for policy in (SHOCKWAVE, *BASELINES, *SIMPLE)])
    found = means(done)
    write_runs(out, "figure17", done)
    bars(out, "figure17", "Philly's arrivals and run times", found)
    gain = 100 * (ratio(found, CASE, "makespan_s", FAIR) - 1)
    jobs = scenario.workload.jobs
    about = (
        "The trace that Pollux used is not at hand; this is Philly, which it was cut from: "
        f"{JOBS} jobs in a row (submitted {iso(jobs[0].submit_s)} to {iso(jobs[-1].submit_s)}, wall clock read as "
        "UTC), the first window whose jobs would come nearest to holding 3 times the GPUs if nobody waited. Jobs "
        "shorter than 0.2 or longer than 5 hours are left out, widths above 8 are cut to 8; nothing is scaled. Jobs "
        "report no epochs; all policies are told the true run times."
    )
    parts = [
        "# Figure 17: a real cluster's trace",
        about,
        comparison(found, CASE),
        who_is_better(found, CASE),
        picture("figure17", "Philly's arrivals and run times"),
        "## Against the paper",
        claims([Claim("makespan of Themis, Gavel, AlloX above Shockwave's", "20 %", f"{gain:.0f} %", gain > 0)]),
    ]
    write_page(out, "figure17", parts)
