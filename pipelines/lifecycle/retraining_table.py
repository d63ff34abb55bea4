"""A walk of retraining as a table for a terminal: a line a week and block, then all weeks together."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.lifecycle.retraining import NAMES
from jobcast.pipelines.wording import UNKNOWN, between, number, signed

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "will-jobs-arrive": ("pr_auc", "f1", "ece", "miss_rate"),
    "new-load": ("coverage", "coverage_nonzero", "over", "pinball"),
    "job-duration": ("accuracy", "macro_f1", "log_loss", "ece"),
}
"""Figures that are shown of each predictor."""
SHORT_BELOW = 10.0


def retraining_table(result: Mapping[str, Any]) -> str:
    """What `train --retrain` says to a person: each figure of the retrained version, then of the first one."""
    from rich import box
    from rich.table import Table

    from jobcast.pipelines.report import in_terminal

    names = COLUMNS[result["predictor"]]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("scored from", "no.", "", "n", *names):
        table.add_column(name.replace("_", " "), justify="left" if name in ("scored from", "") else "right")
    for week in result["weeks"]:
        when = week["scored"]["from"][:10]
        for block in week[NAMES[0]] or (UNKNOWN,):
            ours, theirs = (week[name].get(block, {}) for name in NAMES)
            table.add_row(when, str(week["version"]), block, *_cells(ours, theirs, names))
    pooled = result["pooled"]
    for block, told in (pooled or {"blocks": {}})["blocks"].items():
        table.add_row("all", "", block, *_cells(told[NAMES[0]], told[NAMES[1]], names))
    lines = [
        f"{result['predictor']}: no. = version of the week; each figure of it / of the first version, never retrained"
    ]
    return "\n".join([*lines, "", in_terminal(table), *_difference(pooled)])


def _cells(ours: Mapping[str, Any], theirs: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [number(ours.get("n")), *(f"{_short(ours.get(name))} / {_short(theirs.get(name))}" for name in names)]


def _short(value: float | None) -> str:
    """A figure around 1 with three decimals, a larger one with fewer, so that eight columns fit a terminal."""
    return UNKNOWN if value is None else f"{value:.3f}" if abs(value) < SHORT_BELOW else number(value)


def _difference(pooled: Mapping[str, Any] | None) -> list[str]:
    if pooled is None:
        return ["", "nothing was scored: the window ends with the first training"]
    better = "less" if pooled["less_is_better"] else "more"
    low, high = pooled["interval"] or (None, None)
    told = f"{signed(pooled['difference'])} ({between(low, high, signed)}, {100 * pooled['confidence']:g} % by days)"
    return ["", f"retrained less first, mean {pooled['figure']} ({better} is better): {told}"]
