"""PCS, Figures 4 to 6 (section 5.2): AutoML apps on 16 GPUs, which the paper runs on a testbed."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.metrics import errors_pct, unfairness_pct
from papers.pcs.fronts import APPS, NAMES, configs, front_of
from papers.pcs.plotting import TALL_PANEL, WIDE, distributions, save, scatter, style_of
from papers.pcs.runs import TITLES, Done, Task, policies, pooled, run_all
from papers.pcs.tables import by_policy, of_case, percent, write_runs
from papers.pcs.workloads import automl
from papers.runs import Means, means
from papers.sheets import Claim, claims, number, picture, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = tuple(range(5))
OVERHEADS_S = (0.0, 10.0, 30.0)
TOLD_S = 10.0
"""The paper does not print what its testbed's preemptions cost."""
CASE, HALVING, IDEAL = "testbed", "halving", "simulation"
OTHERS = ("elastic_fifo", "srsf", "afs", "elastic_themis", "elastic_fair", "elastic_las")
JCT, BALANCED, PREDICTABLE = NAMES
AFS, TIRESIAS, THEMIS = TITLES["afs"], TITLES["srsf"], TITLES["elastic_themis"]
ABOUT = (
    f"{len(SEEDS)} draws of 300 apps at 80 % load, in simulation. As on a testbed, GPUs are whole, also for PCS, and "
    f"each change of a running app's GPUs stops it for {TOLD_S:g} s, of which forecasts know. Configurations come from "
    "a search in an ideal simulation (fractions, no cost) on other draws. Figures are means over draws."
)


def figure4(data: Path, out: Path, fronts: Path) -> None:
    """Write the figures' page, table and plots into a folder."""
    chosen = configs(front_of(fronts, APPS))
    tasks = [task for cost_s in OVERHEADS_S for task in _tasks(_case(cost_s), chosen, cost_s)]
    tasks += _tasks(HALVING, chosen, TOLD_S, halving=True)
    tasks += [Task(IDEAL, name, automl(seed), config=config) for seed in SEEDS for name, config in chosen.items()]
    done = run_all(tasks)
    found = means(done)
    write_runs(out, "figure4", done)
    _plots(out, [one for one in done if one.case == _case(TOLD_S)], found)
    write_page(out, "figure4", _parts(found))


def _case(cost_s: float) -> str:
    return f"{CASE}, {cost_s:g} s"


def _tasks(case: str, chosen: dict[str, WfqConfig], cost_s: float, *, halving: bool = False) -> list[Task]:
    made = []
    for seed in SEEDS:
        scenario = automl(seed, halving=halving)
        made += [
            Task(case, name, scenario, config=config, whole=True, preempt_s=cost_s) for name, config in chosen.items()
        ]
        made += policies(case, scenario, (name for name in OTHERS if name != "elastic_fair"), cost_s)
        made += [
            Task(
                case,
                TITLES["elastic_fair"],
                scenario,
                "elastic_fair",
                settings={"whole_gpus": "true"},
                preempt_s=cost_s,
            )
        ]
    return made


def _parts(found: Means) -> list[str]:
    others = [
        part
        for cost_s in OVERHEADS_S
        if cost_s != TOLD_S
        for part in (f"### {cost_s:g} s", by_policy(found, _case(cost_s)))
    ]
    return [
        "# Figures 4 to 6: AutoML apps on 16 GPUs",
        ABOUT,
        by_policy(found, _case(TOLD_S)),
        picture("figure4", "Distribution of prediction errors"),
        picture("figure5", "JCT against prediction error"),
        picture("figure6", "Unfairness, and configurations in simulation and on a testbed"),
        "## Against the paper",
        claims(_claims(found)),
        "## By the cost of a preemption",
        *others,
        f"## Apps that halve their trials, {TOLD_S:g} s",
        "The same configurations, which were not searched for such apps. Fair finish times take an app for as wide as "
        "at its beginning, which no app is to its end; unfairness is overstated for all.",
        by_policy(found, HALVING),
    ]


def _claims(found: Means) -> list[Claim]:
    rows = of_case(found, _case(TOLD_S))
    others = (AFS, TIRESIAS, THEMIS)

    def of(name: str, figure: str) -> float:
        return rows[name][figure]

    def told(values: list[float]) -> str:
        return ", ".join(percent(value) for value in values)

    def each(names: tuple[str, ...], figure: str) -> str:
        return told([of(name, figure) for name in names])

    worst_of_pcs = max(of(name, "p90_error_pct") for name in NAMES)
    best_of_others = min(of(name, "p90_error_pct") for name in others)
    lower = 100 * (1 - worst_of_pcs / best_of_others)
    p90, mean = (of(JCT, f"{m}_jct_s") / of(AFS, f"{m}_jct_s") for m in ("p90", "mean"))
    tiresias = of(JCT, "mean_jct_s") / of(TIRESIAS, "mean_jct_s")
    until = [
        of(JCT, f"p{level}_error_pct") < min(of(name, f"p{level}_error_pct") for name in others) for level in (90, 95)
    ]
    fair = [of(name, "p95_unfairness_pct") for name in (JCT, AFS, THEMIS)]
    lowest = min(NAMES, key=lambda name: of(name, "mean_jct_s"))
    surest = min(NAMES, key=lambda name: of(name, "mean_error_pct"))
    worst = [of(name, "max_error_pct") for name in (PREDICTABLE, *others)]
    said = ", ".join("yes" if one else "no" for one in until)
    average, tail = of(JCT, "mean_error_pct"), of(JCT, "p90_error_pct")
    unfair = each((JCT, AFS, THEMIS), "max_unfairness_pct")
    return [
        Claim("p90 error: worst PCS below best of AFS, Tiresias, Themis", "80 % lower", f"{lower:.0f} %", lower > 0),
        Claim("worst error of PCS-pred", "150 %", f"{worst[0]:.0f} %", None),
        Claim(
            "PCS-pred's worst error is below AFS's, Tiresias's, Themis's", "yes", told(worst), worst[0] < min(worst[1:])
        ),
        Claim("PCS-jct's error is below the others' at p90, p95", "yes, yes", said, all(until)),
        Claim("mean JCT of PCS-jct / AFS's, / Tiresias's", "about 1, about 1", f"{mean:.2f}, {tiresias:.2f}", None),
        Claim("p90 JCT of PCS-jct / AFS's", "1.1", number(p90), None),
        Claim("mean error of PCS-jct", "within 20 %", f"{percent(average)} %", average <= 20),
        Claim("p90 error of PCS-jct", "within 20 %", f"{percent(tail)} %", tail <= 20),
        Claim("mean error of AFS, Tiresias", "at least 40 %", each((AFS, TIRESIAS), "mean_error_pct"), None),
        Claim("p90 error of AFS, Tiresias", "at least 100 %", each((AFS, TIRESIAS), "p90_error_pct"), None),
        Claim("p95 unfairness of PCS-jct, AFS, Themis", "PCS-jct lowest", told(fair), fair[0] <= min(fair[1:])),
        Claim("worst unfairness of PCS-jct, AFS, Themis", "100, above 200, below 50 %", unfair, None),
        Claim("lowest mean JCT of the three PCS", JCT, lowest, lowest == JCT),
        Claim("least mean error of the three PCS", PREDICTABLE, surest, surest == PREDICTABLE),
    ]


def _plots(out: Path, done: list[Done], found: Means) -> None:
    pool = pooled(done, errors_pct)
    errors = {name: pool[name] for name in (*NAMES, TIRESIAS, AFS, THEMIS)}
    save(out, "figure4", "Prediction errors of AutoML apps", lambda figure: _errors(figure, errors))
    save(out, "figure5", "Performance and predictability", lambda figure: _trade(figure, found))
    save(
        out,
        "figure6",
        "Unfairness, and simulation against testbed",
        lambda figure: _fair(figure, done, found),
        (WIDE[0], 2 * TALL_PANEL),
    )


def _errors(figure: "Figure", errors: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    distributions(axes, errors, "prediction error, %", 200.0)
    axes.set_ylim(0.5, 1.01)


def _trade(figure: "Figure", found: Means) -> None:
    rows = of_case(found, _case(TOLD_S))
    names = (*NAMES, AFS, TIRESIAS, THEMIS)
    for axes, measure in zip(figure.subplots(1, 2), ("mean", "p90"), strict=True):
        scatter(
            axes,
            {name: (rows[name][f"{measure}_jct_s"] / 60, rows[name][f"{measure}_error_pct"]) for name in names},
            f"{measure} JCT, minutes",
            f"{measure} prediction error, %",
        )
        axes.margins(0.18)
        axes.set_ylim(0, None)


def _fair(figure: "Figure", done: list[Done], found: Means) -> None:
    left, right = figure.subplots(2, 1)
    unfair = pooled(done, unfairness_pct)
    distributions(left, {name: unfair[name] for name in (JCT, AFS, THEMIS)}, "unfairness, %", 300.0)
    left.set_ylim(0.6, 1.01)
    for case, marker in ((IDEAL, "o"), (_case(TOLD_S), "s")):
        rows = of_case(found, case)
        points = np.array([(rows[name]["mean_jct_s"] / 60, rows[name]["mean_error_pct"]) for name in NAMES])
        right.plot(*points.T, marker=marker, label=case, color=style_of(case, (IDEAL,)).color)
        for name, point in zip(NAMES, points, strict=True):
            right.annotate(name, point, xytext=(5, 4), textcoords="offset points", fontsize=8)
    right.set(xlabel="mean JCT, minutes", ylabel="mean prediction error, %")
    right.margins(0.12)
    right.set_ylim(0, None)
    right.legend()
