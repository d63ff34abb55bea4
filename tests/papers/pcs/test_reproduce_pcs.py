"""The command that makes PCS's figures anew."""

import types

import pytest
from click.testing import CliRunner

from jobcast.domain.errors import ConfigError
from papers.pcs import __main__ as command
from papers.pcs.__main__ import ITEMS, SEARCHED, main, reproduce


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "data" / "pcs").mkdir(parents=True)
    monkeypatch.setenv("JOBCAST_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def made(monkeypatch):
    """Names of the figures that were made; each writes the fronts' folder that it was told."""
    names = []

    def module(path):
        name = path.rsplit(".", 1)[1]

        def figure(data, out, fronts):
            names.append(name)
            out.mkdir(parents=True)
            (out / f"{name}.md").write_text(f"# {name}\n\n{fronts.name}\n")

        return types.SimpleNamespace(**{name: figure})

    monkeypatch.setattr(command, "import_module", module)
    return names


def test_every_item_has_a_function_of_its_name():
    for name in ITEMS:
        assert callable(getattr(command.import_module(f"papers.pcs.{name}"), name))
    assert set(SEARCHED) < set(ITEMS)


def test_the_toy_is_made_without_searches(data, tmp_path):
    out = tmp_path / "out"
    answer = CliRunner().invoke(main, ["figure1", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    assert sorted(path.name for path in out.iterdir()) == ["figure1", "results.md"]
    page = (out / "results.md").read_text()
    assert page.startswith("# PCS: what came out\n\nWritten by `make reproduce-pcs`.\n\n## Figure 1")
    assert "](figure1/figure1.svg)" in page
    assert "| mean error of Themis | 24 % | 24.2 % | yes |" in page


def test_searches_come_first_where_they_are_needed_and_missing(data, tmp_path, made):
    reproduce(("figure7",), tmp_path / "out", data)
    assert made == ["fronts", "figure7"]
    reproduce(("figure8", "figure1"), tmp_path / "out", data)
    assert made[2:] == ["figure8", "figure1"]
    assert (tmp_path / "out" / "figure8" / "figure8.md").read_text().endswith("fronts\n")


def test_resuming_leaves_alone_what_is_there(data, tmp_path, made):
    reproduce(("figure1",), tmp_path / "out", data)
    reproduce(("figure1", "figure9"), tmp_path / "out", data, resume=True)
    assert made == ["figure1", "figure9"]
    reproduce(("figure1",), tmp_path / "out", data)
    assert made == ["figure1", "figure9", "figure1"]


def test_an_unknown_figure_stops_before_anything_is_made(data, tmp_path, made):
    with pytest.raises(ConfigError, match="figure5: no such figure; choose from fronts, figure1"):
        reproduce(("figure1", "figure5"), tmp_path / "out", data)
    assert not made


def test_the_folder_of_traces_must_be_named(monkeypatch, tmp_path):
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    answer = CliRunner().invoke(main, ["figure1", "--out", str(tmp_path / "out")])
    assert answer.exit_code == 1
    assert answer.output == "Error: JOBCAST_DATA is not set: point it at the folder that holds pcs/\n"
    monkeypatch.setenv("JOBCAST_DATA", str(tmp_path))
    answer = CliRunner().invoke(main, ["figure1", "--out", str(tmp_path / "out")])
    assert "holds no folder pcs" in answer.output
