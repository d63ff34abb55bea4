"""PCS, Figures 4 to 6 (section 5.2): AutoML apps on 16 GPUs, which the paper runs on a testbed."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from jobcast.pipelines.report.look import WIDE
from jobcast.schedulers.elastic.config import WfqConfig
from jobcast.simulator.metrics import errors_pct, unfairness_pct
from papers.pcs.fronts import APPS, NAMES, Sources
from papers.pcs.plotting import TALL_PANEL, distributions, scatter, style_of
from papers.pcs.runs import TITLES, Task, automl, by_policy, percents, policies, run
from papers.plotting import save
from papers.results import By, Means, Page, Replayed, means, number, numbers, of_case, pooled, result, run_all

SEEDS = tuple(range(5))
OVERHEADS_S = (0.0, 10.0, 30.0)
TOLD_S = 10.0
"""The paper does not print what its testbed's preemptions cost."""
HALVING, IDEAL = "halving", "simulation"
OTHERS = ("elastic_fifo", "srsf", "afs", "elastic_themis", "elastic_las")
JCT, BALANCED, PREDICTABLE = NAMES
AFS, TIRESIAS, THEMIS = TITLES["afs"], TITLES["srsf"], TITLES["elastic_themis"]


def figure4(sources: Sources, page: Page) -> None:
    """Write the figures' page, table and plots into a folder."""
    chosen = sources.configs(APPS)
    tasks = [task for cost_s in OVERHEADS_S for task in _tasks(_case(cost_s), chosen, cost_s)]
    tasks += _tasks(HALVING, chosen, TOLD_S, halving=True)
    tasks += [Task(IDEAL, name, automl(seed), config=config) for seed in SEEDS for name, config in chosen.items()]
    done = page.runs(run_all(run, tasks))
    found = means(done)
    others, rows = [cost_s for cost_s in OVERHEADS_S if cost_s != TOLD_S], of_case(found, _case(TOLD_S))
    testbed = [one for one in done if one.case == _case(TOLD_S)]
    save(page, "Prediction errors of AutoML apps", _errors_plot, WIDE, testbed)
    save(page.named("figure5"), "Performance and predictability", _trade_off, WIDE, rows)
    title, size = "Unfairness, and simulation against testbed", (WIDE[0], 2 * TALL_PANEL)
    save(page.named("figure6"), title, _fair, size, testbed, found)
    page.write(
        seeds=len(SEEDS),
        cost=TOLD_S,
        table=by_policy(found, _case(TOLD_S)),
        by_cost=[part for cost_s in others for part in (f"### {cost_s:g} s", by_policy(found, _case(cost_s)))],
        halving=by_policy(found, HALVING),
        **_errors(rows),
        **_times(rows),
    )


def _case(cost_s: float) -> str:
    return f"testbed, {cost_s:g} s"


def _tasks(case: str, chosen: dict[str, WfqConfig], cost_s: float, *, halving: bool = False) -> list[Task]:
    made, fair = [], TITLES["elastic_fair"]
    for seed in SEEDS:
        scenario = automl(seed, halving=halving)
        made += [Task(case, name, scenario, config=one, whole=True, preempt_s=cost_s) for name, one in chosen.items()]
        made += policies(case, scenario, OTHERS, cost_s)
        whole = {"whole_gpus": "true"}
        made.append(Task(case, fair, scenario, "elastic_fair", settings=whole, preempt_s=cost_s))
    return made


def _of(rows: By, names: Sequence[str], figure: str) -> list[float]:
    return [rows[name][figure] for name in names]


def _errors(rows: By) -> dict[str, str]:
    """What the paper says of prediction errors beside what came out."""
    others, of = (AFS, TIRESIAS, THEMIS), partial(_of, rows)
    lower = 100 * (1 - max(of(NAMES, "p90_error_pct")) / min(of(others, "p90_error_pct")))
    (mean,), (tail,) = of((JCT,), "mean_error_pct"), of((JCT,), "p90_error_pct")
    until = [of((JCT,), f"p{level}_error_pct")[0] < min(of(others, f"p{level}_error_pct")) for level in (90, 95)]
    worst = of((PREDICTABLE, *others), "max_error_pct")
    surest = min(NAMES, key=lambda name: rows[name]["mean_error_pct"])
    return {
        "lower": result(f"{lower:.0f} %", lower > 0),
        "worst": result(f"{worst[0]:.0f} %"),
        "worst_of_all": result(percents(worst), worst[0] < min(worst[1:])),
        "until": result(", ".join("yes" if one else "no" for one in until), all(until)),
        "mean": result(f"{percents([mean])} %", mean <= 20),
        "tail": result(f"{percents([tail])} %", tail <= 20),
        "mean_others": result(percents(of((AFS, TIRESIAS), "mean_error_pct"))),
        "tail_others": result(percents(of((AFS, TIRESIAS), "p90_error_pct"))),
        "surest": result(surest, surest == PREDICTABLE),
    }


def _times(rows: By) -> dict[str, str]:
    """What the paper says of completion times and unfairness beside what came out."""
    tail_jct, tail_afs = _of(rows, (JCT, AFS), "p90_jct_s")
    ours, *others = _of(rows, (JCT, AFS, TIRESIAS), "mean_jct_s")
    fair, unfair = (_of(rows, (JCT, AFS, THEMIS), f"{one}_unfairness_pct") for one in ("p95", "max"))
    lowest = min(NAMES, key=lambda name: rows[name]["mean_jct_s"])
    return {
        "mean_jct": result(numbers(ours / other for other in others)),
        "tail_jct": result(number(tail_jct / tail_afs)),
        "fair": result(percents(fair), fair[0] <= min(fair[1:])),
        "unfair": result(percents(unfair)),
        "lowest": result(lowest, lowest == JCT),
    }


def _errors_plot(figure: Figure, done: list[Replayed]) -> None:
    pool, axes = pooled(done, errors_pct), figure.subplots()
    distributions(axes, {name: pool[name] for name in (*NAMES, TIRESIAS, AFS, THEMIS)}, "prediction error, %", 200.0)
    axes.set_ylim(0.5, 1.01)


def _trade_off(figure: Figure, rows: By) -> None:
    names = (*NAMES, AFS, TIRESIAS, THEMIS)
    for axes, one in zip(figure.subplots(1, 2), ("mean", "p90"), strict=True):
        points = {name: (rows[name][f"{one}_jct_s"] / 60, rows[name][f"{one}_error_pct"]) for name in names}
        scatter(axes, points, f"{one} JCT, minutes", f"{one} prediction error, %")
        axes.margins(0.18)
        axes.set_ylim(0, None)


def _fair(figure: Figure, done: list[Replayed], found: Means) -> None:
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
