"""Shockwave, Figure 7 (section 8.3): 120 jobs on 32 GPUs."""

from dataclasses import replace
from pathlib import Path

from jobcast.pipelines.experiments.forecast_specs import ORACLE
from papers.results import Means, Measure, Page, number, numbers, result, run_all
from papers.shockwave import runs
from papers.shockwave.runs import BASELINES, GREEDY, JCT, MAKESPAN, SHOCKWAVE, SIMPLE, UNFAIR, WORST, Task, above
from papers.shockwave.workloads import TACC, published

JOBS, GPUS = 120, 32
SAME, EXACT, REACTIVE = "restatement", "other forecasts for shockwave", "reactive baselines"
THEIRS = "published mechanism"
PERTURBATIONS, FEWER = 20, 5
"""Of Shockwave and the rule that it must beat, and of other forecasts; of all else there is one."""
REACTING = ("ossp", "themis_filter", "allox", "srpt")


def figure7(data: Path, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    scenario = published(data, JOBS, GPUS, TACC)
    alike = [Task(SAME, scenario, policy) for policy in (SHOCKWAVE, *BASELINES, *SIMPLE)]
    others = [Task(EXACT, scenario, SHOCKWAVE, one, label=f"{SHOCKWAVE}, {one.label}") for one in (ORACLE, GREEDY)]
    rest = [Task(REACTIVE, scenario, policy, GREEDY) for policy in REACTING]
    theirs = [Task(THEIRS, scenario, policy, settings={"mechanism": "gavel"}) for policy in (SHOCKWAVE, *BASELINES)]
    tasks = [*runs.trials(alike, 1, PERTURBATIONS), *runs.trials(others, FEWER, FEWER)]
    tasks += runs.trials(rest + theirs, 1, 1)
    done = run_all(runs.run, tasks)
    ours = [one for one in done if (one.case, one.name) == (SAME, SHOCKWAVE)]
    done = [*(replace(one, case=case) for case in (EXACT, REACTIVE) for one in ours), *done]
    found = runs.medians(done)
    page.runs(done)
    runs.bars(page, "120 jobs on 32 GPUs", {key: found[key] for key in found if key[0] == SAME})
    drawn = {one.name: one for one in done if one.case == SAME}
    runs.fairness_cdfs(page.named("figure7-ftf"), "Finish-time fairness, 120 jobs on 32 GPUs", list(drawn.values()))
    shown = {"alike": SAME, "theirs": THEIRS, "others": EXACT, "reactive": REACTIVE}
    tables = {name: runs.comparison(found, case) for name, case in shown.items()}
    better = runs.who_is_better(found, SAME)
    page.write(**tables, most=PERTURBATIONS, fewer=FEWER, better=better, **_found(found))


def _found(found: Means) -> dict[str, str]:
    def by(measure: Measure, *names: str) -> float:
        return runs.ratio(found, SAME, measure, names or runs.FAIR)

    used = 100 * (1 / by(runs.USED) - 1)
    mine, ossp, mst = (found[SAME, name] for name in (SHOCKWAVE, "ossp", "mst"))
    slow, others = by(JCT, "ossp"), [by(JCT, name) for name in BASELINES if name != "ossp"]
    return {
        "makespan": above(by(MAKESPAN)),
        "mst": above(by(MAKESPAN, "mst")),
        "ossp": result(number(by(MAKESPAN, "ossp"))),
        "used": result(f"{used:.0f} %", used > 0),
        "worst": result(WORST.text(mine)),
        "worse": above(by(WORST)),
        "worst_others": result(numbers(one[WORST.key] for one in (ossp, mst))),
        "unfair": above(by(UNFAIR)),
        "unfair_ossp": result(f"{UNFAIR.text(ossp)} %"),
        "jct": result(number(by(JCT, "themis_filter", "gavel", "mst"))),
        "jct_allox": result(number(by(JCT, "allox")), by(JCT, "allox") < 1),
        "jct_ossp": result(number(slow), slow > max(1.0, *others)),
    }
