"""Files that break libraries: one line of ours, and none of theirs."""

import os
import random

import polars as pl
import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.files import heard, hushed
from jobcast.traces.readers import read_trace
from tests.scenarios import frame_of
from tests.shared import refused


def test_what_is_said_past_python_is_dropped_meanwhile(capfd):
    os.write(2, b"before ")
    with hushed():
        os.write(2, b"panic")
    os.write(2, b"after")
    assert capfd.readouterr().err == "before after"


def test_the_stream_is_back_where_a_signal_kept_it_from_ending(capfd):
    cut_short = hushed()
    cut_short.__enter__()
    heard()
    os.write(2, b"after")
    assert not cut_short.__exit__(None, None, None)
    os.write(2, b"wards")
    assert capfd.readouterr().err == "afterwards"


@pytest.mark.parametrize("seed", range(8))
def test_a_spoilt_parquet_file_is_told_in_one_line_alone(tmp_path, capfd, seed):
    path = tmp_path / "jobs.parquet"
    frame = frame_of([0] * 500)
    frame.with_columns(pl.col("submit_time").cast(pl.Datetime("us", "UTC"))).write_parquet(path)
    data = bytearray(path.read_bytes())
    rng = random.Random(seed)
    for _ in range(300):
        data[rng.randrange(4, len(data) - 8)] = rng.randrange(256)
    path.write_bytes(data)
    assert refused(TraceError, "", read_trace, path).startswith(f"{path}")
    assert capfd.readouterr().err == ""
