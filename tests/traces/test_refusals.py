"""What cannot be used is refused by the right kind of error, in one line that names the place."""

import gzip
import sqlite3

import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.traces.describe import describe
from jobcast.traces.enrich.columns import EnrichConfig, parse_enrich, parse_facts
from jobcast.traces.enrich.enrichment import enrich
from jobcast.traces.fetch import unpack
from jobcast.traces.learning_curves import read_learning_curves
from jobcast.traces.pools import derive_pools, parse_cells, read_pools
from jobcast.traces.profiles import merge_sqlite, profile_table, read_profiles
from jobcast.traces.readers import read_sources, read_trace
from jobcast.traces.speedups import linear_speedups
from jobcast.traces.table import Trace
from jobcast.traces.tasks import read_tasks
from jobcast.traces.think_times import find_successors
from jobcast.traces.trainings import Throughputs, TrainingTables, read_throughputs, trainings_of
from tests.scenarios import frame_of
from tests.shared import refused

ROWS = (("model", 8, "v100", 1, 9.0),)


def trace(**columns):
    return Trace.from_frame(frame_of([0.0], **columns), name="jobs")


def text(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(folder, **columns):
    at = {"submit_time": pl.Series([0]).cast(pl.Datetime("us"))}
    frame_of([0]).with_columns(**at | columns).write_parquet(folder / "jobs.parquet")
    return folder / "jobs.parquet"


def empty_database(folder):
    sqlite3.connect(folder / "p.sqlite").execute("CREATE TABLE other (x)").connection.close()
    return folder / "p.sqlite"


TABLES = TrainingTables(Throughputs("rates.csv", "v100", {}))
REFUSED = {
    "no file": (lambda at: read_trace(at / "jobs.csv"), TraceError, "jobs.csv: no such file"),
    "a folder": (lambda at: read_trace(at), TraceError, "is a folder"),
    "a zone": (lambda at: read_trace(text(at, "a.csv", "x"), format="philly", timezone="Mars"), ConfigError, "'Mars'"),
    "columns": (lambda at: read_trace(text(at, "a", "job_id\n1\n"), format="canonical"), TraceError, "gpus missing"),
    "text for numbers": (lambda at: read_trace(parquet(at, duration=pl.lit("1"))), TraceError, "duration: must hold n"),
    "numbers for text": (lambda at: read_trace(parquet(at, job_id=1.0)), TraceError, "job_id: must hold text"),
    "seconds": (lambda at: read_trace(parquet(at, submit_time=0)), TraceError, "column submit_time: must hold times"),
    "partitions alone": (
        lambda at: read_sources([text(at, "p", "PartitionName=a TRES=cpu=1\n")], format="sacct"),
        ConfigError,
        "sacct needs the output of sacct",
    ),
    "a log of comments": (lambda at: read_trace(text(at, "a.swf", "; x\n"), format="swf"), TraceError, "only comments"),
    "a model without speedups": (lambda at: linear_speedups(4).row_of("x"), ConfigError, "no row of model 'x'"),
    "nobody": (lambda at: find_successors(trace()), TraceError, "no job names its user"),
    "no think time": (lambda at: find_successors(trace(user="u"), 0.0), ConfigError, "--max-think"),
    "a load": (lambda at: derive_pools(trace(), 1.5), ConfigError, "load must be in (0, 1], got 1.5"),
    "a span": (lambda at: derive_pools(trace(), span_s=0.0), ConfigError, "span_s must be a number"),
    "no jobs": (lambda at: derive_pools(trace().between(5.0, None)), TraceError, "no jobs, so no quotas"),
    "no pools": (lambda at: read_pools(at / "pools.csv"), PoolsError, "pools.csv: no such file"),
    "pools of bytes": (lambda at: read_pools(text(at, "pools.csv", b"\xff\xfe")), PoolsError, "not readable as CSV"),
    "cells": (lambda at: parse_cells("2x", 4, "pools"), PoolsError, "pools"),
    "nothing to describe": (lambda at: describe(trace().between(5.0, None)), TraceError, "no jobs to describe"),
    "an elastic trace": (
        lambda at: enrich(trace(min_gpus=1), ["due"], EnrichConfig(), 0), TraceError, "jobs name min_gpus"
    ),
    "a pair": (lambda at: parse_enrich({"due": "3,1"}), ConfigError, "due must be two ascending numbers"),
    "a speed": (lambda at: parse_enrich({"gpu_types": "v100,mine"}), ConfigError, "must give a speed above 0"),
    "a fact": (lambda at: parse_facts(["speedup"]), ConfigError, "speedup: is not known; did you mean speedups"),
    "no fact": (lambda at: parse_facts([" "]), ConfigError, "--facts: names nothing"),
    "a database without profiles": (lambda at: read_profiles(empty_database(at)), TraceError, "cannot be read"),
    "no database": (lambda at: merge_sqlite(profile_table(ROWS).frame, text(at, "p.db", "x" * 9)), ConfigError, "p.db"),
    "an archive": (lambda at: unpack(text(at, "a.tar.gz", "x"), ["a"], at), TraceError, "a.tar.gz: cannot be unpacked"),
    "a cut archive": (
        lambda at: unpack(text(at, "a.gz", gzip.compress(b"x" * 999)[:-9]), ["a"], at), TraceError, "cannot be unpacked"
    ),
    "another archive": (lambda at: unpack(text(at, "a.7z", "x"), ["a"], at), TraceError, "a.7z: must be one of"),
    "curves in Parquet": (lambda at: read_learning_curves(parquet(at)), TraceError, "is a Parquet file"),
    "tasks without a row": (
        lambda at: read_tasks(text(at, "t.csv", "job_id,task\n")), TraceError, "t.csv: columns server"
    ),
    "throughputs without a column": (
        lambda at: read_throughputs(text(at, "t.csv", "gpu_type,model,batch_size\na,b,1\n")), TraceError, "gpus, steps"
    ),
    "no model": (lambda at: trainings_of(trace(steps=5), TABLES), TraceError, "model, batch_size not found"),
    "no steps": (lambda at: trainings_of(trace(model="LM", batch_size=5), TABLES), TraceError, "steps or epochs not f"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_used_is_refused(what, tmp_path):
    attempt, kind, words = REFUSED[what]
    assert words in refused(kind, "", attempt, tmp_path)
