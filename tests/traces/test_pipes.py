"""What comes through a pipe is read whole, whoever looked at it first."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from jobcast.traces.files import Spooled, kept_copy, read_file, rereadable
from jobcast.traces.readers import HEAD_BYTES, read_sources, read_trace, reader_for

JOBS = 3_000
LOG = "; UnixStartTime: 1000000000\n" + "".join(
    f"{n} {n * 60} 5 {n % 99 + 1} 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n" for n in range(JOBS)
)
CANONICAL = "job_id,pool,submit_time,duration,gpus\n" + "".join(f"{n:05d},p,{n}.0,1,1\n" for n in range(JOBS * 4))
HELIOS = "job_id,vc,gpu_num,state,submit_time,start_time,end_time,duration\n" + "".join(
    f"{n},v,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:00:09,4\n" for n in range(JOBS)
)


@contextmanager
def pipe_of(path, text):
    """A FIFO that a thread writes the text into, once."""
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(text), daemon=True)
    writer.start()
    yield path
    writer.join()


@pytest.mark.parametrize(
    ("name", "text"), [("swf", LOG), ("canonical", CANONICAL), ("helios", HELIOS)], ids=["swf", "canonical", "helios"]
)
@pytest.mark.parametrize("named", [False, True])
def test_a_pipe_is_read_as_the_file_is(tmp_path, name, text, named, written):
    assert len(text) > 2 * HEAD_BYTES
    (tmp_path / "pipes").mkdir()
    from_file = read_sources([written("jobs.txt", text)], format=name).trace
    with pipe_of(tmp_path / "pipes" / "jobs.txt", text) as pipe:
        reading = read_sources([pipe], format=name if named else None)
    assert reading.format_name == name
    assert reading.trace.jobs.drop("pool").equals(from_file.jobs.drop("pool"))
    assert reading.trace.source.sha256 == from_file.source.sha256
    assert reading.trace.source.path == str(pipe)
    assert reading.trace.name == from_file.name or name == "helios"  # whose cluster is the folder's name


def test_a_spooled_pipe_is_read_as_often_as_one_likes_and_leaves_nothing(tmp_path):
    with pipe_of(tmp_path / "pipe", LOG) as pipe, rereadable([pipe, tmp_path / "file"]) as (kept, file):
        assert file == tmp_path / "file"
        assert isinstance(kept, Spooled)
        copy = kept_copy(kept)
        assert [read_file(kept).data.decode() for _ in range(2)] == [LOG, LOG]
        assert read_file(kept, 10).data == LOG[:10].encode()
        assert reader_for([kept]).name == "swf"
        with rereadable([kept]) as again:
            assert again == [kept]
    assert not copy.parent.exists()


def test_standard_input(tmp_path):
    convert = [sys.executable, "-m", "jobcast", "trace", "convert", "auto", "/dev/stdin", "--out", "a.parquet"]
    done = subprocess.run(convert, cwd=tmp_path, input=LOG, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{JOBS:,} of {JOBS:,} rows, read as swf" in done.stdout + done.stderr
    assert read_trace(tmp_path / "a.parquet").submit_s[0] == 1e9
