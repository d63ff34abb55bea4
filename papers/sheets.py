"""Pages of figures made anew: tables, claims of the paper beside what came out, and files."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from papers.runs import SHOCKWAVE, Means

HOUR_S = 3600.0
HEAD = (
    "policy", "makespan h", "x", "utilisation %", "mean JCT h", "x", "worst FTF", "over its life",
    "FTF > 1, %", "> 1.05", "> 1.1", "> 1 over its life",
)  # fmt: skip
LOWER_IS_BETTER = {
    "makespan": "makespan_s",
    "mean JCT": "mean_jct_s",
    "worst FTF": "worst_ftf",
    "share of jobs with FTF above 1": "unfair_pct_100",
}
UNSTEADY = ("solve_s_total",)
"""Seconds of a machine differ from run to run."""
SAME = 0.005
"""Figures that differ by less, relatively, count as equal."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper: what it prints, what came out, and whether its direction holds (None: no direction)."""

    text: str
    paper: str
    here: str
    holds: bool | None = None


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> grid(("a", "b"), [("1", "2")])
    '| a | b |\\n| --- | --- |\\n| 1 | 2 |'
    """
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def number(value: float, digits: int = 2) -> str:
    """A number, or a dash where there is none.

    >>> number(1.234), number(float("nan"))
    ('1.23', '-')
    """
    return f"{value:.{digits}f}" if isfinite(value) else "-"


def comparison(found: Means, case: str) -> str:
    """The policies of one case, relative to Shockwave where it is among them."""
    rows = {name: figures for (of, name), figures in found.items() if of == case}
    base = rows.get(SHOCKWAVE, next(iter(rows.values())))
    return grid(HEAD, (_line(name, figures, base) for name, figures in rows.items()))


def _line(name: str, figures: Mapping[str, float], base: Mapping[str, float]) -> tuple[str, ...]:
    return (
        name,
        number(figures["makespan_s"] / HOUR_S),
        number(figures["makespan_s"] / base["makespan_s"]),
        number(100 * figures["utilization"], 1),
        number(figures["mean_jct_s"] / HOUR_S),
        number(figures["mean_jct_s"] / base["mean_jct_s"]),
        number(figures["worst_ftf"]),
        number(figures["worst_ftf_lifetime"]),
        *(number(figures[f"unfair_pct_{limit}"], 1) for limit in (100, 105, 110)),
        number(figures["unfair_pct_100_lifetime"], 1),
    )


def who_is_better(found: Means, case: str) -> str:
    """Which other policies do better than Shockwave by which figure."""
    base = found[case, SHOCKWAVE]
    parts = []
    for said, figure in LOWER_IS_BETTER.items():
        better = [
            name for (of, name), figures in found.items() if of == case and figures[figure] < base[figure] * (1 - SAME)
        ]
        parts.append(f"{said}: {', '.join(better) or 'nobody'}")
    return "Better than shockwave by " + "; by ".join(parts) + "."


def claims(found: Iterable[Claim]) -> str:
    """Claims as a table."""
    verdict = {True: "yes", False: "no", None: ""}
    rows = ((one.text, one.paper, one.here, verdict[one.holds]) for one in found)
    return grid(("what the paper says", "paper", "here", "same direction"), rows)


def picture(name: str, says: str) -> str:
    """A link to a plot beside the page."""
    return f"![{says}]({name}.svg)"


def write_page(out: Path, name: str, parts: Iterable[str]) -> None:
    """Write `NAME.md` of paragraphs into a folder, made where it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_runs(out: Path, name: str, done: Sequence[Any], unsteady: Sequence[str] = UNSTEADY) -> None:
    """Write `NAME.csv`: a row a run, with its seed where it has one, and the figures that all runs have.

    `unsteady` are left out: seconds of a machine differ from run to run.
    """
    keys = [key for key in done[0].figures if key not in unsteady and all(key in one.figures for one in done)]
    seeds = ["seed"] if hasattr(done[0], "seed") else []
    rows = [
        (one.case, one.name, *(getattr(one, seed) for seed in seeds), *(f"{one.figures[key]:.6g}" for key in keys))
        for one in done
    ]
    write_csv(out, name, ("case", "policy", *seeds, *keys), rows)


def write_csv(out: Path, name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write `NAME.csv` into a folder, made where it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
