"""Means over draws and their intervals, pages from templates, files of values."""

import csv
import math

import pytest

from papers.results import HOLDS, OPEN, REVERSED, Claim, Done, Interval, Page, claims, in_parallel, interval_of
from tests.shared import refused

TEMPLATE = """# {title}

{notes}

![plot]({name}.svg)

{tables}

| said | paper | here | same direction |
| --- | --- | --- | --- |
{rows}
"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "figure0.md").write_text(TEMPLATE)
    return Page("other", tmp_path / "out", tmp_path / "figure0.md")


def test_a_template_is_filled_paragraph_by_paragraph(page, tmp_path):
    rows = claims([Claim("faster", "2", "1.5", True), Claim("fair", "-", "3"), Claim("less", "yes", "no", False)])
    page.write(title="T", notes="", tables=["a", "b"], rows=rows)
    assert (tmp_path / "out" / "other.md").read_text() == (
        "# T\n\n![plot](other.svg)\n\na\n\nb\n\n| said | paper | here | same direction |\n| --- | --- | --- | --- |\n"
        "| faster | 2 | 1.5 | yes |\n| fair | - | 3 |  |\n| less | yes | no | no |\n"
    )


def test_a_field_that_nobody_fills_writes_no_page(page, tmp_path):
    refused(KeyError, "rows", page.write, title="T", notes="", tables="")
    assert not (tmp_path / "out").exists()


def test_a_row_a_run_of_figures_that_all_have(tmp_path):
    figures = {"makespan_s": 7200.0, "worst_ftf": 1.0}
    own = [{"solver_gap_max": 1.0, "solve_s_total": 3.0}, {"solve_s_total": 1.0}]
    done = [Done("c", name, figures | more) for name, more in zip("ab", own, strict=True)]
    assert Page("t", tmp_path, tmp_path).runs(done) == done
    head, *rows = csv.reader((tmp_path / "t.csv").open())
    assert head == ["case", "policy", *figures]  # seconds of a machine are left out: they differ from run to run
    assert rows == [["c", "a", "7200", "1"], ["c", "b", "7200", "1"]]


def test_an_interval_by_hand():
    # t(.975, 3) = 3.18245; mean 4, variance 10 / 3 of four draws
    found = interval_of([2.0, 6.0, 3.0, 5.0])
    assert found.mean == 4.0
    assert found.high - 4.0 == pytest.approx(3.18245 * math.sqrt(10 / 3) / 2, rel=1e-5)
    assert (found.verdict, Interval(-1, -2, -0.5).verdict, Interval(0, -1, 1).verdict) == (HOLDS, REVERSED, OPEN)
    assert interval_of([7.0]).text() == "7.0"


def test_nothing_to_do_is_done():
    assert list(in_parallel(str, [], str)) == []
