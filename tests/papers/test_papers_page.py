"""The page of all figures and tables of the papers."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
FIGURES = {
    "sia": {*range(1, 4), *range(5, 9), 11, *range(13, 17), 18, 19, 21, 22, 24},
    "shockwave": set(range(1, 18)),
    "pcs": set(range(1, 11)),
    "mlfs": set(range(1, 9)),
    "andreas": set(range(1, 6)),
}
"""Numbers of the papers' figures; those that SIA leaves out are tables."""
VERDICTS = ("reproduced", "partly", "contradicts", "absent", "design")


def rows(paper):
    """Items of a paper's table, and their cells."""
    section = re.split(rf"\n## {paper}\n", PAGE, flags=re.IGNORECASE)[1].split("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("paper", FIGURES)
def test_everything_that_is_made_stands_on_the_page(paper):
    made = import_module(f"papers.{paper}.__main__").PAPER.items
    section = " ".join(" ".join(row) for row in rows(paper))
    assert [one for one in made if not re.search(rf"\b{one}`", section)] == []


@pytest.mark.parametrize("paper", FIGURES)
def test_every_figure_of_the_paper_has_a_row(paper):
    found = set()
    for row in rows(paper):
        figures = row[0] if row[0].startswith("Figure") else row[0].partition("Figure")[2]
        for low, high in re.findall(r"\b(\d+)[a-c]?(?: to (\d+))?", figures.partition("Table")[0]):
            found |= set(range(int(low), int(high or low) + 1))
    assert FIGURES[paper] <= found


@pytest.mark.parametrize("paper", FIGURES)
def test_every_row_has_a_verdict_and_absence_a_reason(paper):
    for row in rows(paper):
        if row[0].startswith(("Figure", "Table")):
            assert row[-1].startswith(VERDICTS), row
            assert not row[-1].startswith("absent") or ": " in row[-1], row
