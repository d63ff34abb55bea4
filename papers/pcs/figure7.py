"""PCS, Figures 7 and 8 (section 5.3), on 64 GPUs: Philly virtual clusters, whole and as published; Gavel's workload."""

from papers.pcs import published as theirs
from papers.pcs import runs as r
from papers.pcs.fronts import CLUSTERS, GAVEL, LIGHT, NAMES, Sources
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import SHOWN, TITLES, Task, by_policy, percent, policies, run
from papers.results import Claim, Means, Page, claims, means, number, numbers, of_case, run_all

FORGETFUL = "Themis, lease forgotten"
PRINTED = 0.001
"""The published rows have so many digits."""
SEEDS = tuple(range(5))
AT_WIDTH, ON_ONE = "run times at a job's width", "run times on one GPU"
FRONTS = {AT_WIDTH: GAVEL, ON_ONE: LIGHT}
"""Of Gavel's continuous-multiple workload at four jobs an hour."""


def figure7(sources: Sources, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    whole, paper = theirs.whole_traces(sources.data, sources.fronts.parent), theirs.published_rows(sources.data)
    done = run_all(run, [task for cluster in CLUSTERS for task in _tasks(sources, cluster)])
    found, tables = means(done), []
    page.runs(done)
    for cluster in CLUSTERS:
        rows = {name: figures for name, figures in of_case(found, cluster).items() if name != FORGETFUL}
        jct_and_errors(page.named(f"figure7-{cluster}"), f"Cluster {cluster}, {r.MEASURED_JOBS} jobs", rows)
        shown = f"![JCT and errors, {cluster}](figure7-{cluster}.svg)"
        tables += [f"### {cluster}", by_policy(found, cluster), shown]
    page.write(
        whole=theirs.whole_table(whole, paper),
        tables=tables,
        measured=theirs.CONFIGURED,
        compared=theirs.compared(sources.data, [one for one in done if one.case == theirs.CONFIGURED]),
        claims=claims([*_of_whole(whole, paper), *(_spans(found, cluster) for cluster in CLUSTERS)]),
    )


def _tasks(sources: Sources, cluster: str) -> list[Task]:
    chosen, scenario = sources.configs(CLUSTERS[cluster]), r.published(sources.data, cluster)
    if cluster == theirs.CONFIGURED:
        chosen |= theirs.published_configs(sources.data)
    forgetful = Task(cluster, FORGETFUL, scenario, "elastic_themis", settings={"pending_lease": "false"})
    tasks = [Task(cluster, name, scenario, config=config) for name, config in chosen.items()]
    return [*tasks, *policies(cluster, scenario, SHOWN), forgetful]


def _of_whole(found: theirs.Found, paper: theirs.Found) -> list[Claim]:
    made = []
    for cluster in ("0e4a51", "2869ce"):
        keys = [(cluster, TITLES[name]) for name in ("afs", "srsf")]
        apart = max(abs(found[key][name] - paper[key][name]) for key in keys for name in paper[key])
        said = f"{cluster}, whole: AFS and Tiresias, any figure apart from its row by at most"
        made.append(Claim(said, f"our aim: {PRINTED}", f"{apart:.4f}", apart <= PRINTED))
    others = [key for key in found if key[1] not in theirs.THEIRS]
    apart = max(abs(found[key]["jct_over_afs"] - paper[key]["jct_over_afs"]) for key in others)
    made.append(
        Claim("mean JCT over AFS's apart by at most, all clusters, whole", "", f"{apart:.4f}", apart <= PRINTED)
    )
    for cluster in dict.fromkeys(cluster for cluster, _ in found):
        quickest = min((key for key in found if key[0] == cluster), key=lambda key: found[key]["mean_jct_s"])[1]
        made.append(Claim(f"{cluster}, whole: lowest mean JCT", "AFS", quickest, quickest == TITLES["afs"]))
    return made


def _spans(found: Means, cluster: str) -> Claim:
    rows = of_case(found, cluster)
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    spans = [rows[name]["mean_jct_s"] / lowest for name in (*NAMES, *theirs.THEIRS) if name in rows]
    ours = "ours, published" if len(spans) > len(NAMES) else "ours"
    return Claim(f"{cluster}: mean JCT of PCS / lowest ({ours})", "1.5 to 4", numbers(spans), max(spans) <= 4)


def figure8(sources: Sources, page: Page) -> None:
    """Write the figure's page, table and plot into a folder."""
    tasks = []
    for case, key in FRONTS.items():
        chosen = sources.configs(key)
        for seed in SEEDS:
            scenario = r.gavel(seed, at_width=case == AT_WIDTH)
            tasks += [Task(case, name, scenario, config=config) for name, config in chosen.items()]
            tasks += policies(case, scenario, SHOWN)
    done = page.runs(run_all(run, tasks))
    found = means(done)
    jct_and_errors(page, f"Workload 3, {AT_WIDTH}", of_case(found, AT_WIDTH))
    tables = {"at_width": by_policy(found, AT_WIDTH), "on_one": by_policy(found, ON_ONE)}
    said = claims(claim for case in FRONTS for claim in _of_gavel(found, case))
    page.write(seeds=len(SEEDS), jobs=r.JOBS, **tables, claims=said)


def _of_gavel(found: Means, case: str) -> list[Claim]:
    rows = of_case(found, case)
    quick = (TITLES["srsf"], TITLES["afs"], TITLES["elastic_themis"], NAMES[0])
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    mean, tail = ([rows[name][key] for name in quick] for key in ("mean_error_pct", "p99_error_pct"))
    jct = {name: rows[name]["mean_jct_s"] / lowest for name in NAMES}
    others = ", ".join(f"{percent(rows[name]['p99_error_pct'])} at {jct[name]:.2f}" for name in NAMES[1:])
    ours, most = jct[NAMES[0]], "reasonably low"
    return [
        Claim(f"{case}: mean error of Tiresias, AFS, Themis, PCS-jct", most, f"{r.percents(mean)} %"),
        Claim(f"{case}: p99 error of Tiresias, AFS, Themis", "at least 300 %", r.percents(tail[:3])),
        Claim(f"{case}: p99 error of PCS-jct", "about 100 %", f"{percent(tail[3])} %", tail[3] < min(tail[:3])),
        Claim(f"{case}: mean JCT of PCS-jct / lowest", "within 1.1", number(ours), ours <= 1.1),
        Claim(f"{case}: p99 error at mean JCT / lowest, PCS-bal, PCS-pred", "", others),
    ]
