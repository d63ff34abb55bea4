"""Pages of figures made anew: Markdown templates filled with tables and what came out, and files of values.

The text of a page stands in a template beside its module, the paper's claims included; Python fills in what it found.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

HOUR_S = 3600.0
D = TypeVar("D", bound=Any)
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


@dataclass(frozen=True, slots=True)
class Page:
    """The folder of a figure, and what is written into it: its page, files of values, plots.

    Attributes
    ----------
    name : of the figure, and of its files
    out : the folder, made where it is missing
    template : of the page, in Markdown
    """

    name: str
    out: Path
    template: Path

    def named(self, name: str) -> "Page":
        """The same folder for a file of another name."""
        return replace(self, name=name)

    def file(self, kind: str) -> Path:
        """`NAME.kind`."""
        self.out.mkdir(parents=True, exist_ok=True)
        return self.out / f"{self.name}.{kind}"

    def write(self, **parts: object) -> None:
        """Fill the template and write it as `NAME.md`.

        Parameters
        ----------
        parts : values of the template's fields, beside the name; a list is one paragraph each, an empty paragraph is
            left out
        """
        joined = {key: "\n\n".join(part) if isinstance(part, list) else part for key, part in parts.items()}
        # Paragraph by paragraph, so that one whose only field is empty leaves no gap.
        paragraphs = self.template.read_text(encoding="utf-8").strip().split("\n\n")
        filled = [one.format(name=self.name, **joined) for one in paragraphs]
        self.file("md").write_text("\n\n".join(filter(None, filled)) + "\n", encoding="utf-8")

    def csv(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write `NAME.csv`."""
        with self.file("csv").open("w", encoding="utf-8", newline="") as file:
            # The same bytes on every system.
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)

    def runs(self, done: list[D]) -> list[D]:
        """Write `NAME.csv` and give the runs back: a row a run, with its seed where it has one, and steady figures.

        Of the figures those that all runs have.
        """
        keys = [key for key in done[0].figures if key not in UNSTEADY and all(key in one.figures for one in done)]
        seeds = [] if done[0].seed is None else ["seed"]
        rows = [
            (one.case, one.name, *(getattr(one, seed) for seed in seeds), *(f"{one.figures[key]:.6g}" for key in keys))
            for one in done
        ]
        self.csv(("case", "policy", *seeds, *keys), rows)
        return done


def read_printed(source: str, name: str) -> list[dict[str, str]]:
    """Rows of a file beside a module: what a paper prints."""
    with Path(source).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
