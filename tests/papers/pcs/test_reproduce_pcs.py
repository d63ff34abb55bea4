"""The command that makes PCS's figures anew."""

import types

import pytest

from papers import driver
from papers.driver import reproduce
from papers.pcs.__main__ import PAPER, main
from tests.papers.conftest import answered


@pytest.fixture
def made(monkeypatch):
    """Names of the figures that were made; each writes the fronts' folder that it was told."""
    names = []

    def module(path):
        name = path.rsplit(".", 1)[1]

        def figure(sources, page):
            names.append(name)
            page.file("md").write_text(f"# {name}\n\n{sources.fronts.name}\n")

        return types.SimpleNamespace(**{name: figure})

    monkeypatch.setattr(driver, "import_module", module)
    return names


def test_the_toy_is_made_without_searches(data, tmp_path):
    out = tmp_path / "out"
    answered(main, "figure1", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["figure1", "results.md"]
    page = (out / "results.md").read_text()
    assert page.startswith("# PCS: what came out\n\nWritten by `make reproduce-pcs`.\n\n## Figure 1")
    assert "](figure1/figure1.svg)" in page
    assert "| mean error of Themis | 24 % | 24.2 % | yes |" in page
    assert "| peak unfairness of FIFO | 500 % | 500.0 % | yes |" in page


def test_searches_come_first_where_they_are_needed_and_missing(data, tmp_path, made):
    reproduce(PAPER, ("figure7",), tmp_path / "out", data)
    assert made == ["fronts", "figure7"]
    reproduce(PAPER, ("figure10", "figure1"), tmp_path / "out", data)
    assert made[2:] == ["figure10", "figure1"]
    assert (tmp_path / "out" / "figure10" / "figure10.md").read_text().endswith("fronts\n")


def test_resuming_leaves_alone_what_is_there(data, tmp_path, made):
    reproduce(PAPER, ("figure1",), tmp_path / "out", data)
    reproduce(PAPER, ("figure1", "figure9"), tmp_path / "out", data, resume=True)
    assert made == ["figure1", "figure9"]
    reproduce(PAPER, ("figure1",), tmp_path / "out", data)
    assert made == ["figure1", "figure9", "figure1"]
