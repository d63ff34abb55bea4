"""PCS, Figure 7 (section 5.3): two Philly virtual clusters on 64 GPUs."""

from pathlib import Path

from jobcast.schedulers.elastic.config import WfqConfig
from papers.pcs import aims
from papers.pcs.aims import aims_table, row_tasks, window
from papers.pcs.fronts import CLUSTERS, NAMES, configs, front_of
from papers.pcs.measured import CONFIGURED, THEIRS, compared, published_configs
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import TITLES, Task, policies, run_all
from papers.pcs.tables import by_policy, of_case, percent, write_runs
from papers.pcs.workloads import MEASURED_JOBS, published
from papers.runs import Means, means
from papers.sheets import Claim, claims, number, picture, write_page

OTHERS = ("elastic_fifo", "srsf", "elastic_las", "afs", "elastic_themis", "elastic_fair")
FORGETFUL = "Themis, lease forgotten"
ABOUT = (
    "The first 301 jobs of each published trace on 64 GPUs, as in the published runs, then the next 301 under the same "
    "configurations, on an empty cluster. PCS-jct, PCS-bal and PCS-pred are ours, searched on samples of the whole "
    "trace's jobs (the figure `fronts`). Sizes are known, GPUs of PCS are fractional, preemption costs nothing. Themis "
    "with the lease forgotten: forecasts leave the lease out that runs when they are made, as the published code does."
)


def figure7(data: Path, out: Path, fronts: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    tasks = []
    for cluster, key in CLUSTERS.items():
        chosen = configs(front_of(fronts, key))
        if cluster == CONFIGURED:
            chosen |= published_configs(data)
        for first in (0, MEASURED_JOBS):
            tasks += _tasks(data, cluster, first, chosen)
        tasks += row_tasks(data, cluster, fronts)
    done = run_all(tasks)
    found = means(done)
    write_runs(out, "figure7", done)
    for cluster in CLUSTERS:
        rows = {name: figures for name, figures in of_case(found, window(cluster)).items() if name != FORGETFUL}
        jct_and_errors(out, f"figure7-{cluster}", f"Cluster {cluster}, {MEASURED_JOBS} jobs", rows)
    told = compared(data, [one for one in done if one.case == window(CONFIGURED)])
    write_page(out, "figure7", _parts(found, told))


def _tasks(data: Path, cluster: str, first: int, chosen: dict[str, WfqConfig]) -> list[Task]:
    case, scenario = window(cluster, first), published(data, cluster, first)
    return [
        *(Task(case, name, scenario, config=config) for name, config in chosen.items()),
        *policies(case, scenario, OTHERS),
        Task(case, FORGETFUL, scenario, "elastic_themis", settings={"pending_lease": "false"}),
    ]


def _parts(found: Means, told: str) -> list[str]:
    parts = ["# Figure 7: two Philly clusters", ABOUT]
    for cluster in CLUSTERS:
        first, second = window(cluster), window(cluster, MEASURED_JOBS)
        parts += [f"## {first}", by_policy(found, first), picture(f"figure7-{cluster}", f"JCT and errors, {cluster}")]
        parts += [f"## {second}", by_policy(found, second)]
    return [
        *parts,
        "## Against the published runs",
        f"The published simulator's figures for {window(CONFIGURED)}, and how far a job of ours is off at most:",
        told,
        "## What we want of a configuration",
        aims.ABOUT,
        aims_table(found, list(CLUSTERS)),
        "## Against the paper",
        claims(_claims(found)),
    ]


def _claims(found: Means) -> list[Claim]:
    made = []
    for cluster in CLUSTERS:
        rows = of_case(found, window(cluster))
        others = {name: rows[TITLES[name]] for name in ("elastic_fifo", "srsf", "afs", "elastic_themis")}
        lowest = min(figures["mean_jct_s"] for figures in rows.values())
        quick = min(others.values(), key=lambda figures: figures["mean_jct_s"])
        afs = others["afs"]["mean_jct_s"] / min(one["mean_jct_s"] for name, one in others.items() if name != "afs")
        spans = [rows[name]["mean_jct_s"] / lowest for name in (*NAMES, *THEIRS) if name in rows]
        mean = [figures["mean_error_pct"] for figures in (quick, rows[NAMES[0]])]
        tail = [figures["p99_error_pct"] for figures in (quick, rows[NAMES[2]])]
        ours = "ours, published" if len(spans) > len(NAMES) else "ours"
        made += [
            Claim(f"{cluster}: mean JCT of AFS / lowest of FIFO, Tiresias, Themis", "at most 1", number(afs), afs <= 1),
            Claim(f"{cluster}: mean JCT of PCS / lowest ({ours})", "1.5 to 4", _each(spans), max(spans) <= 4),
            Claim(
                f"{cluster}: mean error of the quickest other, PCS-jct", "80, 1 %", _percents(mean), mean[1] < mean[0]
            ),
            Claim(
                f"{cluster}: p99 error of the quickest other, PCS-pred", "900, 10 %", _percents(tail), tail[1] < tail[0]
            ),
        ]
    return made


def _each(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)


def _percents(values: list[float]) -> str:
    return ", ".join(percent(value) for value in values) + " %"
