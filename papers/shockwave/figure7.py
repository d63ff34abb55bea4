"""Shockwave, Figure 7 (section 8.3): 120 jobs on 32 GPUs."""

from pathlib import Path

from jobcast.pipelines.experiments.forecast_specs import ORACLE
from jobcast.simulator.metrics import finish_time_fairness, static_contention
from papers.plotting import bars, distributions, save
from papers.runs import (
    BASELINES,
    FAIR,
    GREEDY,
    SHOCKWAVE,
    SIMPLE,
    Done,
    Means,
    Task,
    means,
    ratio,
    run_all,
)
from papers.sheets import (
    Claim,
    claims,
    comparison,
    grid,
    number,
    picture,
    who_is_better,
    write_page,
    write_runs,
)
from papers.shockwave.workloads import TACC, published

JOBS, GPUS = 120, 32
SAME, EXACT, REACTIVE = "restatement", "other forecasts for shockwave", "reactive baselines"
THEIRS = "published mechanism"
PUBLISHED = (
    ("shockwave", "24,197", "9,958", "1.78", "7.5", "5.0"),
    ("ossp", "24,205", "19,807", "7.74", "74", "74"),
    ("gavel", "33,208", "11,274", "2.95", "27.5", "25"),
    ("gandiva_fair", "32,367", "12,574", "1.85", "55", "52"),
)
"""Results that the authors publish beside their simulator: makespan s, mean JCT s, worst FTF, % above 1 and 1.05."""
ABOUT = (
    "The published trace of 120 jobs on 32 GPUs, batch sizes as planned, throughputs of the testbed, fixed rounds of "
    "120 s of which a start takes 20 s. All policies that ask for run times are told the same: those of the "
    "restatement rule. FTF is by jobs / GPUs of the whole trace, as in the authors' published results; over its life: "
    "by the contention during each job's own life (appendix G.2)."
)


def figure7(data: Path, out: Path) -> None:
    """Write the figure's page, table and plots into a folder."""
    scenario = published(data, JOBS, GPUS, TACC)
    alike = [Task(SAME, scenario, policy) for policy in (SHOCKWAVE, *BASELINES, *SIMPLE)]
    others = [
        Task(EXACT, scenario, SHOCKWAVE),
        Task(EXACT, scenario, SHOCKWAVE, ORACLE, label="shockwave, oracle"),
        Task(EXACT, scenario, SHOCKWAVE, GREEDY, label="shockwave, greedy"),
    ]
    reactive = [Task(REACTIVE, scenario, SHOCKWAVE)]
    reactive += [Task(REACTIVE, scenario, policy, GREEDY) for policy in ("ossp", "themis_filter", "allox", "srpt")]
    theirs = [Task(THEIRS, scenario, policy, settings={"mechanism": "gavel"}) for policy in (SHOCKWAVE, *BASELINES)]
    done = run_all([*alike, *others, *reactive, *theirs])
    found = means(done)
    write_runs(out, "figure7", done)
    bars(out, "figure7", "120 jobs on 32 GPUs", {key: found[key] for key in found if key[0] == SAME})
    _plot_ftf(out, [one for one in done if one.case == SAME])
    write_page(out, "figure7", _parts(found))


def _parts(found: Means) -> list[str]:
    head = ("policy", "makespan s", "mean JCT s", "worst FTF", "FTF > 1, %", "> 1.05")
    return [
        "# Figure 7: 120 jobs on 32 GPUs",
        ABOUT,
        comparison(found, SAME),
        who_is_better(found, SAME),
        picture("figure7", "Makespan, mean JCT and fairness by policy"),
        picture("figure7-ftf", "Distribution of finish-time fairness by policy"),
        "## Against the paper",
        claims(_claims(found)),
        "## In the published mechanism of rounds",
        "A round lasts until its slowest job ends, shares hold for 1,000 s, batch sizes change when the published "
        "simulator notices them; otherwise as above.",
        comparison(found, THEIRS),
        "The authors' own results for this trace, in their simulator:",
        grid(head, PUBLISHED),
        "## Shockwave by other forecasts",
        comparison(found, EXACT),
        "## Baselines that only react",
        "As the paper runs them: the batch size of the moment stays until the job ends.",
        comparison(found, REACTIVE),
    ]


def _claims(found: Means) -> list[Claim]:
    def by(figure: str, names: tuple[str, ...] = FAIR) -> float:
        return ratio(found, SAME, figure, names)

    used = 100 * (1 / by("utilization") - 1)
    mine, ossp = found[SAME, SHOCKWAVE], found[SAME, "ossp"]
    worst_ossp, worst_mst = ossp["worst_ftf"], found[SAME, "mst"]["worst_ftf"]
    makespan, mst, to_ossp = by("makespan_s"), by("makespan_s", ("mst",)), by("makespan_s", ("ossp",))
    worst, unfair = by("worst_ftf"), by("unfair_pct_100")
    jct, allox = by("mean_jct_s", ("themis_filter", "gavel", "mst")), by("mean_jct_s", ("allox",))
    slow, others = by("mean_jct_s", ("ossp",)), [by("mean_jct_s", (name,)) for name in BASELINES if name != "ossp"]
    return [
        Claim("makespan of Themis, Gavel, AlloX / Shockwave's", "1.3", number(makespan), makespan > 1),
        Claim("makespan of MST / Shockwave's", "1.37", number(mst), mst > 1),
        Claim("makespan of OSSP / Shockwave's", "about 1", number(to_ossp), None),
        Claim("utilisation above Themis, Gavel, AlloX", "28 %", f"{used:.0f} %", used > 0),
        Claim("worst FTF of Shockwave", "1.82", number(mine["worst_ftf"]), None),
        Claim("worst FTF of Themis, Gavel, AlloX / Shockwave's", "2", number(worst), worst > 1),
        Claim("worst FTF of OSSP and MST", "5.79, 5.2", f"{worst_ossp:.2f}, {worst_mst:.2f}", None),
        Claim("share of unfair jobs of the three / Shockwave's", "2.7", number(unfair), unfair > 1),
        Claim("unfair jobs of OSSP", "70.8 %", f"{ossp['unfair_pct_100']:.1f} %", None),
        Claim("mean JCT of Themis, Gavel, MST / Shockwave's", "about 1", number(jct), None),
        Claim("AlloX has a better mean JCT than Shockwave", "yes", number(allox), allox < 1),
        Claim("OSSP has the worst mean JCT", "yes", number(slow), slow > max(1.0, *others)),
    ]


def _plot_ftf(out: Path, done: list[Done]) -> None:
    values = {one.name: finish_time_fairness(one.log, static_contention(one.log)).tolist() for one in done}
    save(
        out,
        "figure7-ftf",
        "Finish-time fairness, 120 jobs on 32 GPUs",
        lambda figure: distributions(figure.subplots(), values, "FTF (above 1 is unfair)"),
    )
