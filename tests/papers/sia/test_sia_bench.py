"""Runs of SIA's figures: kept, gone on with, made once."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.report.formatting import parse_time
from papers.bench import Outcome, RunFile
from papers.sia import bench as benches
from papers.sia.bench import FCFS, MMFS, SIA, SIA_EXACT, SIA_RANDOM, SSF, Bench, PoolDraw, Synthetic, train_predictors

BASE, MORE = Synthetic(), Synthetic("more_queues")


@pytest.fixture
def made(monkeypatch):
    """Calls of `run_draw`, which makes nothing: (workload, seed, titles)."""
    calls = []

    def run_draw(units, data, home):
        calls.append((units[0].workload.name, units[0].seed, [unit.row.title for unit in units]))
        assert len({(unit.workload, unit.seed) for unit in units}) == 1
        return [(unit.key, Outcome({"jobs": 10.0 * unit.seed + len(unit.row.title)})) for unit in units]

    monkeypatch.setattr(benches, "run_draw", run_draw)
    return calls


@pytest.fixture
def trained(monkeypatch):
    calls = []
    monkeypatch.setattr(benches, "train_predictors", lambda data, home: calls.append((data, home)))
    return calls


def bench(folder, resume=True):
    file = RunFile(folder / "runs.jsonl", resume=resume)
    return Bench(data=folder, home=folder / "home", file=file, jobs=1)


def test_nothing_is_made_twice(made, tmp_path):
    one = bench(tmp_path)
    first = one.run([BASE], (FCFS, MMFS), range(1))
    assert one.run([BASE], (FCFS, MMFS), range(1)) == first
    assert len(made) == 1
    one.run([BASE], (SSF, MMFS), range(2))
    assert made[1:] == [("base", 0, ["ssf"]), ("base", 1, ["ssf", "mmfs"])]


def test_a_bench_goes_on_from_its_file(made, tmp_path):
    first = bench(tmp_path).run([BASE], (FCFS, MMFS), range(2))
    file = tmp_path / "runs.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == len({json.loads(line)["key"] for line in lines}) == 4
    file.write_text("".join(lines[:3]) + lines[3][:40])  # the last one was cut
    made.clear()
    assert bench(tmp_path).run([BASE], (FCFS, MMFS), range(2)) == first
    assert made == [("base", 1, ["mmfs"])]
    made.clear()
    assert bench(tmp_path, resume=False).run([BASE], (FCFS, MMFS), range(2)) == first
    assert len(made) == 2


def test_predictors_are_trained_where_a_missing_run_asks_them(made, trained, tmp_path):
    one = bench(tmp_path)
    one.run([PoolDraw(2)], (SIA_EXACT, MMFS), range(1))
    assert trained == []
    one.run([PoolDraw(2)], (SIA,), range(1))
    assert trained == [(tmp_path, tmp_path / "home")]
    one.run([PoolDraw(2)], (SIA,), range(1))
    assert len(trained) == 1
    one.run([PoolDraw(2)], (SIA_RANDOM,), range(1))
    assert len(trained) == 2


def test_what_the_registry_lacks_is_trained_on_the_weeks_before(monkeypatch, tmp_path):
    asked, known = [], [SimpleNamespace(name=PREDICTORS[0])]
    # The module that trains first: one that is imported later would keep what stands in for the registry.
    monkeypatch.setattr(
        "jobcast.pipelines.lifecycle.training.train_and_register",
        lambda name, *words, **more: asked.append((name, words, more)),
    )
    monkeypatch.setattr("jobcast.models.registry.open_registry", lambda home: SimpleNamespace(list=lambda: known))
    monkeypatch.setattr("papers.sia.bench.read_trace", lambda path, format: (path, format))
    home = tmp_path / "home"
    train_predictors(Path("traces"), home)
    versions = [(name, words[0]) for name, words, _ in asked]
    assert versions == [(PREDICTORS[0], "paper"), *((name, how) for name in PREDICTORS[1:] for how in (None, "paper"))]
    _, (algorithm, trace, begin_s, end_s, _), more = asked[1]
    assert (algorithm, trace) == (None, (Path("traces", "philly", "philly_jobs.csv"), "philly"))
    assert (begin_s, end_s) == (parse_time("2017-10-02"), parse_time("2017-11-06"))
    assert more == {"home": home}
    assert home.is_dir()
    asked.clear()
    known[:] = [SimpleNamespace(name=name) for name in PREDICTORS for _ in range(2)]
    train_predictors(Path("traces"), home)
    assert asked == []
