"""Pages of figures made anew: Markdown templates filled with tables and what came out, and files of values.

The text of a page stands in a template beside its module, the paper's claims included; Python fills in what it found.
"""

import csv
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

HOUR_S = 3600.0
UNSTEADY = ("solve_s_total", "milp_solve_s", "decision_ms_mean", "decision_ms_max", "cpu_s")
"""Seconds of a machine differ from run to run."""


class Claim(NamedTuple):
    """A sentence of the paper: what it prints, what came out, and whether its direction holds (None: no direction)."""

    text: str
    paper: str
    here: str
    holds: bool | None = None


def result(here: str, holds: bool | None = None) -> str:
    """What came out beside a claim that stands in a template: the last two cells of its row.

    >>> result("1.2", True), result("-")
    ('1.2 | yes', '- | ')
    """
    return f"{here} | {'' if holds is None else 'yes' if holds else 'no'}"


def claims(found: Iterable[Claim]) -> str:
    """Rows of a template's table of claims."""
    return lines((one.text, one.paper, result(one.here, one.holds)) for one in found)


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows of a table in Markdown, without its head."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> grid(("a", "b"), [("1", "2")])
    '| a | b |\\n| --- | --- |\\n| 1 | 2 |'
    """
    return lines([head, ["---"] * len(head), *rows])


def number(value: float, digits: int = 2) -> str:
    """A number, or a dash where there is none.

    >>> number(1.234), number(float("nan"))
    ('1.23', '-')
    """
    return f"{value:.{digits}f}" if isfinite(value) else "-"


def numbers(values: Iterable[float], digits: int = 2) -> str:
    """Numbers between commas."""
    return ", ".join(number(value, digits) for value in values)


def write_page(source: str, out: Path, name: str = "", **parts: object) -> None:
    """Fill the template beside a module and write it as `NAME.md` into a folder, made where it is missing.

    Parameters
    ----------
    source : file of the module; its template differs in the suffix alone
    name : of the page; the module's where it is left out; a field too
    parts : values of the template's fields; a list is one paragraph each, an empty paragraph is left out
    """
    template = Path(source).with_suffix(".md")
    name = name or template.stem
    joined = {key: "\n\n".join(part) if isinstance(part, list) else part for key, part in parts.items()}
    # Paragraph by paragraph, so that one whose only field is empty leaves no gap.
    paragraphs = template.read_text(encoding="utf-8").strip().split("\n\n")
    filled = [one.format(name=name, **joined) for one in paragraphs]
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text("\n\n".join(filter(None, filled)) + "\n", encoding="utf-8")


def read_printed(source: str, name: str) -> list[dict[str, str]]:
    """Rows of a file beside a module: what a paper prints."""
    with Path(source).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_runs(out: Path, name: str, done: Sequence[Any]) -> None:
    """Write `NAME.csv`: a row a run, with its seed where it has one, and the steady figures that all runs have."""
    keys = [key for key in done[0].figures if key not in UNSTEADY and all(key in one.figures for one in done)]
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
        # The same bytes on every system.
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
