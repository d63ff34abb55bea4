"""PCS, Figure 7 (section 5.3): Philly virtual clusters on 64 GPUs, whole traces and the jobs of the published runs."""

from papers.pcs import published as theirs
from papers.pcs.fronts import CLUSTERS, NAMES, Sources
from papers.pcs.plotting import jct_and_errors
from papers.pcs.runs import MEASURED_JOBS, SHOWN, TITLES, Task, by_policy, policies, published, run
from papers.results import Claim, Means, Page, claims, means, numbers, of_case, run_all

FORGETFUL = "Themis, lease forgotten"
PRINTED = 0.001
"""The published rows have so many digits."""


def figure7(sources: Sources, page: Page) -> None:
    """Write the figure's page, table and plots into a folder."""
    whole, paper = theirs.whole_traces(sources.data, sources.fronts.parent), theirs.published_rows(sources.data)
    done = run_all(run, [task for cluster in CLUSTERS for task in _tasks(sources, cluster)])
    found, tables = means(done), []
    page.runs(done)
    for cluster in CLUSTERS:
        rows = {name: figures for name, figures in of_case(found, cluster).items() if name != FORGETFUL}
        jct_and_errors(page.named(f"figure7-{cluster}"), f"Cluster {cluster}, {MEASURED_JOBS} jobs", rows)
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
    chosen, scenario = sources.configs(CLUSTERS[cluster]), published(sources.data, cluster)
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
