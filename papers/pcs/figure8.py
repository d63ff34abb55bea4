"""PCS, Figure 8 (section 5.3): Gavel's continuous-multiple workload at four jobs an hour on 64 GPUs."""

from pathlib import Path

from papers.pcs.fronts import GAVEL, LIGHT, NAMES, configs, front_of
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import TITLES, Task, policies, run_all
from papers.pcs.tables import by_policy, of_case, percent, write_runs
from papers.pcs.workloads import JOBS, gavel
from papers.runs import Means, means
from papers.sheets import Claim, claims, number, picture, write_page

SEEDS = tuple(range(5))
OTHERS = ("elastic_fifo", "srsf", "elastic_las", "afs", "elastic_themis", "elastic_fair")
AT_WIDTH, ON_ONE = "run times at a job's width", "run times on one GPU"
FRONTS = {AT_WIDTH: GAVEL, ON_ONE: LIGHT}
ABOUT = (
    f"{len(SEEDS)} draws of {JOBS} jobs, four an hour on average, linear speedups; figures are means over draws. Gavel "
    "draws a job's run time at its width, which is an offered load of 2; taken for run times on one GPU, as elastic "
    "jobs of PCS have theirs, it is 1.05. Each reading has a search of its own, on other draws, for mean JCT and p99 "
    "error. Nothing ever empties the cluster at such loads: how large errors get depends on the number of jobs."
)


def figure8(data: Path, out: Path, fronts: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    tasks = []
    for case, key in FRONTS.items():
        chosen = configs(front_of(fronts, key))
        for seed in SEEDS:
            scenario = gavel(seed, at_width=case == AT_WIDTH)
            tasks += [Task(case, name, scenario, config=config) for name, config in chosen.items()]
            tasks += policies(case, scenario, OTHERS)
    done = run_all(tasks)
    found = means(done)
    write_runs(out, "figure8", done)
    jct_and_errors(out, "figure8", f"Workload 3, {AT_WIDTH}", of_case(found, AT_WIDTH))
    tables = [part for case in FRONTS for part in (f"## {case[0].upper()}{case[1:]}", by_policy(found, case))]
    shown = picture("figure8", "JCT and errors of workload 3")
    write_page(
        out,
        "figure8",
        [
            "# Figure 8: Gavel's workload",
            ABOUT,
            *tables[:2],
            shown,
            *tables[2:],
            "## Against the paper",
            claims(_claims(found)),
        ],
    )


def _claims(found: Means) -> list[Claim]:
    made = []
    quick = (TITLES["srsf"], TITLES["afs"], TITLES["elastic_themis"], NAMES[0])
    for case in FRONTS:
        rows = of_case(found, case)
        lowest = min(figures["mean_jct_s"] for figures in rows.values())
        mean = ", ".join(percent(rows[name]["mean_error_pct"]) for name in quick)
        tail = [rows[name]["p99_error_pct"] for name in quick]
        jct = rows[NAMES[0]]["mean_jct_s"] / lowest
        others = ", ".join(
            f"{percent(rows[name]['p99_error_pct'])} at {rows[name]['mean_jct_s'] / lowest:.2f}" for name in NAMES[1:]
        )
        made += [
            Claim(f"{case}: mean error of Tiresias, AFS, Themis, PCS-jct", "reasonably low", f"{mean} %", None),
            Claim(
                f"{case}: p99 error of Tiresias, AFS, Themis",
                "at least 300 %",
                ", ".join(percent(one) for one in tail[:3]),
                None,
            ),
            Claim(f"{case}: p99 error of PCS-jct", "about 100 %", f"{percent(tail[3])} %", tail[3] < min(tail[:3])),
            Claim(f"{case}: mean JCT of PCS-jct / lowest", "within 1.1", number(jct), jct <= 1.1),
            Claim(f"{case}: p99 error at mean JCT / lowest, PCS-bal, PCS-pred", "", others, None),
        ]
    return made
