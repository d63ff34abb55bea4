"""How tables and pages are laid out: text for a terminal, Markdown, and HTML with style, charts and scripts inside."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast.pipelines.report.console import printable

if TYPE_CHECKING:
    from jinja2 import Environment

    from jobcast.pipelines.report.charts import Chart

TERMINAL_COLUMNS = 100
GAP = 2
"""Columns between two of a table's."""
LEAST_FOLDED = 12
"""Columns in which names can still be read."""
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to be shown.

    Attributes
    ----------
    caption : what it shows
    head : names of the columns, units included
    rows : text by column
    words : how many columns, from the left, hold words; the rest are numbers, aligned right
    note : what a reader must know to read it
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart and the sentence below it."""

    chart: "Chart"
    caption: str
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence that says it all, and those that put it in its place."""

    lead: str
    sentences: Sequence[str]


def render(template: str, **values: Any) -> str:
    """HTML of a template; all text is escaped. It holds the scripts of its charts and loads nothing."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from jobcast.pipelines.report.charts import as_json, library

    # Missing values raise: a page with a hole in it would go unnoticed.
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    found.globals["script"] = Markup((TEMPLATES / "page.js").read_text(encoding="utf-8"))
    found.globals["library"] = lambda: Markup(library())
    found.filters["specification"] = lambda one: Markup(as_json(one))
    return found


def in_terminal(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int] = (0,), least: Sequence[int | None] = ()
) -> str:
    """A table as plain text, at most `TERMINAL_COLUMNS` wide where numbers leave as much, without colours.

    Parameters
    ----------
    left : places of the columns that hold words, aligned left
    least : columns that each gets before its cells are folded, the other columns of words what is left; where given,
        columns stand close to one another, and numbers are whole
    """
    # Here: rich and jinja are slow to import, and most commands show no table.
    import io

    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable

    lines = [[printable(cell) for cell in row] for row in rows]  # before rich drops some control characters unseen
    folded, most, columns = _rest(head, lines, left, least, cell_len) if least else (set[int](), None, TERMINAL_COLUMNS)
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=bool(least))
    for place, (name, width) in enumerate(zip_longest(map(printable, head), least)):
        table.add_column(
            name,
            justify="left" if place in left else "right",
            overflow="fold",
            min_width=width,
            max_width=most if place in folded else None,
        )
    for row in lines:
        table.add_row(*row)
    paper = io.StringIO()
    # Without markup and emoji, so that brackets and colons in a label stay what they are.
    plain: dict[str, Any] = {"no_color": True, "markup": False, "emoji": False, "legacy_windows": False}
    # In a notebook rich would show the table beside writing it.
    Console(file=paper, width=columns, force_jupyter=False, **plain).print(table)
    # rich pads each line to the full width.
    return "\n".join(line.rstrip() for line in paper.getvalue().splitlines()).strip("\n")


def _rest(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[int],
    least: Sequence[int | None],
    width: Callable[[str], int],
) -> tuple[set[int], int, int]:
    """Columns of words that nothing is promised, how wide each may be, and how wide the table then is.

    rich takes from wide columns alike and then widens those that are promised more: what stands at the right was cut.
    """
    folded = {place for place in left if least[place] is None}
    whole = [max(map(width, column)) for column in zip(head, *rows, strict=True)]
    kept = [least[place] or wide for place, wide in enumerate(whole) if place not in folded]
    taken = sum(kept) + GAP * (len(head) - 1)
    most = max((TERMINAL_COLUMNS - taken) // max(len(folded), 1), LEAST_FOLDED)
    return folded, most, max(TERMINAL_COLUMNS, taken + most * len(folded))


def markdown_lines(head: Sequence[str], rows: Iterable[Sequence[str]], words: int | None = None) -> list[str]:
    """A table, and an empty line after it; `words`: columns from the left that hold words, the rest numbers."""
    sides = [":--" if column < words else "--:" for column in range(len(head))] if words else ["---"] * len(head)
    lines = ([cell.replace("|", "\\|") for cell in line] for line in (head, sides, *rows))
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def aligned(rows: Sequence[Sequence[str]], words: int | None = None) -> str:
    """Rows of cells, each column as wide as its widest.

    `words`: columns from the left whose cells stand to the left, those of all others to the right; None: all.

    >>> print(aligned([["job", "GPUs"], ["a-long-name", "2"]], words=1))
    job          GPUs
    a-long-name     2
    """
    left = len(rows[0]) if words is None else words
    columns = enumerate(zip(*rows, strict=True))
    sides = [f"{'<' if place < left else '>'}{max(map(len, column))}" for place, column in columns]
    lines = ("  ".join(f"{cell:{side}}" for cell, side in zip(row, sides, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
