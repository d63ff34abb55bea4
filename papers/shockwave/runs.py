"""Policies of rounds on workloads, what the paper compares of them, and the tables and bars of a figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jobcast.pipelines.experiments.forecast_specs import RESTATEMENT, ForecastSpec
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.report.charts import thin_cdf
from jobcast.pipelines.report.look import WIDE, legend_beside
from jobcast.simulator import metrics
from papers.plotting import alike, grouped, panels, save
from papers.results import HOUR_S, Means, Measure, Page, Replayed, grid, means, names_of, number, of_case, result
from papers.shockwave.workloads import perturbed

SHOCKWAVE = "shockwave"
BASELINES = ("ossp", "themis_filter", "gavel", "allox", "mst", "gandiva_fair")
"""Of section 8.2, without Pollux."""
FAIR = ("themis_filter", "gavel", "allox")
"""What sections 8.3 to 8.6 average over."""
RULE = "longest_then_srpt"
SIMPLE = (RULE, "srpt", "las")
ALWAYS = (SHOCKWAVE, *BASELINES, *SIMPLE)
GREEDY = ForecastSpec("greedy")
NO_HOME = Path("mlruns")
"""No run here asks the registry."""
HEAD = (
    "policy", "makespan h", "x", "utilisation %", "mean JCT h", "x", "worst FTF", "over its life",
    "FTF > 1, %", "> 1.05", "> 1.1", "> 1 over its life",
)  # fmt: skip
MAKESPAN = Measure("makespan_s", "makespan, h", scale=1 / HOUR_S)
JCT = Measure("mean_jct_s", "mean JCT, h", scale=1 / HOUR_S)
WORST = Measure("worst_ftf", "worst FTF")
UNFAIR = Measure("unfair_pct_100", "jobs with FTF > 1, %", 1)
USED = Measure("utilization")
PANELS = (MAKESPAN, JCT, WORST, UNFAIR)
LOWER_IS_BETTER = {"makespan": MAKESPAN, "mean JCT": JCT, "worst FTF": WORST, "share of jobs with FTF above 1": UNFAIR}
LOW, HIGH = "_low", "_high"
"""Ends of a range: what a figure's key ends in."""
SAME = 0.005
"""Figures that differ by less, relatively, count as equal."""
TALL_PANEL = 2.6


@dataclass(frozen=True, slots=True)
class Task:
    """A policy on a workload.

    Attributes
    ----------
    case, label : what the run is called in tables: its workload and its policy; of runs of one name medians are told
    perturbation : seed of `workloads.perturbed`; None: the jobs as they are
    """

    case: str
    scenario: RigidScenario
    policy: str
    spec: ForecastSpec = RESTATEMENT
    settings: Mapping[str, str] = field(default_factory=dict)
    perturbation: int | None = None
    label: str = ""


def trials(tasks: Iterable[Task], count: int, most: int) -> list[Task]:
    """Tasks on `count` perturbations of their jobs, those of Shockwave and of the rule that it must beat on `most`."""
    tried = {SHOCKWAVE: most, RULE: most}
    return [replace(one, perturbation=seed) for one in tasks for seed in range(tried.get(one.policy, count))]


def run(task: Task) -> Replayed:
    """Simulate one task."""
    seed = task.perturbation
    scenario = task.scenario if seed is None else perturbed(task.scenario, seed)
    made = simulate(scenario, Ask(policy=task.policy, spec=task.spec, home=NO_HOME, settings=dict(task.settings)))
    return Replayed(task.case, task.label or task.policy, {**metrics.figures(made.log), **made.own}, log=made.log)


def ratio(found: Means, case: str, measure: Measure, names: Sequence[str] = FAIR) -> float:
    """Mean over policies of a figure relative to Shockwave's; NaN where that one's is 0."""
    base = found[case, SHOCKWAVE][measure.key]
    return float(np.mean([found[case, name][measure.key] for name in names])) / base if base else float("nan")


def above(value: float, digits: int = 2) -> str:
    """A ratio to Shockwave's beside a claim that has it above 1."""
    return result(number(value, digits), value > 1)


def comparison(found: Means, case: str) -> str:
    """The policies of one case, relative to Shockwave where it is among them."""
    rows = of_case(found, case)
    base = rows.get(SHOCKWAVE, next(iter(rows.values())))
    return grid(HEAD, (_line(name, figures, base) for name, figures in rows.items()))


def _line(name: str, figures: Mapping[str, float], base: Mapping[str, float]) -> tuple[str, ...]:
    return (
        name,
        ranged(MAKESPAN, figures),
        number(figures["makespan_s"] / base["makespan_s"]),
        number(100 * figures["utilization"], 1),
        ranged(JCT, figures),
        number(figures["mean_jct_s"] / base["mean_jct_s"]),
        ranged(WORST, figures),
        number(figures["worst_ftf_lifetime"]),
        *(number(figures[f"unfair_pct_{limit}"], 1) for limit in (100, 105, 110)),
        number(figures["unfair_pct_100_lifetime"], 1),
    )


def ranged(measure: Measure, figures: Mapping[str, float]) -> str:
    """The median as tables print it, and the range of the runs where they differ."""
    low, high = (measure.text({measure.key: figures.get(measure.key + end, 0.0)}) for end in (LOW, HIGH))
    return measure.text(figures) if low == high else f"{measure.text(figures)} ({low}-{high})"


def medians(done: Iterable[Replayed]) -> Means:
    """Figures by case and name: medians over runs of one name, beside the least and the most of each."""
    every = list(done)
    found = means(every, np.median)
    for end, of in ((LOW, np.min), (HIGH, np.max)):
        for key, figures in means(every, of).items():
            found[key] |= {f"{name}{end}": value for name, value in figures.items()}
    return found


def who_is_better(found: Means, case: str) -> str:
    """Which other policies do better than Shockwave by which figure."""
    rows, parts = of_case(found, case), []
    for said, measure in LOWER_IS_BETTER.items():
        most = rows[SHOCKWAVE][measure.key] * (1 - SAME)
        better = [name for name, figures in rows.items() if figures[measure.key] < most]
        parts.append(f"{said}: {', '.join(better) or 'nobody'}")
    return "Better than shockwave by " + "; by ".join(parts) + "."


def write_cases(page: Page, title: str, done: list[Replayed]) -> tuple[Means, list[str]]:
    """Write the table of runs and the bars of a figure into a folder.

    Returns
    -------
    found : medians of the runs
    tables : for the page: a heading, a table of policies and who is better, for each case
    """
    found = medians(done)
    page.runs(done)
    bars(page, title, found)
    tables = [(f"## {case}", comparison(found, case), who_is_better(found, case)) for case in names_of(found)[0]]
    return found, [part for table in tables for part in table]


def bars(page: Page, title: str, found: Means) -> None:
    """Draw `NAME.svg`: four panels, as the paper has them: a group of bars a case, a bar a policy."""
    cases, names = names_of(found)

    def panel(axes: Axes, one: Measure) -> None:
        values = {
            label: [found.get((case, label), {}).get(one.key, np.nan) * one.scale for case in cases] for label in names
        }
        grouped(axes, cases, values, alike(ALWAYS, names))

    panels(page, title, PANELS, panel, height=2 * TALL_PANEL, columns=2)


def fairness_cdfs(page: Page, title: str, done: Sequence[Replayed]) -> None:
    """Draw `NAME.svg`: distributions over jobs of finish-time fairness, a line a run."""
    style = alike(ALWAYS, (one.name for one in done))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for one in done:
            x, share = thin_cdf(metrics.finish_time_fairness(one.log, metrics.static_contention(one.log)))
            axes.step(x, share, where="post", label=one.name, **style[one.name].line)
        axes.set(xlabel="FTF (above 1 is unfair)", ylabel="share of jobs", ylim=(0, 1.02))
        legend_beside(axes)

    save(page, title, paint, WIDE)
