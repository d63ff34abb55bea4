"""The command that makes the figures anew."""

import types

import pytest

from papers import driver
from papers.driver import reproduce
from papers.shockwave.__main__ import PAPER, main
from tests.papers.conftest import answered


def test_figures_without_data_are_made_and_put_into_one_page(data, tmp_path):
    out = tmp_path / "out"
    answered(main, "figure4", "table1", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["figure4", "results.md", "table1"]
    page = (out / "results.md").read_text()
    assert page.index("## Table 1") < page.index("## Figure 4")  # in the paper's order, not as they were named
    assert "](figure4/figure4.svg)" in page


def test_a_figure_that_fails_leaves_what_was_there(data, tmp_path, monkeypatch):
    def broken(data, page):
        page.file("md").write_text("half")
        raise ArithmeticError("no")

    old = tmp_path / "out" / "figure4"
    old.mkdir(parents=True)
    (old / "figure4.md").write_text("# whole\n")
    monkeypatch.setattr(driver, "import_module", lambda name: types.SimpleNamespace(figure4=broken))
    with pytest.raises(ArithmeticError):
        reproduce(PAPER, ("figure4",), tmp_path / "out", data)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figure4"]
    assert (old / "figure4.md").read_text() == "# whole\n"
