"""Shockwave, Figure 5: how well regimes and run times are forecast over a job's progress, by rule."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from jobcast.models.evaluation.regimes import compare_rules, knowing
from jobcast.models.regimes import REGIME_RULES, RegimePrior
from jobcast.models.regimes.trajectories import POINTS
from jobcast.pipelines.lifecycle.recipes.regimes import training_jobs
from jobcast.pipelines.report.look import WIDE, legend_beside, styles
from jobcast.pipelines.report.predictor_tables import COLUMNS, GROUPS
from jobcast.traces.readers import read_trace
from papers.plotting import save
from papers.results import Page, grid, number, result
from papers.shockwave.workloads import FOLDER, TACC, WISR

NAME = "figure5"
JITTER = 0.3
FINISHED = 200
SEED = 0
LEARNT, SCORED = (220, WISR), (120, TACC)
"""Jobs of the trace and throughputs: what the prior learns from, and what all rules are scored on."""
CURVES = ("regime_error", "misplaced", "total", "remaining")
PANELS = {"regime_error": "regime error, % of epochs", "total": "accuracy of total run time, %"}
KNOWN, UPPER = "K known", "K an upper bound"
Found = dict[str, dict[str, dict[str, Any]]]
"""K -> group of jobs -> figures by rule."""


def figure5(data: Path, page: Page) -> None:
    """Write `figure5.md`, `.csv` and `.svg` into a folder: figures of all rules, and curves over progress.

    Parameters
    ----------
    data : folder that holds `shockwave/`
    out : folder, made where it is missing
    """
    found = scored(data)
    head = ("K", "jobs", "rule", "progress_pct", "regime_error_pct", "misplaced_pct", "total_pct", "remaining_pct")
    page.csv(head, _rows(found))
    save(page, "Forecasts of regimes and run times over progress, K an upper bound", _paint, WIDE, found[UPPER])
    tables = [
        part
        for k, groups in found.items()
        for group, block in groups.items()
        for part in (f"## {k}, {block['jobs']} {GROUPS[group]}", _table(block["rules"]))
    ]
    shown = {"jobs": found[UPPER]["all"]["jobs"], "scored": SCORED[0], "learnt": LEARNT[0], "finished": FINISHED}
    page.write(**shown, jitter=JITTER, tables=tables, **_found(found))


def scored(data: Path) -> Found:
    """All rules on the jobs of one trace; the prior has learnt from others, and never knows K."""
    finished = _jobs(data, *LEARNT, SEED)
    prior = RegimePrior(SEED, calibration="open").fit(
        [(job.training, truth) for job, truth in list(zip(*finished, strict=True))[:FINISHED] if job.training]
    )
    # Another seed: the jitter of the jobs that are scored is not the one that was learnt from.
    jobs, truth = _jobs(data, *SCORED, SEED + 1)
    rules: dict[str, Any] = {name: rule() for name, rule in REGIME_RULES.items()}
    return {
        KNOWN: compare_rules(rules, knowing(jobs, truth), truth),
        UPPER: compare_rules({**rules, "prior": prior}, jobs, truth),
    }


def _jobs(data: Path, count: int, throughputs: str, seed: int) -> Any:
    folder = data / FOLDER
    given = {"throughputs": str(folder / throughputs), "jitter": str(JITTER)}
    given["regimes"] = str(folder / f"regimes_{count}_planned.csv")
    return training_jobs(read_trace(folder / f"{count}_jobs.trace", format="shockwave"), given, seed)


def _rows(found: Found) -> list[tuple[object, ...]]:
    return [
        (k, group, rule, point, *(f"{one['by_progress'][name][at]:.4f}" for name in CURVES))
        for k, groups in found.items()
        for group, block in groups.items()
        for rule, one in block["rules"].items()
        for at, point in enumerate(POINTS)
    ]


def _paint(figure: Figure, groups: dict[str, dict[str, Any]]) -> None:
    panels = figure.subplots(2, len(groups), squeeze=False, sharex=True)
    for column, (group, block) in enumerate(groups.items()):
        looks = styles(list(block["rules"]))
        for row, (curve, says) in enumerate(PANELS.items()):
            axes = panels[row][column]
            for rule, one in block["rules"].items():
                axes.plot(POINTS, one["by_progress"][curve], label=rule, color=looks[rule].color)
            axes.set_ylabel(says if column == 0 else "")
            axes.set_title(GROUPS[group] if row == 0 else "", loc="left")
            if row:
                axes.set_xlabel("progress, % of epochs")
    legend_beside(panels[0][-1])


def _table(rules: dict[str, Any]) -> str:
    shown = {rule: [one[key] for key in COLUMNS] for rule, one in rules.items()}
    rows = [(rule, *("" if one is None else number(one, 1) for one in values)) for rule, values in shown.items()]
    return grid(("rule", *COLUMNS.values()), rows)


def _found(found: Found) -> dict[str, str]:
    known, upper = found[KNOWN]["changing"]["rules"], found[UPPER]["all"]["rules"]
    error, unknown = ({rule: one["regime_error"] for rule, one in rules.items()} for rules in (known, upper))
    ours = error["restatement"]
    shown, others = (", ".join(f"{rule} {number(value, 1)}" for rule, value in of.items()) for of in (error, unknown))
    return {
        "best": result(shown, ours < min(error["bayes"], error["greedy"])),
        "error": result(f"{number(ours, 1)} %"),
        "total": result(f"{number(known['restatement']['total_accuracy'], 1)} % of the total"),
        "upper": result(others, unknown["restatement"] < unknown["greedy"]),
    }
