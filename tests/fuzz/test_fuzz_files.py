"""Every file that a command reads beside its trace, damaged: clusters, pools, parameters, configurations, tables,
switches, fronts, profiles, tasks, curves.

To see one failing input again: `input_of(folder, KIND, SEED)` gives the damaged bytes and the words of the command;
the message of a failing test holds KIND and SEED, and the folder of originals is made by `originals(folder)`.
"""

import io
import json
import random
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from tests.fuzz.command_line import FIGURES, JOBS, check_inputs, typed
from tests.fuzz.mutations import mutate, mutate_text
from tests.scenarios import write_energy_scene, write_tasks_scene

FEW, MANY = 50, 1_000
"""Inputs of each row of `ROWS` in all, fast and slow."""
ENERGY = {"nodes": 2, "jobs": 3, "epochs": "2,4"}
TASKS = {"jobs": 3, "gpus": 4, "widths": "1,2", "epochs": "2,4", "longest_h": 6, "load": 0.01}
TEXTS = {
    "jobs.csv": "job_id,pool,submit_time,duration,gpus,user\n"
    "1,a,0,60,1,u\n2,a,0,600,2,u\n3,b,30,60,1,v\n4,b,60,3600,4,v\n5,a,90,60,1,u\n",
    "elastic.csv": "job_id,pool,submit_time,duration,gpus,min_gpus,model\n"
    "1,a,0,60,1,0,x\n2,a,5,600,2,1,x\n3,a,30,60,4,0,y\n",
    "training.csv": "job_id,pool,submit_time,duration,gpus,model,batch_size,epochs,adaptation\n"
    "01,a,0,1000,1,LM,10,6,gns\n02,a,10,1000,1,LM,10,2,static\n",
    "pools.csv": "pool,gpus,from,cells\na,4,,1x4\nb,8,,2x4\nb,12,1970-01-02,3x4\n",
    "cluster.yaml": "# nodes of two kinds\nnodes:\n- {count: 2, gpus: 4, gpu_type: v100, cpus: 32, memory_gb: 244}\n"
    "- count: 1\n  gpus: 4\n  gpu_type: t4\npools: {a: 4, b: {gpus: 8, cells: 2x4}}\n",
    "params.yaml": "prepare: {train_share: 0.6, load: 0.8, settings: {weeks: 1}}\nfeaturize:\n  horizons_min: [5, 60]\n"
    "train: {new_load: {algorithms: [quantile]}}\nbacktest:\n  cells:\n"
    "  - {policy: sia, forecasts: [oracle], settings: {slack: '0'}}\n",
    "wfq.json": json.dumps({"num_classes": 2, "class_thresholds": [100.0, "inf"],
        "class_rates": [{"frac": "19/20"}, 0.05], "clip_demand_factor": 0.5, "delta": 0.1, "_comment": "x"}),
    "speedups.csv": "model,gpus,speedup\nx,1,1\nx,2,1.8\nx,4,3.1\ny,1,1\ny,2,1.5\ny,4,2\n",
    "throughputs.csv": "gpu_type,model,batch_size,gpus,steps_per_second\nv100,LM,10,1,99.5\nv100,LM,20,1,74.6\n",
    "regimes.csv": "job_id,epoch,batch_size\n1,0,10\n1,2,20\n",
    "planned.csv": "job_id,epoch,batch_size\n1,0,10\n1,3,20\n",
    "datasets.csv": "model,samples\nLM,59675\n",
    "switches.csv": "pool,horizon_min,from,sharing\na,5,,off\na,60,1970-01-01T00:01:00Z,on\nb,720,,off\n",
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file: the original that is damaged, and the commands that read it (the file's place is `{}`)."""

    original: str
    commands: tuple[str, ...]


ELASTIC = "simulate --trace elastic.csv --baseline none --predict"
ROUNDS = "simulate --trace training.csv --forecasts oracle --gpus 1 --baseline none --set round_s=600"
TASKED = "simulate --trace tasks.jobs.parquet --forecasts oracle --gpus 4 --baseline none --set round_s=120"
TIMED = (
    "simulate --trace energy.jobs.parquet --forecasts oracle --cluster energy.yaml --baseline none --set period_s=3600"
)
PROFILED = "simulate --trace energy.jobs.parquet --forecasts oracle --set profiles=profiles.csv --baseline none"
SEARCH = (
    "--quiet search pcs --trace elastic.csv --gpus 4 --evaluations 4 --samples 1 --test-samples 1 --sample-jobs 5 "
    "--jobs 1 --algorithm optuna-tpe --out {}"
)
KINDS = {
    "cluster": Kind(
        "cluster.yaml",
        (
            "simulate --trace jobs.csv --policy fcfs --cluster {}",
            "simulate --trace jobs.csv --policy sia --forecasts oracle --set locality=true --cluster {}",
            f"{ELASTIC} --policy srsf --cluster {{}}",
            "simulate --trace jobs.csv --policy srpt --forecasts oracle --baseline none --cluster {}",
            "simulate --trace tasks.jobs.parquet --policy tiresias --baseline none --set tasks=tasks.parquet "
            "--set curves=curves.parquet --cluster {}",
            f"{PROFILED} --policy ps --cluster {{}}",
        ),
    ),
    "energy cluster": Kind(
        "energy.yaml",
        (
            f"{PROFILED} --policy edf --cluster {{}}",
            f"{ELASTIC} --policy srsf --cluster {{}}",
            "simulate --trace jobs.csv --policy fcfs --drop-too-wide --cluster {}",
        ),
    ),
    "pools": Kind(
        "pools.csv",
        (
            "simulate --trace jobs.csv --policy fcfs --pools {}",
            "simulate --trace jobs.csv --policy sia --forecasts oracle --set locality=true --pools {}",
            "trace describe jobs.csv --pools {}",
            f"{ELASTIC} --policy fifo --pools {{}}",
        ),
    ),
    "params": Kind("params.yaml", ("run --trace missing.csv --params {}",)),
    "wfq": Kind("wfq.json", (f"{ELASTIC} --gpus 4 --policy pcs --set config={{}}",)),
    "speedups": Kind("speedups.csv", (f"{ELASTIC} --gpus 4 --policy afs --set speedups={{}}",)),
    "throughputs": Kind("throughputs.csv", (f"{ROUNDS} --policy srpt --set throughputs={{}}",)),
    "regimes": Kind("regimes.csv", (f"{ROUNDS} --policy las --set throughputs=throughputs.csv --set regimes={{}}",)),
    "planned": Kind(
        "planned.csv",
        (f"{ROUNDS} --policy las --set throughputs=throughputs.csv --set regimes=regimes.csv --set planned={{}}",),
    ),
    "datasets": Kind(
        "datasets.csv", (f"{ROUNDS} --policy srpt --set throughputs=throughputs.csv --set datasets={{}}",)
    ),
    "switches": Kind(
        "switches.csv",
        ("simulate --trace jobs.csv --pools pools.csv --policy sia --forecasts oracle --set switches={}",),
    ),
    "front": Kind("front.parquet", ("search apply {} --pick 0", "search check {} --trace elastic.csv --no-start")),
    "profiles csv": Kind("profiles.csv", (f"{TIMED} --policy fifo --set profiles={{}}", "profiles show {}")),
    "profiles parquet": Kind("profiles.parquet", (f"{TIMED} --policy fifo --set profiles={{}}", "profiles show {}")),
    "profiles sqlite": Kind("profiles.sqlite", (f"{TIMED} --policy fifo --set profiles={{}}", "profiles show {}")),
    "tasks": Kind("tasks.parquet", (f"{TASKED} --policy mlf_h --set curves=curves.parquet --set tasks={{}}",)),
    "tasks csv": Kind("tasks.csv", (f"{TASKED} --policy mlf_h --set curves=curves.parquet --set tasks={{}}",)),
    "curves": Kind("curves.parquet", (f"{TASKED} --policy mlf_c --set tasks=tasks.parquet --set curves={{}}",)),
    "curves csv": Kind("curves.csv", (f"{TASKED} --policy mlf_c --set tasks=tasks.parquet --set curves={{}}",)),
}
ROWS = {
    "configurations": ("cluster", "energy cluster", "pools", "params", "wfq", "speedups", "throughputs", "datasets"),
    "regimes": ("regimes",),
    "planned": ("planned",),
    "switches": ("switches",),
    "front": ("front",),
    "profiles": ("profiles csv", "profiles parquet", "profiles sqlite"),
    "tasks": ("tasks", "tasks csv"),
    "curves": ("curves", "curves csv"),
}
"""What takes turns."""


def seeds_of(kind: str, few: bool) -> range:
    """The seeds of a kind: its part of its row's inputs."""
    kinds = next(len(kinds) for kinds in ROWS.values() if kind in kinds)
    first, last = -(-FEW // kinds), -(-MANY // kinds)
    return range(first) if few else range(first, last)


def originals(folder: Path) -> Path:
    """Sound files of every kind."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    write_energy_scene(folder, ENERGY, ("csv", "parquet", "sqlite"))
    write_tasks_scene(folder, TASKS, ("csv", "parquet"))
    answer = typed(words_of(SEARCH, folder, "front.parquet"))
    assert answer.code == 0, answer
    return folder


def input_of(folder: Path, kind: str, seed: int) -> tuple[bytes, str, list[str]]:
    """The damaged bytes, the name of the file that they go to, and the words of a command that reads it."""
    rng, one = random.Random(f"{kind} {seed}"), KINDS[kind]
    original = folder / one.original
    data = original.read_bytes()
    chance = rng.random()
    if chance < 0.03 and original.suffix in (".yaml", ".json"):
        data = bombed(rng)
    elif chance < 0.5 and original.suffix == ".sqlite":
        data = damaged_rows(original, rng)
    elif chance < 0.5 and original.suffix == ".parquet":
        data = damaged_cells(original, rng)
    else:
        data = mutate(data, rng)
    name = f"spoilt{original.suffix}"
    words = words_of(rng.choice(one.commands), folder, name)
    outputs = ["--json", f"{folder}/out/{FIGURES}"] if words[0] in ("simulate", "profiles") else []
    if words[0] == "simulate" and rng.random() < 0.3:
        outputs += ["--out", f"{folder}/out/{JOBS}"]
    if words[:2] == ["search", "apply"]:
        outputs = ["--out", f"{folder}/out/config.json"]
    return data, name, ["--quiet", *words, *outputs]


def words_of(command: str, folder: Path, name: str) -> list[str]:
    """The words of a command with the places of files in them; `{}` is the file of this name."""
    found = []
    for word in command.split():
        key, equals, value = word.rpartition("=")
        value = name if value == "{}" else value
        found.append(f"{key}{equals}{folder}/{value}" if (folder / value).is_file() or value == name else word)
    return found


def damaged_rows(path: Path, rng: random.Random) -> bytes:
    """A database whose pages are sound and whose rows are not."""
    copy = path.with_name("copy.sqlite")
    copy.write_bytes(path.read_bytes())
    connection = sqlite3.connect(copy)
    [(table,)] = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1").fetchall()
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    value = rng.choice((None, "", "nan", -1, 0, 1e308, 10**18, float("inf"), b"\xff", "a" * 300, "\x1b[31m"))
    try:
        connection.execute(f'UPDATE OR IGNORE "{table}" SET "{rng.choice(columns)}" = ? WHERE rowid % 3 = 0', [value])
    except sqlite3.Error:
        connection.execute(f'DROP TABLE "{table}"')  # a constraint that keeps such values out: without the table, then
    connection.commit()
    connection.close()
    return copy.read_bytes()


def damaged_cells(path: Path, rng: random.Random) -> bytes:
    """A table that another tool wrote again, with other values in it, or other texts beside it: Parquet, unsealed."""
    table, beside = pl.read_parquet(path), pl.read_parquet_metadata(path)
    name = rng.choice(table.columns)
    kind = rng.choice(("drop", "text", "value", "value", "beside", "beside", "none"))
    if kind == "drop":
        table = table.drop(name)
    elif kind == "text":
        table = table.with_columns(pl.col(name).cast(pl.String, strict=False))
    elif kind == "value":
        value = rng.choice((None, -1, 0, 10**18, 1e308, float("nan"), float("inf"), "x", "[" * 3_000, '{"a": 1}', True))
        table = table.with_columns(pl.Series(name, [value] + [None] * (len(table) - 1), strict=False))
    elif kind == "beside":
        beside = {key: mutate_text(text, rng) for key, text in beside.items()}
    else:
        table = table.head(0)
    file = io.BytesIO()
    table.write_parquet(file, metadata={key: text for key, text in beside.items() if key != "ARROW:schema"})
    return file.getvalue()


def bombed(rng: random.Random) -> bytes:
    """What takes a parser by surprise: references that multiply, nesting, tags that would run code."""
    laughs = "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    return rng.choice((
        f"a: &a [1, 2]\n{laughs}nodes: *i\n".encode(),
        b"nodes: &n [*n]\n", b"nodes:\n- <<: &x {count: 1, gpus: 2, <<: *x}\n",
        b"[" * 3_000, b"{a: " * 3_000, b"- " * 3_000, b"nodes: " + b"[" * 3_000 + b"]" * 3_000,
        b"!!python/object/apply:os.system ['touch owned']\n", b"nodes: !!python/name:os.system\n",
        b"? [a, b]\n: 1\n", b"nodes: 2001-99-99\n", b"nodes: 0b" + b"1" * 5_000, b"nodes: 1:2:3:4.5\n",
        b"nodes: [{count: " + b"9" * 5_000 + b", gpus: 1}]\n", b"nodes: [{count: 1000000000, gpus: 1000000000}]\n",
        b"nodes: [{count: 1, gpus: .inf}]\n", b"nodes: [{count: 1, gpus: 4, gpu_type: {a: [b]}}]\npools: {a: .nan}\n",
        b"pools: {null: 4, 1: 2, true: 3}\n", b"%YAML 9.9\n---\nnodes: []\n", b"--- 1\n--- 2\n",
        b"\xff\xfe" + b"n\0" * 9,
    ))  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_originals_are_read(folder, at_home, kind):
    """Else all that follows would be refused for another reason."""
    for command in KINDS[kind].commands:
        answer = typed(words_of(command, folder, KINDS[kind].original))
        read = answer.code == 0 or (kind == "params" and "missing.csv" in answer.err)
        assert read, (command, answer)


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_whole_or_refused_in_one_line(folder, at_home, kind, few):
    check_inputs(folder, input_of, kind, seeds_of(kind, few))
