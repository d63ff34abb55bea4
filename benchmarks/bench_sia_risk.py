"""The frontier of speedup against slowdown of SIA by hard classes and by risk, oracle to random, on Philly.

Predictors are trained on 2017-10-02 to 2017-11-05; 2017-11-06 to 2017-11-26 is replayed with the quotas of
`philly/pools_nov06_nov26.csv` (load 0.8 on that window), with and without the pool that holds a quarter of the jobs,
and with the registry at quotas derived at loads 0.9 and 1.0 too. Every finished run is a row of `frontier.csv`; a row
that is there is not run again. The plot is drawn from the rows.

    JOBCAST_DATA=traces python benchmarks/bench_sia_risk.py --home models --out docs/sia/frontier
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobcast.domain.errors import UserError
from jobcast.domain.hardware import pools_cluster
from jobcast.models.care import Care
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Ask, Sources
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.report.look import draw, plain_ticks, styles
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.schedulers.pool_policies import SiaRiskSettings
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.sia_risk import SiaRisk
from jobcast.simulator.engine import replay
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against, figures
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

TRAIN_FROM, BEGIN, END = (parse_time(day) for day in ("2017-10-02", "2017-11-06", "2017-11-27"))
BIG_POOL = "11cb48"
SOURCES = ("registry", "oracle", "noisy:0.1", "noisy:0.3", "random")
BUDGETS_MIN = (12.0, 8.0, 4.0, 2.0, 1.0, 0.0)
UNDER_COSTS = (10.0, 30.0, 300.0)
"""Of overstaying: what moves SIA by hard classes along its own frontier, with the registry."""
PLENTY = ("all pools", "without 11cb48")
FULLER = {"load 0.9": 0.9, "load 1.0": 1.0}
SEED = 0
DEFAULTS = SiaRiskSettings()
FIGURES = ("speedup_gmean", "slowed_pct", "slowdown_total_min", "slowdown_max_min", "mean_jct_s")
COLUMNS = ("scene", "source", "policy", "setting", *FIGURES, "cpu_s")
FILE = "frontier.csv"
INK = "#1a2b3c"


@dataclass(frozen=True, slots=True)
class Run:
    """One replay.

    Attributes
    ----------
    setting : of `sia_risk` the budget in minutes, of `sia` the cost of overstaying; None: as the source tells bins
    """

    scene: str
    source: str
    policy: str
    setting: float | None = None
    relief_min: float = DEFAULTS.relief_min

    @property
    def key(self) -> tuple[str, ...]:
        return self.scene, self.source, self.policy, "" if self.setting is None else f"{self.setting:g}"


def runs() -> Iterator[Run]:
    """What is reported: both policies as they come by default first."""
    cells = [(scene, source) for scene in PLENTY for source in SOURCES] + [(scene, "registry") for scene in FULLER]
    for scene, source in cells:
        yield Run(scene, source, "sia")
        yield Run(scene, source, "sia_risk", DEFAULTS.budget_min)
    for budget in BUDGETS_MIN:
        yield from (Run(scene, source, "sia_risk", budget) for scene, source in cells)
    for under_cost in UNDER_COSTS:
        yield from (Run(scene, source, "sia", under_cost) for scene, source in cells if source == "registry")


def scenario_of(name: str, trace: Trace) -> RigidScenario:
    """Quotas of a scene over the window."""
    pools = read_pools(data_file("philly/pools_nov06_nov26.csv")).at(BEGIN)
    if name in FULLER:
        names = {pool.name for pool in pools}
        derived = derive_pools(trace.between(BEGIN, END), FULLER[name], END - BEGIN)
        pools = [pool for pool in derived if pool.name in names]
    if name == PLENTY[1]:
        pools = [pool for pool in pools if pool.name != BIG_POOL]
    return rigid_jobs(cut_scenario(trace, pools_cluster(pools), from_s=BEGIN, until_s=END), only_pools=True)


def figures_of(run: Run, scene: RigidScenario, base: RunLog, home: Path) -> dict[str, float]:
    chosen = Sources(scene, Ask(policy="sia", home=home, seed=SEED)).make(parse_forecasts(run.source))
    source = chosen.source
    if run.policy == "sia_risk":
        policy = SiaRisk(source, budget_min=run.setting, relief_min=run.relief_min)
    else:
        if chosen.registered is not None:  # a version is loaded once a process: told anew in each run
            chosen.registered.durations.take(Care() if run.setting is None else Care(under_cost=run.setting))
        policy = Sia(source)
    began = time.process_time()
    log = replay(scene.workload, policy, source, chosen.history)
    cpu_s = time.process_time() - began
    found = against(log, base) | figures(log)
    return {name: found[name] for name in FIGURES} | {"cpu_s": cpu_s}


def rows_of(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {tuple(row[name] for name in COLUMNS[:4]): row for row in csv.DictReader(file)}


def write_row(path: Path, run: Run, found: dict[str, float]) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([*run.key, *(f"{found[name]:.6g}" for name in COLUMNS[4:])])


def points(
    rows: dict[tuple[str, ...], dict[str, str]], scene: str, source: str, policy: str
) -> list[tuple[float, float]]:
    """(1 + minutes of slowdown, speedup) of a policy, by rising setting."""
    mine = [row for key, row in rows.items() if key[:3] == (scene, source, policy)]
    mine.sort(key=lambda row: float(row["setting"] or 0.0))
    return [(1.0 + float(row["slowdown_total_min"]), float(row["speedup_gmean"])) for row in mine]


def paint(rows: dict[tuple[str, ...], dict[str, str]]) -> str:
    """A panel a scene: speedup over total slowdown, a line a source for risk, stars for hard classes."""
    scenes = list(dict.fromkeys(key[0] for key in rows))
    style = styles(list(SOURCES))

    def panels(figure) -> None:
        grid = figure.subplots(2, (len(scenes) + 1) // 2, squeeze=False).flat
        for axes, scene in zip(grid, scenes, strict=False):
            for source in SOURCES:
                look = style[source]
                risk = points(rows, scene, source, "sia_risk")
                hard = points(rows, scene, source, "sia")
                if risk:
                    x, y = zip(*risk, strict=True)
                    axes.plot(x, y, marker=".", label=f"sia_risk {source}", **look.line)
                if hard:
                    x, y = zip(*hard, strict=True)
                    axes.plot(x, y, "*", ms=11, color=look.color, label=f"sia {source}")
            axes.set(xscale="log", xlabel="1 + total slowdown, minutes", ylabel="speedup (geometric mean)")
            axes.set_title(scene, loc="left")
            plain_ticks(axes.xaxis)
        for axes in list(grid)[len(scenes) :]:
            axes.set_visible(False)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center")

    svg = draw("Speedup against slowdown: SIA by hard classes and by risk", panels, (10.4, 7.4))
    return svg.replace("currentColor", INK).replace("<svg ", '<svg style="background:white" ', 1) + "\n"


def table(rows: dict[tuple[str, ...], dict[str, str]]) -> str:
    """All rows in Markdown, by scene and source."""
    heads = ("scene", "forecasts", "policy", "setting", "speedup", "slowed, %", "slowdown, min", "worst, min")
    heads += ("mean JCT, min", "CPU, s")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    order = {name: number for number, name in enumerate((*PLENTY, *FULLER, *SOURCES))}
    ranked = sorted(
        rows.items(), key=lambda one: (order[one[0][0]], order[one[0][1]], one[0][2], float(one[0][3] or -1))
    )
    for key, row in ranked:
        speedup, slowed, total, worst, jct_s, cpu_s = (float(row[name]) for name in COLUMNS[4:])
        figures = f"{speedup:.2f} | {slowed:.3f} | {total:,.0f} | {worst:,.0f} | {jct_s / 60:,.1f} | {cpu_s:.0f}"
        lines.append(f"| {' | '.join(key)} | {figures} |")
    return "\n".join(lines) + "\n"


PAGE = """# SIA by hard classes and by risk

Philly, 2017-11-06 to 2017-11-26, predictors trained on 2017-10-02 to 2017-11-05; speedup is the geometric mean over
jobs against `fcfs`. The setting of `sia_risk` is its budget in minutes of expected slowdown a borrower, that of `sia`
the cost of a duration bin too short (empty: as the registered model was trained). Loads 0.9 and 1.0 are quotas derived
at those loads on the window; the others have load 0.8. Made by `benchmarks/bench_sia_risk.py`; settings were chosen on
October (`benchmarks/choose_sia_risk.py`).

![speedup against slowdown](frontier.svg)

"""


def main() -> int:
    parser = argparse.ArgumentParser(description="frontier of SIA by hard classes and by risk")
    parser.add_argument("--home", type=Path, required=True, help="registry of the predictors; trained where missing")
    parser.add_argument("--out", type=Path, default=Path("docs/sia/frontier"))
    parser.add_argument("--draw", action="store_true", help="run nothing: table and plot of the rows that are there")
    given = parser.parse_args()
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
    except UserError as error:
        print(error)
        return 1
    if not given.draw and not given.home.exists():
        for name in PREDICTORS:
            train_and_register(name, None, trace, TRAIN_FROM, BEGIN, TrainSettings(), home=given.home)
    given.out.mkdir(parents=True, exist_ok=True)
    path, scenes = given.out / FILE, {}
    known = rows_of(path)
    for run in () if given.draw else runs():
        if run.key in known:
            continue
        if run.scene not in scenes:
            scene = scenario_of(run.scene, trace)
            scenes[run.scene] = scene, replay(scene.workload, Fcfs())
        found = figures_of(run, *scenes[run.scene], given.home)
        known[run.key] = {}
        write_row(path, run, found)
        text = "  ".join(f"{name} {found[name]:.4g}" for name in COLUMNS[4:])
        print(f"{'  '.join(run.key):<40}{text}", flush=True)
    rows = rows_of(path)
    (given.out / "frontier.svg").write_text(paint(rows), encoding="utf-8")
    (given.out / "frontier.md").write_text(PAGE + table(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
