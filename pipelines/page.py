"""Self-contained HTML pages: tables, figures and a template, with style and drawings inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

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
    """An SVG and the sentence below it."""

    svg: str
    caption: str
    narrow: bool = False


def render(template: str, **values: Any) -> str:
    """HTML of a template; all text is escaped, drawings are taken as they are."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    found.filters["drawn"] = Markup
    return found
