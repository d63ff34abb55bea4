"""PCS, Figure 8 (section 5.3): Gavel's continuous-multiple workload at four jobs an hour on 64 GPUs."""

from papers.pcs.fronts import GAVEL, LIGHT, NAMES, Sources
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import JOBS, SHOWN, TITLES, Task, by_policy, gavel, percent, percents, policies, run
from papers.results import Claim, Means, Page, claims, means, number, of_case, run_all

SEEDS = tuple(range(5))
AT_WIDTH, ON_ONE = "run times at a job's width", "run times on one GPU"
FRONTS = {AT_WIDTH: GAVEL, ON_ONE: LIGHT}


def figure8(sources: Sources, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for case, key in FRONTS.items():
        chosen = sources.configs(key)
        for seed in SEEDS:
            scenario = gavel(seed, at_width=case == AT_WIDTH)
            tasks += [Task(case, name, scenario, config=config) for name, config in chosen.items()]
            tasks += policies(case, scenario, SHOWN)
    done = page.runs(run_all(run, tasks))
    found = means(done)
    jct_and_errors(page, f"Workload 3, {AT_WIDTH}", of_case(found, AT_WIDTH))
    tables = {"at_width": by_policy(found, AT_WIDTH), "on_one": by_policy(found, ON_ONE)}
    said = claims(claim for case in FRONTS for claim in _claims(found, case))
    page.write(seeds=len(SEEDS), jobs=JOBS, **tables, claims=said)


def _claims(found: Means, case: str) -> list[Claim]:
    rows = of_case(found, case)
    quick = (TITLES["srsf"], TITLES["afs"], TITLES["elastic_themis"], NAMES[0])
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    mean, tail = ([rows[name][key] for name in quick] for key in ("mean_error_pct", "p99_error_pct"))
    jct = {name: rows[name]["mean_jct_s"] / lowest for name in NAMES}
    others = ", ".join(f"{percent(rows[name]['p99_error_pct'])} at {jct[name]:.2f}" for name in NAMES[1:])
    ours, most = jct[NAMES[0]], "reasonably low"
    return [
        Claim(f"{case}: mean error of Tiresias, AFS, Themis, PCS-jct", most, f"{percents(mean)} %"),
        Claim(f"{case}: p99 error of Tiresias, AFS, Themis", "at least 300 %", percents(tail[:3])),
        Claim(f"{case}: p99 error of PCS-jct", "about 100 %", f"{percent(tail[3])} %", tail[3] < min(tail[:3])),
        Claim(f"{case}: mean JCT of PCS-jct / lowest", "within 1.1", number(ours), ours <= 1.1),
        Claim(f"{case}: p99 error at mean JCT / lowest, PCS-bal, PCS-pred", "", others),
    ]
