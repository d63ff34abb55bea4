"""SWF; expectations are by hand from the fixture."""

import gzip
from pathlib import Path

import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace
from tests.shared import refused

LOG = Path(__file__).with_name("fixtures") / "swf" / "small.swf"
START_S = 1_000_000_000.0


def test_jobs_by_hand():
    trace = read_trace(LOG)
    shown = ["job_id", "pool", "duration", "gpus", "user", "tag", "state", "preceding_job", "think_time_s"]
    assert trace.jobs.select(shown).rows() == [
        ("1", "2", 3600.0, 8, "3", "7", "COMPLETED", None, None),
        ("3", "1", 90.0, 2, "4", None, "FAILED", "1", 30.0),
        ("4", "1", 1800.0, 16, "4", "9", "COMPLETED", None, None),
        ("6", "unknown", 120.0, 1, None, "9", "COMPLETED", None, None),
    ]
    assert trace.submit_s.tolist() == [START_S, START_S + 120, START_S + 180, START_S + 300]
    assert trace.start_s.tolist() == [START_S + 10, START_S + 125, START_S + 180, START_S + 320]
    assert trace.dropped == {
        "part of a job (status 2, 3 or 4)": 1,
        "cancelled before it ran": 1,
        "run time missing or <= 0": 1,
        "no processors": 1,
    }
    assert "processors stand for GPUs: allocated ones, requested where those are unknown" in trace.notes
    assert trace.notes[-1] == "times are seconds from UnixStartTime, in UTC; the site is in Europe/Berlin"


def test_queues_are_pools_where_no_partition_is_known(written):
    trace = read_trace(written("queues.swf", "1 0 0 60 2 -1 -1 2 -1 -1 1 1 1 1 4 -1 -1 -1\n"))
    assert trace.pools == ["4"]
    assert trace.submit_s.tolist() == [0.0]
    assert "no UnixStartTime" in trace.notes[-1]


def test_what_jobs_ask_for(written):
    path = written(
        "asked.swf", "1 0 0 60 8 -1 -1 8 7200 1048576 1 1 5 1 4 2 -1 -1\n2 1 0 60 2 -1 -1 2 0 -1 1 1 -1 1 4 -1 -1 -1\n"
    )
    jobs = read_trace(path).jobs
    assert jobs.select("account", "partition", "time_limit_s", "mem_gb").rows() == [
        ("5", "2", 7200.0, 8.0),
        (None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 0 0 60 2 -1 -1 2 -1 -1 1 1 1 1 4 -1 -1", "row 2: 17 fields where SWF has 18"),
        ("1 0 0 60 2 -1 -1 2 -1 -1 1 1 1 1 4 -1 -1 -1 9", "row 2: 19 fields where SWF has 18"),
        ("1 0 0 sixty 2 -1 -1 2 -1 -1 1 1 1 1 4 -1 -1 -1", "row 2, column run_time: must be a number, got 'sixty'"),
    ],
)
def test_a_bad_line_is_named(written, line, message):
    refused(TraceError, message, read_trace, written("bad.swf", f"; comment\n{line}\n"), format="swf")


def test_a_packed_log_is_read_and_a_broken_one_refused(written):
    packed = written("small.swf.gz", gzip.compress(LOG.read_bytes()))
    assert read_trace(packed).jobs.equals(read_trace(LOG).jobs)
    packed.write_bytes(packed.read_bytes()[:-9])
    refused(TraceError, "cannot be unpacked", read_trace, packed, format="swf")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_log_with_a_mark_of_its_encoding_is_recognised(written, pack):
    assert read_trace(written("log.swf", pack(b"\xef\xbb\xbf" + LOG.read_bytes()))).jobs.equals(read_trace(LOG).jobs)


def test_comments_may_be_of_any_encoding_and_tell_the_processors(written):
    log = written("log.swf", b"; Installation: Universit\xe9\n" + LOG.read_bytes())
    trace = read_trace(log)
    assert trace.jobs.equals(read_trace(LOG).jobs)
    assert "the machine has 64 processors in all (MaxProcs)" in trace.notes
    log.write_bytes(LOG.read_bytes().replace(b"3600", b"36\xe90"))
    refused(TraceError, "row 9, column run_time: must be a number", read_trace, log, format="swf")
