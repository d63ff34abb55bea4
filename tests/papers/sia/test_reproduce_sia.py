"""The command that makes SIA's figures anew, on a workload of a few jobs."""

import json
from dataclasses import replace
from functools import partial

import pytest
from click.testing import CliRunner

from papers.bench import RUNS
from papers.sia import figure13, potential
from papers.sia.__main__ import main
from papers.sia.bench import MMFS, PoolDraw, Synthetic
from tests.papers.conftest import answered

run = partial(answered, main)


@pytest.fixture
def small(monkeypatch):
    """Hours of two queues, told no folder of traces."""
    monkeypatch.delenv("JOBCAST_DATA", raising=False)
    monkeypatch.setattr(potential, "SMALL", Synthetic("less_queues", 900.0, days=0.2))
    monkeypatch.setattr(potential, "SMALL_DRAWS", 2)


def test_a_figure_from_the_command(small, tmp_path):
    out = tmp_path / "out"
    said = run("figure15b", "--seeds", 1, "--jobs", 1, "--out", out)
    assert [line for line in said.splitlines() if "seed" in line] == [
        "  1/2 less queues, seed 0: 2 runs",
        "  2/2 less queues, seed 1: 2 runs",
    ]
    page = (out / "results.md").read_text()
    assert page.startswith("# SIA: what came out\n\nWritten by `make reproduce-sia`.\n\n## Figure 15b")
    assert "](figure15b/figure15b.svg)" in page
    assert "2 draws of one day" in page
    made = {path.suffix for path in (out / "figure15b").glob("figure15b.*")}
    assert (made, len(list((out / "figure15b").iterdir()))) == ({".md", ".csv", ".svg"}, 3)
    lines = [json.loads(line) for line in (out / RUNS).read_text().splitlines()]
    assert len({line["key"] for line in lines}) == 4
    assert all(line["figures"]["slowed_pct"] == 0.0 for line in lines)  # both know the future, section 4.1
    assert "seed" not in run("figure15b", "--seeds", 1, "--jobs", 1, "--out", out, "--resume")  # all is on file
    assert (out / "results.md").read_text() == page


def test_draws_of_philly_from_the_command(philly, monkeypatch, tmp_path):
    # nothing is trained: the row that asks the registry is told the truth
    class Three(PoolDraw):
        __slots__ = ()
        name = "4"

    monkeypatch.setenv("JOBCAST_DATA", str(philly))
    for rows in ("ROWS", "OTHERS"):
        told = tuple(replace(row, forecasts="oracle") for row in getattr(figure13, rows))
        monkeypatch.setattr(figure13, rows, told)
    monkeypatch.setattr(figure13, "PoolDraw", lambda queues: Three(3))
    out = tmp_path / "out"
    run("figure13", "--draws", 2, "--jobs", 1, "--out", out)
    page = (out / "figure13" / "figure13.md").read_text()
    assert "2 draws of four pools of Philly" in page
    assert "| draws in which SIA slows nobody | most | 100 % |  |" in page
    assert f"| 4 | {MMFS.title} |" in page


def test_too_few_pools_are_one_line(philly, monkeypatch, tmp_path):
    monkeypatch.setenv("JOBCAST_DATA", str(philly))
    monkeypatch.setattr(figure13, "ROWS", (MMFS,))
    answer = CliRunner().invoke(main, ["figure13", "--draws", "1", "--jobs", "1", "--out", str(tmp_path / "out")])
    assert answer.exit_code == 1
    told = answer.output.splitlines()[-1]
    assert told.startswith("Error: ")
    assert told.endswith("4 pools are to be drawn, 3 have at least 100 jobs from 2017-11-06 to 2017-11-20; draw fewer")
