"""Shockwave, Figure 16 (section 8.8, appendix I): contention."""

from pathlib import Path

import numpy as np

from papers.plotting import write_cases
from papers.runs import FAIR, SHOCKWAVE, Means, Task, ratio, run_all
from papers.sheets import Claim
from papers.shockwave.workloads import drawn

CONTENTIONS = (3.0, 2.0, 1.5)
JOBS, GPUS = 52, 14
"""The paper prints no number of jobs; this is as many a GPU as in its trace of 120 on 32."""
SEEDS = range(3)
POLICIES = (SHOCKWAVE, "ossp", "themis_filter", "gavel", "allox", "gandiva_fair")
PRINTED = {3.0: "35 %", 2.0: "19 %", 1.5: "8 %"}
"""How much longer Gavel, AlloX and Themis take than Shockwave."""
ABOUT = (
    f"{JOBS} jobs of the generator on {GPUS} GPUs, means of {len(SEEDS)} draws; arrivals are spread such that jobs "
    "would hold 3, 2 or 1.5 times the GPUs if nobody waited. (The paper counts jobs, not GPUs, per GPU.) All policies "
    "are told the run times of the restatement rule."
)


def figure16(data: Path, out: Path) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = [
        Task(_case(contention), scenario, policy)
        for contention in CONTENTIONS
        for scenario in (drawn(data, seed, jobs=JOBS, gpus=GPUS, contention=contention) for seed in SEEDS)
        for policy in POLICIES
    ]
    heading, says = "Figure 16: contention", "Figures by contention"
    write_cases(out, "figure16", heading, ABOUT, run_all(tasks), _claims, title="Contention", says=says)


def _case(contention: float) -> str:
    return f"contention {contention:g}"


def _claims(found: Means) -> list[Claim]:
    gains = {one: 100 * (ratio(found, _case(one), "makespan_s", FAIR) - 1) for one in CONTENTIONS}
    made = [
        Claim(f"contention {one:g}: makespan of Gavel, AlloX, Themis above", PRINTED[one], f"{gain:.0f} %", gain > 0)
        for one, gain in gains.items()
    ]
    ordered = [gains[one] for one in CONTENTIONS]
    mine = float(np.mean([found[_case(one), SHOCKWAVE]["unfair_pct_100"] for one in CONTENTIONS]))
    theirs = float(np.mean([found[_case(one), name]["unfair_pct_100"] for one in CONTENTIONS for name in FAIR]))
    worst = ratio(found, _case(2.0), "worst_ftf", FAIR)
    falls = ordered == sorted(ordered, reverse=True)
    return [
        *made,
        Claim("the win falls with contention", "yes", "yes" if falls else "no", falls),
        Claim("unfair jobs, Shockwave and the three", "8.67 %, 24.7 %", f"{mine:.1f} %, {theirs:.1f} %", mine < theirs),
        Claim("contention 2: worst FTF of the three / Shockwave's", "1.27", f"{worst:.2f}", worst > 1),
    ]
