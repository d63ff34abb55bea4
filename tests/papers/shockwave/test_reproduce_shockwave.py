"""The command that makes the figures anew."""

import types

import pytest
from click.testing import CliRunner

from jobcast.domain.errors import ConfigError
from papers.shockwave import __main__ as shockwave
from papers.shockwave.__main__ import ITEMS, main, reproduce, write_results


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "data" / "shockwave").mkdir(parents=True)
    monkeypatch.setenv("JOBCAST_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_every_item_has_a_function_of_its_name():
    for name in ITEMS:
        assert callable(getattr(shockwave.import_module(f"papers.shockwave.{name}"), name))


def test_figures_without_data_are_made_and_put_into_one_page(data, tmp_path):
    out = tmp_path / "out"
    answer = CliRunner().invoke(main, ["figure4", "table1", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    assert sorted(path.name for path in out.iterdir()) == ["figure4", "results.md", "table1"]
    page = (out / "results.md").read_text()
    assert page.index("## Table 1") < page.index("## Figure 4")  # in the paper's order, not as they were named
    assert "](figure4/figure4.svg)" in page


def test_the_folder_of_traces_must_be_named(monkeypatch, tmp_path):
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    answer = CliRunner().invoke(main, ["figure4", "--out", str(tmp_path / "out")])
    assert answer.exit_code == 1
    assert answer.output.startswith("Error: JOBCAST_DATA is not set")
    monkeypatch.setenv("JOBCAST_DATA", str(tmp_path))
    answer = CliRunner().invoke(main, ["figure4", "--out", str(tmp_path / "out")])
    assert "holds no folder shockwave" in answer.output
    assert not (tmp_path / "out").exists()


def test_an_unknown_figure_stops_before_anything_is_made(data, tmp_path):
    with pytest.raises(ConfigError, match="figure3: no such figure; choose from table1"):
        reproduce(("figure4", "figure3"), tmp_path / "out", data)
    assert not (tmp_path / "out").exists()


def test_a_figure_that_fails_leaves_what_was_there(data, tmp_path, monkeypatch):
    def broken(data, out):
        out.mkdir(parents=True)
        (out / "figure4.md").write_text("half")
        raise ArithmeticError("no")

    old = tmp_path / "out" / "figure4"
    old.mkdir(parents=True)
    (old / "figure4.md").write_text("# whole\n")
    monkeypatch.setattr(shockwave, "import_module", lambda name: types.SimpleNamespace(figure4=broken))
    with pytest.raises(ArithmeticError):
        reproduce(("figure4",), tmp_path / "out", data)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figure4"]
    assert (old / "figure4.md").read_text() == "# whole\n"


def test_results_hold_all_folders_that_are_there(tmp_path):
    for name in ("figure9", "figure2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\n![plot]({name}.svg)\n")
    write_results(tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert page.endswith("## figure2\n\n![plot](figure2/figure2.svg)\n\n## figure9\n\n![plot](figure9/figure9.svg)\n")
