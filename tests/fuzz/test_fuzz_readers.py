"""Readers on damaged files: each record a job or counted, or one line; and nothing that jobcast wrote read as other."""

import multiprocessing
import random
import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from jobcast.domain.errors import JobcastError
from jobcast.traces.readers import format_names, read_sources, read_trace
from jobcast.traces.table import Trace
from jobcast.traces.table_files import parquet_metadata, read_parquet, write_parquet, write_trace
from tests.fuzz.command_line import emptied, fault_of, typed
from tests.fuzz.mutations import mutate
from tests.scenarios import frame_of
from tests.traces.test_readers_fuzz import CASES, assert_one_line, read, sources_of

FEW, MANY = 50, 1_000
"""Inputs a format in `make test` and in `make test-slow`."""
COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]
MOST_GROWTH = 1_500_000
"""Kilobytes that reading may add at its peak: fixtures are small, damage adds some megabytes."""


def damaged(name: str, count: int, folder: Path) -> Iterator[tuple[str, list[Path], random.Random]]:
    """Seed, files with one of them damaged, and the generator to go on with, of the format's cases in turn."""
    cases = [case for case, (known, _) in CASES.items() if known == name]
    folder.mkdir(exist_ok=True)
    for number in range(count):
        case = cases[number % len(cases)]
        rng = random.Random(f"{case} {number}")
        originals = sources_of(CASES[case][1])
        victim, copies = rng.choice(originals), []
        for original in originals:
            copy = folder / original.relative_to(CASES[case][1])
            copy.parent.mkdir(exist_ok=True)
            data = original.read_bytes()
            copy.write_bytes(mutate(data, rng) if original == victim else data)
            copies.append(copy)
        yield f"{case} {number}", copies, rng
        for copy in copies:
            copy.unlink()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", format_names())
def test_a_damaged_file_is_read_whole_or_refused_in_one_line(name, count, tmp_path):
    outcomes = []
    for seed, sources, rng in damaged(name, count, tmp_path / "in"):
        zone, strict = rng.choice([None, "America/Los_Angeles"]), rng.random() < 0.2
        try:
            if rng.random() < 0.3:
                reading = read_sources(sources, timezone=zone, strict=strict)  # whatever it is recognised as
                assert len(reading.trace) + sum(reading.trace.dropped.values()) == reading.trace.source.rows
            else:
                read(name, sources, timezone=zone, strict=strict)
            outcomes.append("read")
        except JobcastError as error:
            assert_one_line(error)
            outcomes.append("refused")
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert {"read", "refused"} == set(outcomes)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY // 5, marks=pytest.mark.slow)])
def test_the_command_line_tells_in_one_line_and_writes_all_or_nothing(count, tmp_path):
    names, out = format_names(), tmp_path / "out"
    for which, name in enumerate(names):
        share = count // len(names) + (which < count % len(names))
        for seed, sources, rng in damaged(name, share, tmp_path / name):
            made = emptied(out) / rng.choice(["out.csv", "out.parquet"])
            words = ["--quiet", "trace", "convert", rng.choice([name, "auto"]), *sources, "--out", made]
            answer = typed(words)
            assert fault_of(answer, out) is None, seed
            assert answer.code or len(read_trace(made, format="canonical")) > 0, seed


def _growth(count: int, folder: Path) -> int:
    """Kilobytes that the peak of this process's memory grows by while it reads."""
    read_trace(sources_of(CASES["swf"][1])[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in format_names():
        for _, sources, _ in damaged(name, count, folder / name):
            try:
                read_sources(sources, format=name)
            except JobcastError:
                continue
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


@pytest.mark.parametrize("count", [5, pytest.param(MANY // 10, marks=pytest.mark.slow)])
def test_memory_stays_within_its_limit(count, tmp_path):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as own:
        assert own.submit(_growth, count, tmp_path).result() < MOST_GROWTH


def tables() -> dict[str, pl.DataFrame]:
    """Tables like those that jobcast writes: numbers, times, names, categories, gaps; short and long."""
    rng = random.Random(0)
    number = [rng.random() * 1e5 for _ in range(400)]
    return {
        "numbers": pl.DataFrame({"at_s": number, "gpus": range(400), "flag": [value > 5e4 for value in number]}),
        "names": pl.DataFrame({"pool": pl.Series(["nlp", None, "vision"] * 9, dtype=pl.Categorical), "n": range(27)}),
        "one": pl.DataFrame({"config": ['{"num_classes": 3}']}),
        "none": pl.DataFrame(schema={"seq": pl.Int64, "start_s": pl.Float64}),
    }


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", tables())
def test_parquet_that_jobcast_wrote_is_as_it_was_or_refused(name, count, tmp_path):
    path, table = tmp_path / "table.parquet", tables()[name]
    write_parquet(table, path, {"about": "this"})
    data = path.read_bytes()
    refused = 0
    for seed in range(count):
        path.write_bytes(mutate(data, random.Random(f"{name} {seed}")))
        try:
            assert read_parquet(path).equals(table), seed
            assert parquet_metadata(path)["about"] == "this", seed
        except JobcastError as error:
            assert_one_line(error)
            refused += 1
    assert refused > 0.8 * count  # some damages do nothing, to bytes that they do not find


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_trace_in_parquet_is_refused_and_without_a_seal_at_worst_another(sealed, count, tmp_path):
    path, trace = tmp_path / "jobs.parquet", _trace()
    if sealed:
        write_trace(trace, path)
    else:
        trace.jobs.write_parquet(path)  # as others write it: only what cannot be true is found
    data = path.read_bytes()
    for seed in range(count):
        path.write_bytes(mutate(data, random.Random(f"trace {seed}")))
        try:
            read_back = read_trace(path)
            assert not sealed or read_back.jobs.equals(trace.jobs), seed
        except JobcastError as error:
            assert_one_line(error)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def _trace() -> Trace:
    rng = random.Random(1)
    submit_s = sorted(1.5e9 + rng.random() * 1e6 for _ in range(60))
    columns = {name: [rng.choice(some) for _ in range(60)] for name, some in (("pool", "abc"), ("gpus", (1, 2, 4, 8)))}
    columns |= {"tag": [rng.choice(("x", None)) for _ in range(60)], "start_time": [at + 5.0 for at in submit_s]}
    frame = frame_of(submit_s, duration=[rng.random() * 1e4 + 1.0 for _ in range(60)], **columns)
    return Trace.from_frame(frame, name="jobs")
