"""How well regimes are forecast, as text and as tables. Shockwave, section 5."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.page import Table

COLUMNS = {
    "regime_error": "regime error %",
    "misplaced": "misplaced %",
    "total_accuracy": "total time %",
    "remaining_accuracy": "remaining time %",
    "coverage": "90 % held",
    "coverage_open": "of open",
    "open": "open %",
}
"""Figure -> head of its column."""
GROUPS = {"all": "all jobs", "changing": "jobs that change"}
NOTE = (
    "Means over jobs and 0, 5, ... 95 % of the epochs. Regime error: mean absolute difference of the regimes' "
    "epochs; misplaced: half of their sum; both in % of the job's epochs. Time: accuracy. 90 % held: intervals that "
    "hold the remaining time, of all and of those that are open, more than a point."
)
NAME_WIDTH, BETWEEN = 14, 2


def regime_lines(result: Mapping[str, Any]) -> list[str]:
    """Lines for a terminal: a group of jobs after another, a rule a line."""
    lines = [f"jitter {result['sample']['jitter']:g}, number of regimes {result['sample']['k']}"]
    for group, block in result["regimes"].items():
        head = "".join(f"{'':{BETWEEN}}{column}" for column in COLUMNS.values())
        lines += ["", f"{block['jobs']} {GROUPS[group]}", f"{'':{NAME_WIDTH}}{head}"]
        for name, figures in block["rules"].items():
            shown = "".join(f"{_shown(figures[key]):>{len(head) + BETWEEN}}" for key, head in COLUMNS.items())
            lines.append(f"{name:<{NAME_WIDTH}}{shown}".rstrip())
    return lines


def regime_tables(name: str, figures: Mapping[str, Any]) -> list[Table]:
    """A table a group of jobs."""
    return [
        Table(
            f"Regimes of {GROUPS[group]} ({name})",
            ("rule", *COLUMNS.values()),
            [(rule, *(_shown(one[key]) for key in COLUMNS)) for rule, one in block["rules"].items()],
            1,
            NOTE,
        )
        for group, block in figures["regimes"].items()
    ]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
