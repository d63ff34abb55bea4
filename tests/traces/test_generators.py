"""What holds for every generator: draws are the recorded ones, settings are documented, mistakes are told in one line.

What the papers say of a workload is measured in the tests of its generator. `RECORD=1` writes the draws anew.
"""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.traces.generators import (
    GENERATORS,
    generate,
    generate_courses,
    generate_nodes,
    generate_profiles,
    generate_tasks,
)
from jobcast.traces.generators.settings import known_settings
from tests.shared import refused

RECORDED = Path(__file__).with_name("generated.json")
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "sia": "generators", "campus": "generators", "gavel": "workloads", "automl": "elastic-workloads",
    "philly-elastic": "elastic-workloads", "gavel-elastic": "elastic-workloads", "mlfs": "tasks", "andreas": "energy",
    "armida": "energy",
}  # fmt: skip
RATES = "gpu_type,model,batch_size,gpus,steps_per_second\n" + "".join(
    f"v100,{model},{size},{gpus},{gpus * 900 / size}\n"
    for model, sizes in (("LM", (5, 10, 20, 40, 80)), ("ResNet-18", (16, 32, 64, 128, 256)), ("Recommendation", (512,)))
    for size in sizes
    for gpus in (1, 2, 4, 8)
)
JOBS = "job_id,pool,submit_time,duration,gpus,model\n" + "".join(
    f"{row},x,{row * 977.5},{60 + row % 7 * 500},{2 ** (row % 3)},{'ab'[row % 2]}\n" for row in range(900)
)
SPEEDUPS = "model,gpus,speedup\na,1,1\na,2,1.8\na,4,3\nb,1,1\nb,4,2.5\n"
CASES = {
    "sia": ("sia", 1, {}),
    "sia wide": ("sia", 2, {"variant": "more_wide", "short_share": 0.5, "load_low": 0.7}),
    "campus": ("campus", 1, {"weeks": 1, "jobs": 1500, "pools": 6}),
    "campus tight": ("campus", 2, {"weeks": 2, "jobs": 900, "pools": 4, "bot_share": 0.3, "wait_all_share": 0.2}),
    "gavel": ("gavel", 1, {"throughputs": "rates.csv", "gns": "rule", "jitter": 0.3}),
    "gavel long": ("gavel", 2, {"throughputs": "rates.csv", "gns": "rule", "longest_h": 90, "interarrival_s": 50}),
    "automl": ("automl", 1, {"halving": True}),
    "philly-elastic": ("philly-elastic", 1, {"trace": "jobs.csv", "speedups": "speedups.csv", "load": 0.7}),
    "philly-elastic own": ("philly-elastic", 2, {"trace": "jobs.csv", "gaps": "resampled"}),
    "gavel-elastic": ("gavel-elastic", 1, {"at_width": True, "models": "a", "speedups": "speedups.csv", "gpus": 16}),
    "mlfs": ("mlfs", 1, {"jobs": 60}),
    "mlfs weeks": ("mlfs", 2, {"jobs": 40, "arrivals": "jobs.csv", "options": "mixed", "partitions": "gpus"}),
    "andreas": ("andreas", 1, {}),
    "andreas 2": ("andreas", 2, {"scenario": 2, "ratio": 2.5, "load": 0.6}),
    "armida": ("armida", 1, {}),
}  # fmt: skip


def sums(values):
    """Of a column: a checksum where it is text, else mean and mean by place, which tells orders apart."""
    values = pl.Series(values)
    if values.dtype == pl.String:
        return zlib.crc32("|".join(value or "" for value in values).encode())
    numbers = (values.dt.timestamp("us") if values.dtype.is_temporal() else values).cast(pl.Float64).to_numpy()
    return [float(numbers.mean()), float(numbers @ np.linspace(0.0, 1.0, len(numbers)))] if len(numbers) else []


def drawn(kind, seed, chosen):
    """All that a kind draws, as `sums`."""
    trace, pools = generate(kind, seed, chosen)
    found = {name: sums(trace.jobs[name]) for name in trace.jobs.columns}
    found["pools"] = sums([f"{pool.name} {pool.quota}" for pool in pools])
    if GENERATORS[kind].courses:
        courses = generate_courses(kind, trace, seed, chosen)
        found["courses"] = sums([f"{job_id} {course}" for job_id, course in courses.items()])
    if GENERATORS[kind].tasks:
        tasks, curves = generate_tasks(kind, seed, chosen)
        arrays = {name: getattr(tasks, name) for name in tasks.__slots__ if name not in ("path", "sha256", "row_of")}
        found |= {f"tasks {name}": sums(np.ravel(values)) for name, values in arrays.items()}
        found["curves"] = sums(curves.metric)
    if GENERATORS[kind].profiles:
        found["profiles"] = sums(generate_profiles(kind, chosen)["epoch_s"])
        found["nodes"] = sums([f"{group}" for group in generate_nodes(kind, chosen).groups])
    return found


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder of small tables to draw from; the folder of real data is hidden."""
    for name, text in (("rates.csv", RATES), ("jobs.csv", JOBS), ("speedups.csv", SPEEDUPS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOBCAST_DATA", raising=False)


@pytest.mark.parametrize("case", CASES)
def test_draws_are_the_recorded_ones(case):
    found = drawn(*CASES[case])
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if "RECORD" in os.environ:
        RECORDED.write_text(json.dumps(recorded | {case: found}, indent=1, sort_keys=True) + "\n")
        return
    assert found.keys() == recorded[case].keys()
    for name, wanted in recorded[case].items():
        assert found[name] == pytest.approx(wanted, rel=1e-9), name


@pytest.mark.parametrize("kind", GENERATORS)
def test_equal_arguments_give_equal_jobs_and_other_seeds_others(kind):
    settings = next(chosen for of, _, chosen in CASES.values() if of == kind)
    one, again, other = (generate(kind, seed, settings)[0] for seed in (5, 5, 6))
    assert one.jobs.equals(again.jobs)
    assert one.source == again.source
    assert kind == "armida" or one.source.sha256 != other.source.sha256  # a printed table, in which nothing is drawn


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_documentation_names_every_setting_and_its_default(kind):
    text = (DOCS / f"{PAGES[kind]}.md").read_text(encoding="utf-8")
    for name, (default, meaning) in known_settings(GENERATORS[kind].config_type).items():
        rows = [line.replace(",", "") for line in text.splitlines() if line.startswith(f"| `{name}`")]
        assert rows or f"`{name}`" in text, name
        told = [row for row in rows if meaning.split(";")[0].split(":")[0].replace(",", "") in row]
        if told and isinstance(default, int | float) and not isinstance(default, bool):
            assert any(
                f"| {shown} |" in row for row in told for shown in (f"{default:g}", f"{default:.4g}", default)
            ), name


@pytest.mark.parametrize(
    ("kind", "chosen", "words"),
    [
        ("helios", {}, "there is no generator 'helios'; known generators are sia, campus, gavel"),
        ("sia", {"speed": 1}, "sia: there is no setting 'speed'; known settings are variant, start, days"),
        ("sia", {"variant": "huge"}, "no variant 'huge'; known variants are base, higher_load"),
        ("sia", {"days": "soon"}, "days must be a number, got 'soon'"),
        ("sia", {"days": "nan"}, "days must be a finite number"),
        ("sia", {"queues": "2.5"}, "queues must be a whole number, got '2.5'"),
        ("sia", {"queues": 0}, "queues must lie in [1, 1000], got 0"),
        ("sia", {"start": "tomorrow"}, "start must be a date or time in ISO-8601"),
        ("sia", {"widths": "1,x"}, "widths must be a list between commas, in which each item must be a whole number"),
        ("sia", {"widths": "1,2"}, "2 widths need as many width_shares, got 4"),
        ("sia", {"width_shares": "0.7,0.1,0.1,0.05"}, "width_shares must add up to 1, got 0.95"),
        ("sia", {"queue_gpus": 4}, "widths must fit queue_gpus, got 8 > 4"),
        ("sia", {"load_low": 0.99}, "load_low must not exceed load_high"),
        ("campus", {"start": "2024-01-02"}, "start must be midnight UTC of a Monday"),
        ("campus", {"jobs": 5}, "jobs must be at least one a pool, got 5 for 12 pools"),
        ("campus", {"load_low": 0.9}, "load_low must not exceed load_high"),
        ("gavel", {"arrivals": "later"}, "arrivals must be poisson or batch, got later"),
        ("gavel", {"shortest_h": 6}, "shortest_h must not exceed longest_h, got 6 > 5"),
        ("gavel", {"widths": "1,2"}, "width_shares must hold 2 numbers, got 4"),
        ("gavel", {"mode_shares": "0.5,0.5,0.5"}, "mode_shares must add up to 1, got 1.5"),
        ("gavel", {"size_edges_gpu_h": "1,3,2,4"}, "size_edges_gpu_h must ascend"),
        ("gavel", {"size_shares": "0,0,0,1"}, "no size can be reached by a job of 1 GPUs"),
        ("gavel", {"gpus": 4}, "widths must fit gpus, got 8 > 4"),
        ("gavel", {"widths": "16", "width_shares": "1"}, "has no throughput of ResNet-50, "),
        ("automl", {"halving": "perhaps"}, "halving must be true or false, got 'perhaps'"),
        ("automl", {"trials": 500}, "500 trials of shortest_min 0.5 take longer than service_h 2"),
        ("gavel-elastic", {"widths": "1,2"}, "2 widths need as many width_shares, got 4"),
        ("gavel-elastic", {"width_shares": "1,1,0,0"}, "width_shares must add up to 1, got 2"),
        ("gavel-elastic", {"gpus": 4}, "widths must fit gpus, got 8 > 4"),
        ("gavel-elastic", {"short_low": 4}, "short_low must not exceed short_high, got 4 > 3"),
        ("philly-elastic", {}, "trace is needed; give --set trace=FILE"),
        ("philly-elastic", {"trace": "x", "gaps": "none"}, "gaps must be exponential or resampled, got none"),
        ("philly-elastic", {"trace": "jobs.csv", "pool": "z"}, "has no pool 'z'; it has x"),
        ("mlfs", {"partitions": "few"}, "partitions must be divisor or gpus, got few"),
        ("mlfs", {"epochs": "30"}, "epochs must be two ascending numbers"),
        ("mlfs", {"communication": 0}, "communication must be above 0"),
        ("mlfs", {"longest_h": 0.5, "shortest_min": 60}, "shortest_min must not be longer than longest_h"),
        ("mlfs", {"load": 50, "jobs": 20}, "jobs as long as longest_h do not make the load; raise longest_h or lower"),
        ("mlfs", {"load": 0.001}, "the shortest jobs are more than the load; raise load or communication"),
        ("mlfs", {"arrivals": "jobs.csv", "week": 9}, "has no job in week 9; set another week"),
        ("andreas", {"due": "3,1"}, "due must be two ascending numbers"),
        ("andreas", {"cluster": "nowhere.yaml"}, "cluster: nowhere.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(kind, chosen, words):
    rates = {"throughputs": "rates.csv"} if kind == "gavel" else {}
    told = refused(ConfigError, "", generate, kind, 0, rates | chosen)
    assert words in told
    assert told.startswith(f"{kind}: ") or kind == "helios"


def test_kinds_without_a_part_name_those_that_have_it():
    for made, words in (
        (lambda: generate_courses("sia", generate("sia")[0]), "no courses of batch sizes; kinds that have are gavel"),
        (lambda: generate_tasks("sia"), "its jobs have no tasks; kinds that have are mlfs"),
        (lambda: generate_profiles("sia"), "its jobs have no profiles; kinds that have are andreas, armida"),
        (lambda: generate_nodes("mlfs"), "no cluster of nodes; kinds whose jobs are: andreas, armida"),
        (lambda: generate("sia", -1), "seed must be a whole number of at least 0"),
        (lambda: generate("sia", 3.5), "seed must be a whole number of at least 0"),
    ):
        refused(ConfigError, words, made)
