"""PCS, Figure 7 (section 5.3): Philly virtual clusters on 64 GPUs, whole and by windows."""

from pathlib import Path

from papers.page import Claim, claims, number, numbers, write_page, write_runs
from papers.pcs.aims import NEAR, QUARTER, aims_table, row_tasks, window
from papers.pcs.fronts import CLUSTERS, NAMES, Sources
from papers.pcs.measured import CONFIGURED, THEIRS, compared, published_configs
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import PAPERS, SHOWN, TITLES, Task, by_policy, percents, policies, run
from papers.pcs.whole_traces import Found, published_rows, whole_table, whole_traces
from papers.pcs.workloads import MEASURED_JOBS, published
from papers.runs import Means, means, of_case, run_all

FORGETFUL = "Themis, lease forgotten"
NEAR_ROW = 0.001
"""The rows are printed to so much."""


def figure7(sources: Sources, out: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    whole, paper = whole_traces(sources.data, sources.fronts.parent), published_rows(sources.data)
    done = run_all(run, [task for cluster in CLUSTERS for task in _tasks(sources, cluster)])
    found, tables = means(done), []
    write_runs(out, "figure7", done)
    for cluster in CLUSTERS:
        first, second = window(cluster), window(cluster, MEASURED_JOBS)
        rows = {name: figures for name, figures in of_case(found, first).items() if name != FORGETFUL}
        jct_and_errors(out, f"figure7-{cluster}", f"Cluster {cluster}, {MEASURED_JOBS} jobs", rows)
        shown = f"![JCT and errors, {cluster}](figure7-{cluster}.svg)"
        tables += [f"## {first}", by_policy(found, first), shown, f"## {second}", by_policy(found, second)]
    measured = window(CONFIGURED)
    write_page(
        __file__,
        out,
        whole=whole_table(whole, paper),
        told=claims(_of_whole(whole, paper)),
        tables=tables,
        measured=measured,
        compared=compared(sources.data, [one for one in done if one.case == measured]),
        quarter=QUARTER,
        near=NEAR,
        aims=aims_table(found, list(CLUSTERS)),
        claims=claims(claim for cluster in CLUSTERS for claim in _claims(found, cluster)),
    )


def _tasks(sources: Sources, cluster: str) -> list[Task]:
    chosen, tasks = sources.configs(CLUSTERS[cluster]), []
    if cluster == CONFIGURED:
        chosen |= published_configs(sources.data)
    for first in (0, MEASURED_JOBS):
        case, scenario = window(cluster, first), published(sources.data, cluster, first)
        tasks += [Task(case, name, scenario, config=config) for name, config in chosen.items()]
        tasks += policies(case, scenario, SHOWN)
        tasks.append(Task(case, FORGETFUL, scenario, "elastic_themis", settings={"pending_lease": "false"}))
    return [*tasks, *row_tasks(sources, cluster)]


def _of_whole(found: Found, paper: Found) -> list[Claim]:
    made = []
    for cluster in ("0e4a51", "2869ce"):
        keys = [(cluster, TITLES[name]) for name in ("afs", "srsf")]
        apart = max(abs(found[key][name] - paper[key][name]) for key in keys for name in paper[key])
        said = f"{cluster}: AFS and Tiresias, any figure apart by at most"
        made.append(Claim(said, "0.001", f"{apart:.4f}", apart <= NEAR_ROW))
    for cluster in dict.fromkeys(cluster for cluster, _ in found):
        quickest = min((one for one in found if one[0] == cluster), key=lambda one: found[one]["mean_jct_s"])[1]
        made.append(Claim(f"{cluster}: lowest mean JCT", "AFS", quickest, quickest == TITLES["afs"]))
    return made


def _claims(found: Means, cluster: str) -> list[Claim]:
    rows = of_case(found, window(cluster))
    others = {name: rows[TITLES[name]] for name in PAPERS}
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    quick = min(others.values(), key=lambda figures: figures["mean_jct_s"])
    afs = others["afs"]["mean_jct_s"] / min(one["mean_jct_s"] for name, one in others.items() if name != "afs")
    spans = [rows[name]["mean_jct_s"] / lowest for name in (*NAMES, *THEIRS) if name in rows]
    mean = [figures["mean_error_pct"] for figures in (quick, rows[NAMES[0]])]
    tail = [figures["p99_error_pct"] for figures in (quick, rows[NAMES[2]])]
    ours = "ours, published" if len(spans) > len(NAMES) else "ours"
    other = "error of the quickest other"
    return [
        Claim(f"{cluster}: mean JCT of AFS / lowest of FIFO, Tiresias, Themis", "at most 1", number(afs), afs <= 1),
        Claim(f"{cluster}: mean JCT of PCS / lowest ({ours})", "1.5 to 4", numbers(spans), max(spans) <= 4),
        Claim(f"{cluster}: mean {other}, PCS-jct", "80, 1 %", f"{percents(mean)} %", mean[1] < mean[0]),
        Claim(f"{cluster}: p99 {other}, PCS-pred", "900, 10 %", f"{percents(tail)} %", tail[1] < tail[0]),
    ]
