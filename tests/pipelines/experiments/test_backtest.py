import dataclasses
import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster, PoolsTable
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.backtest import PARTS, Cell, baselines_of, going, matrix, run_matrix, windows_of
from jobcast.pipelines.experiments.backtest_results import (
    Contender,
    gain_pairs,
    gains_between,
    read_results,
    read_tables,
    remarks,
    results_of,
    speedup_table,
    write_results,
)
from jobcast.pipelines.experiments.executors import ENGINES
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.report.gains import paired_gains
from jobcast.schedulers.policies import POOLS
from jobcast.traces.readers import read_trace

ORACLE, RANDOM, REGISTRY = map(parse_forecasts, ("oracle", "random", "registry"))
PAIRS = [("fcfs", ORACLE, "fcfs"), ("fcfs", RANDOM, "fcfs")]
PAIRS += [("ssf", ORACLE, "ssf oracle"), ("ssf", RANDOM, "ssf random")]
FCFS = {"runtime": Cell("fcfs", REGISTRY, "fcfs")}
FIGURES = (
    "jobs", "makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "utilization", "events",
    "speedup_mean", "speedup_gmean", "speedup_p5", "speedup_p95", "slowed_pct", "slowdown_total_min",
    "slowdown_max_min",
)  # fmt: skip


@pytest.fixture(scope="module")
def scenarios(run):
    """Two windows of the finished run's trace."""
    trace, pools = read_trace(run.trace), [Pool("production-1", 6), Pool("research-1", 4), Pool("wide-1", 30)]
    place = Cluster(quotas=PoolsTable.of(pools))
    return [
        Experiment(trace=trace, cluster=place, from_s=begin, until_s=end)
        for begin, end in windows_of(1704412800, 1704585600, 2)
    ]


def test_a_matrix_has_every_simulation_once_and_seeds_where_they_count():
    cells = matrix(PAIRS, windows=2, seeds=3)
    assert [(cell.label, cell.window, cell.seed) for cell in cells] == [
        *[(label, window, 0) for label in ("fcfs", "ssf oracle") for window in (0, 1)],
        *[("ssf random", window, seed) for window in (0, 1) for seed in (0, 1, 2)],
    ]
    assert [cell.seed for cell in matrix(PAIRS[-1:], 1, 2, base=7)] == [7, 8]


def rows(results):
    return [result.row() for result in results]


@pytest.fixture(scope="module")
def alone(scenarios, tmp_path_factory):
    """Every pair in both windows, with two seeds, in this process."""
    return run_matrix(scenarios, matrix(PAIRS, windows=2, seeds=2), home=tmp_path_factory.mktemp("home"), jobs=1)


def test_workers_change_nothing(scenarios, alone, tmp_path):
    cells = matrix(PAIRS, windows=2, seeds=2)
    assert rows(run_matrix(scenarios, cells, home=tmp_path, jobs=2)) == rows(alone)
    assert [result.cell for result in alone] == cells
    randoms = [result.row()["figures"]["mean_jct_s"] for result in alone if result.cell.label == "ssf random"]
    assert randoms[0] != randoms[1]
    assert randoms[0] != randoms[2]


def test_the_baseline_is_measured_against_itself_once_a_window(scenarios, tmp_path):
    calls = []
    cells = matrix(PAIRS[:1], windows=2, seeds=1)
    results = run_matrix(scenarios, cells, home=tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (2 * PARTS, 2 * PARTS)
    assert [result.figures["speedup_gmean"] for result in results] == [1.0, 1.0]


def test_matrices_of_the_same_windows_share_what_they_are_compared_with(tmp_path, scenarios):
    cells, shared, totals = matrix(PAIRS[2:3], windows=1, seeds=1), {}, []

    def ask(scenarios):
        progress = lambda _, total: totals.append(total // PARTS)  # noqa: E731
        run_matrix(scenarios, cells, home=tmp_path, shared=shared, progress=progress)

    ask(scenarios[:1])
    first = dict(shared)
    ask(scenarios[:1])
    assert list(dict.fromkeys(totals)) == [2, 1]
    assert shared == first
    # Other facts, another run.
    ask([dataclasses.replace(scenarios[0], given={"restart_s": "60"})])
    assert totals[-1] == 2


def test_a_baseline_that_asks_goes_by_the_first_source_named_and_nobody_takes_its_place(scenarios, tmp_path):
    cells = matrix(PAIRS[2:], windows=1, seeds=1)
    bases = baselines_of(cells, "ssf", scenarios[0], [ORACLE, RANDOM])
    assert list(bases) == ["runtime"]
    assert bases["runtime"].label == "ssf oracle"
    oracle, random = run_matrix(scenarios[:1], cells, home=tmp_path, bases=bases)
    assert oracle.figures["speedup_gmean"] == 1.0
    assert random.figures["speedup_gmean"] != 1.0
    alone = run_matrix(scenarios[:1], cells, home=tmp_path)
    assert random.figures["mean_jct_s"] == alone[1].figures["mean_jct_s"] != oracle.figures["mean_jct_s"]


def test_unknown_engines_are_refused(scenarios, tmp_path):
    cells = matrix(PAIRS[:1], windows=2, seeds=1)
    with pytest.raises(ConfigError, match="--engine cloud: unknown; choose from local, ray"):
        run_matrix(scenarios, cells, home=tmp_path, engine="cloud")
    assert ENGINES == ("local", "ray")


def in_another_law(result):
    """The same result, as if jobs had progressed by another law."""
    log = dataclasses.replace(result.log, law="speedup")
    return dataclasses.replace(of_log(result, log), base_jct_s=np.full(len(log), np.nan))


def of_log(result, log):
    """The same result with another log."""
    return dataclasses.replace(result, run=dataclasses.replace(result.run, log=log))


def test_a_gain_takes_every_window_and_seed(alone):
    gains = {(gain["label"], gain["against"]): gain for gain in gains_between(alone, ["fcfs"], draws=100)}
    assert list(gains) == [("ssf oracle", "fcfs"), ("ssf random", "fcfs"), ("ssf oracle", "ssf random")]
    told = gains["ssf random", "fcfs"]
    by_label = {label: [one for one in alone if one.cell.label == label] for label in ("fcfs", "ssf random")}
    drawn = by_label["ssf random"]  # seeds 0 and 1 of window 0, then of window 1
    fcfs = [one for one in by_label["fcfs"] for _ in range(2)]
    jct, base = (np.concatenate([one.log.jct_s for one in some]) for some in (drawn, fcfs))
    submit_s = np.concatenate([one.log.submit_s for one in fcfs])
    expected = paired_gains(jct, base, submit_s, seed=0, draws=100, jct_baseline=base)
    assert (told["ratio"], told["low"], told["high"]) == pytest.approx(
        tuple(expected[f"speedup{end}"] for end in ("", "_low", "_high"))
    )
    assert (told["jobs"], told["left_out"], told["metric"]) == (len(jct), 0, "speedup")
    assert told["slowed_change_pct"] == pytest.approx(expected["slowed_change_pct"])


def test_jobs_that_never_ran_are_left_out_and_counted(scenarios, tmp_path):
    base, other = run_matrix(scenarios[:1], matrix(PAIRS[1:3], 1, 1), home=tmp_path)
    end_s = other.log.end_s.copy()
    end_s[:3] = np.nan
    log = dataclasses.replace(other.log, end_s=end_s)
    some = of_log(other, log)
    (told,) = gains_between([base, some], ["fcfs"], draws=10)
    assert (told["left_out"], told["jobs"]) == (3, len(log) - 3)
    ratio = (base.log.jct_s / other.log.jct_s)[3:]
    assert told["ratio"] == pytest.approx(np.exp(np.log(ratio).mean()))
    assert (told["low"], told["high"]) == (None, None)
    result = results_of([base, some], bases=FCFS, draws=10)
    assert remarks(result) == [
        "no intervals: all jobs came on one day (UTC), and days are what intervals are drawn from",
        "left out of gains: up to 3 jobs that never ran under one of the two",
    ]
    none = of_log(other, dataclasses.replace(log, end_s=np.full(len(log), np.nan)))
    (told,) = gains_between([base, none], ["fcfs"], draws=10)
    assert (told["ratio"], told["jobs"], told["left_out"]) == (None, 0, len(log))
    assert none.row()["saved_h_week"] is None


def test_gains_stay_within_a_law_and_the_rest_is_told(scenarios, tmp_path):
    base, oracle, random = run_matrix(scenarios[:1], matrix(PAIRS, 1, 1), home=tmp_path)
    told = results_of([base, in_another_law(oracle), random], bases=FCFS, draws=10)
    assert [(gain["label"], gain["against"]) for gain in told["gains"]] == [("ssf random", "fcfs")]
    assert told["rows"][1]["saved_h_week"] is None
    assert remarks(told)[0] == "not compared with fcfs, under which jobs progress by runtime: ssf oracle (speedup)"


SOURCES = ("oracle", "registry", "random", "conservative")


@given(st.permutations(SOURCES), st.permutations(("fcfs", "mmfs", "sia", "sia_risk")))
def test_the_order_of_what_is_asked_for_changes_no_gain(sources, policies):
    rows = [
        Contender(*(("sia " + kind, "sia", kind) if policy == "sia" else (policy, policy, "")), "runtime")
        for policy in policies
        for kind in (sources if policy == "sia" else sources[:1])
    ]
    pairs = gain_pairs(rows, ["fcfs", "mmfs"])
    labels = [row.label for row in rows]
    with_both = {frozenset((one, other)) for other in ("fcfs", "mmfs") for one in labels if one != other}
    within = {frozenset(pair) for pair in combinations([label for label in labels if label.startswith("sia ")], 2)}
    assert {frozenset(pair) for pair in pairs} == with_both | within
    assert len(pairs) == len(with_both | within)
    assert all(one == "sia registry" for one, other in pairs if "sia registry" in (one, other))


def test_results_are_files_that_are_the_same_each_time(scenarios, alone, tmp_path):
    for folder, results in (("a", alone), ("b", run_matrix(scenarios, matrix(PAIRS, 2, 2), home=tmp_path))):
        write_results(tmp_path / folder, results_of(results, bases=FCFS, draws=100), results)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["jobs.parquet", "results.json", "utilization.parquet"]
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    told, (jobs, utilization) = read_results(tmp_path / "a"), read_tables(tmp_path / "a")
    assert told["rows"] == json.loads(json.dumps(rows(alone)))
    assert len(jobs) == sum(len(result.log) for result in alone)
    assert set(utilization["label"]) == {"fcfs", "ssf oracle", "ssf random"}
    assert utilization["share"].is_between(0, 1 + 1e-9).all()
    # Jobs of the folder are those of the simulations.
    jobs, log = jobs.filter(window=1, label="fcfs"), alone[1].log
    assert jobs["submit_s"].to_list() == log.submit_s.tolist()
    assert jobs["end_s"].to_list() == log.end_s.tolist()
    listed = scenarios[1].scenario(POOLS).workload.jobs
    for column in ("job_id", "pool", "user", "tag"):
        assert jobs[column].to_list() == [getattr(job, column) or None for job in listed]
    assert jobs["user"].null_count() < len(jobs)


def test_the_table_of_speedups_rises_and_has_a_column_a_label(alone):
    head, *lines = (line.split(",") for line in speedup_table(alone).splitlines())
    assert head == ["share", "fcfs", "ssf oracle", "ssf random"]
    values = np.array(lines, dtype=float)
    assert (np.diff(values, axis=0) >= 0).all()
    assert values[:, 1].tolist() == [1.0] * len(values)


@pytest.mark.usefixtures("store")
def test_the_command_writes_its_folder_and_its_report(shell, run, tmp_path):
    words = (
        "backtest", "--trace", run.trace, "--pools", run.pools, "--from", run.trained_until, "--policies", "fcfs,sia",
        "--forecasts", "oracle,registry,random", "--windows", 2, "--seeds", 2, "--jobs", 2,
    )  # fmt: skip
    answer = shell.works(*words, "--out", "results", "--json", "figures.json")
    out = tmp_path / "results"
    told = {path.stem for path in out.glob("*.json")}
    assert told == {"command", "figures", "inputs", "results"}
    others = {path.name for path in out.iterdir() if path.suffix != ".json"}
    assert others == {"jobs.parquet", "report.html", "utilization.parquet"}
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {"command": figures.pop("command")} == json.loads((out / "command.json").read_text())
    assert figures == json.loads((out / "figures.json").read_text())
    assert set(figures) == {
        "baseline", "baselines", "rows", "gains", "skipped", "assumptions", "configuration", "overlap_allowed",
        "simulated", "inputs", "seeds", "jobcast",
    }  # fmt: skip
    assert len(figures["rows"]) == 3 * 2 + 2 * 2
    for row in figures["rows"]:
        assert set(row["figures"]) >= {*FIGURES, "wall_s", "cpu_s"}
        assert isinstance(row["figures"]["speedup_gmean"], float)
        told = (row["law"], row["scope"], row["preempts"], row["future"])
        assert told == ("runtime", "pool", False, row["label"] == "sia oracle")
        asked = {"will-jobs-arrive": 1, "new-load": 1, "job-duration": 1} if row["label"] == "sia registry" else {}
        assert row["versions"] == asked
    assert figures["inputs"][0]["window"]["from"] == run.trained_until
    assert "wall_s" not in (out / "results.json").read_text()
    assert "sia" in answer.out
    assert "report: results/report.html" in answer.err
    page = (out / "report.html").read_bytes()
    shell.works("report", "results")
    assert (out / "report.html").read_bytes() == page


def test_rows_are_those_of_simulate(shell, run):
    window = ("--trace", run.trace, "--pools", run.pools, "--from", "2024-01-05", "--until", "2024-01-06")
    rows = shell.json("backtest", *window, "--policies", "ssf", "--forecasts", "noisy:0.3", "--jobs", 1)["rows"]
    assert [row["label"] for row in rows] == ["fcfs", "ssf noisy:0.3"]
    for row, asked in zip(rows, (("fcfs",), ("ssf", "--forecasts", "noisy:0.3")), strict=True):
        figures = shell.json("simulate", *window, "--policy", *asked)
        assert {key: row["figures"][key] for key in FIGURES} == {key: figures[key] for key in FIGURES}


def test_parts_of_runs_that_are_not_over_count():
    calls = []
    with going(2, lambda *counts: calls.append(counts)) as told:
        step = told.of(1)
        step(1, 4)
        assert told.far() == (25, 200)
        step(4, 4)
        told.of(0)(1, 3)
        assert told.far() == (133, 200)
    assert calls[-1] == (133, 200)
    assert not told.path.exists()


def test_nobody_asks():
    with going(2, None) as told:
        assert told is None
