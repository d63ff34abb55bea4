"""The commands that make papers' figures anew: what holds for each of them."""

import types
from importlib import import_module

import pytest
from click.testing import CliRunner

from jobcast.domain.errors import ConfigError
from papers import driver
from tests.papers.conftest import answered
from tests.shared import refused

PAPERS = ("andreas", "mlfs", "pcs", "shockwave", "sia")
COMMANDS = {name: import_module(f"papers.{name}.__main__") for name in PAPERS}


@pytest.mark.parametrize("name", PAPERS)
def test_every_item_has_a_function_of_its_name(name):
    paper = COMMANDS[name].PAPER
    assert all(callable(paper.item(item)) for item in paper.items)
    assert set(paper.needing or ()) <= set(paper.items)


@pytest.mark.parametrize("name", PAPERS)
def test_the_folder_of_traces_must_be_named(name, monkeypatch, tmp_path):
    command = COMMANDS[name]
    for item in command.PAPER.needing or command.PAPER.items[:1]:
        words = [item, "--out", str(tmp_path / "out")]
        monkeypatch.delenv("JOBCAST_DATA", raising=False)
        answer = CliRunner().invoke(command.main, words)
        told = f"JOBCAST_DATA is not set: point it at the folder that holds {command.PAPER.holds}"
        assert (answer.exit_code, answer.output) == (1, f"Error: {told}\n")
        monkeypatch.setenv("JOBCAST_DATA", str(tmp_path))
        assert f"holds no folder {command.PAPER.folder}" in CliRunner().invoke(command.main, words).output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", PAPERS)
def test_an_unknown_item_stops_before_anything_is_made(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path / "home"))
    paper = COMMANDS[name].PAPER
    items = (paper.items[0], "figure99")
    line = refused(ConfigError, "", driver.reproduce, paper, items, tmp_path / "out", tmp_path)
    assert line == f"figure99: no such figure; choose from {', '.join(paper.items)}"
    assert not (tmp_path / "out").exists()


OPTIONS = {
    "sia": (("--draws", 7), lambda bench: (bench.draws, bench.home.name), (7, ".home")),
    "mlfs": (("--policies", "slaq, mlf_h"), lambda bench: [row.title for row in bench.rows], ["MLF-H", "SLAQ"]),
    "andreas": (("--nodes", "20,10"), lambda bench: bench.nodes, (10, 20)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_reach_the_figures(name, data, monkeypatch, tmp_path):
    seen, command = [], COMMANDS[name]
    item = command.PAPER.items[0]

    def figure(bench, page):
        seen.append(bench)
        page.out.mkdir(parents=True)

    monkeypatch.setattr(driver, "import_module", lambda path: types.SimpleNamespace(**{item: figure}))
    own, found, wanted = OPTIONS[name]
    answered(command.main, item, "--seeds", 3, "--jobs", 4, "--out", tmp_path / "out", *own)
    [bench] = seen
    assert (bench.jobs, found(bench)) == (4, wanted)
    assert bench.seeds in (3, (0, 1, 2))
    assert bench.file.path == tmp_path / "out" / ".runs.jsonl"


def test_results_hold_all_folders_that_are_there(tmp_path):
    for name in ("figure9", "figure2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\n![plot]({name}.svg)\n")
    driver.write_page_of_all(COMMANDS["shockwave"].PAPER, tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert page.endswith("## figure2\n\n![plot](figure2/figure2.svg)\n\n## figure9\n\n![plot](figure9/figure9.svg)\n")
