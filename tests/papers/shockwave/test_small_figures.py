"""Figures that compare policies, on a few jobs: pages, tables and claims are whole."""

import csv

import pytest

from papers.shockwave import figure7, figure10, figure11, figure13, figure16
from papers.shockwave.__main__ import PAPER
from papers.shockwave.workloads import drawn, philly


def few(data, seed=0, static=0.5, **other):
    return drawn(data, seed, jobs=8, gpus=8, longest_h=0.5, mode_shares=f"{static:g},0,{1 - static:g}")


def rows_of(out, name):
    return list(csv.DictReader((out / f"{name}.csv").open()))


@pytest.mark.slow
def test_figure7(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(figure7, "published", lambda traces, *args: few(traces))
    figure7.figure7(traces, PAPER.page("figure7", tmp_path))
    rows = rows_of(tmp_path, "figure7")
    assert len({(row["case"], row["policy"]) for row in rows}) == 10 + 3 + 5 + 7
    assert sum(row["case"] == "restatement" and row["policy"] == "shockwave" for row in rows) == 20
    page = (tmp_path / "figure7.md").read_text()
    assert page.count("| shockwave |") == 5  # a table a case, and the authors' own results
    assert {path.name for path in tmp_path.iterdir()} >= {"figure7.svg", "figure7-ftf.svg"}


@pytest.mark.parametrize(
    "figure", [pytest.param(figure10, marks=pytest.mark.slow), figure13, pytest.param(figure16, marks=pytest.mark.slow)]
)
def test_figures_of_several_draws(traces, tmp_path, monkeypatch, figure):
    name = figure.__name__.rpartition(".")[2]
    monkeypatch.setattr(figure, "SEEDS", (0, 1))
    monkeypatch.setattr(figure, "drawn" if figure is figure16 else "mix", few)
    getattr(figure, name)(traces, PAPER.page(name, tmp_path))
    rows = rows_of(tmp_path, name)
    runs = {figure10: 4 * 2 * 6, figure13: 2 * (1 + 5 * 2), figure16: 3 * 2 * 6}[figure]
    assert len(rows) == runs
    assert all(float(row["makespan_s"]) > 0 for row in rows)
    assert "## Against the paper" in (tmp_path / f"{name}.md").read_text()


def test_pollux_and_shockwave_run_the_same_jobs(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(figure11, "JOBS", 6)
    made = figure11.both(traces, "contention 1", 0)
    assert [one.name for one in made] == ["shockwave", "pollux", "shockwave, greedy"]
    for one in made[1:]:
        assert one.log.submit_s.tolist() == made[0].log.submit_s.tolist()
        assert one.log.duration_s.tolist() == made[0].log.duration_s.tolist()
    assert 0 < made[1].figures["utilization"] <= 1


def test_figure17(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(figure16, "philly", lambda traces, jobs, gpus: philly(traces, 8, gpus))
    figure16.figure17(traces, PAPER.page("figure17", tmp_path))
    assert len(rows_of(tmp_path, "figure17")) == 8 + 2 * 20
