"""Acme's logs; expectations are by hand from the fixtures."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources, read_trace
from tests.shared import refused

FIXTURES = Path(__file__).with_name("fixtures") / "acme"
SEREN = FIXTURES / "seren" / "trace_seren.csv"
BOTH = sorted((FIXTURES / "both").iterdir())


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def test_the_cluster_is_the_pool_and_offsets_are_kept_to():
    trace = read_trace(SEREN)
    columns = ["job_id", "pool", "submit_time", "duration", "gpus", "user", "start_time", "state", "cores", "type"]
    assert trace.jobs.select(columns).rows() == [
        ("dlc4", "seren", utc(2023, 2, 28, 16, 0, 9), 30.0, 1, "u2", utc(2023, 2, 28, 16, 0, 29), "FAILED", 16.0, None),
        ("dlc1", "seren", utc(2023, 2, 28, 16, 0, 10), 3600.0, 8, "u1", utc(2023, 2, 28, 16, 0, 20), "COMPLETED",
         120.0, "Pretrain"),
    ]  # fmt: skip
    assert trace.dropped == {"CPU job (gpu_num 0)": 1, "duration missing or <= 0": 1}
    assert trace.notes == ()
    assert "tag" not in trace.jobs.columns
    assert "gpu_time" not in trace.jobs.columns


def test_both_clusters_whose_ids_start_anew():
    trace = read_sources(BOTH).trace
    assert trace.jobs["job_id"].to_list() == ["seren/dlc4", "seren/dlc1", "kalos/dlc1"]
    assert trace.pools == ["kalos", "seren"]
    assert trace.jobs["mem_per_pod_GB"].to_list() == [None, None, 1024.0]
    assert trace.source.rows == 6
    assert sum(trace.dropped.values()) == 3


def test_a_zone_is_not_applied_to_times_with_an_offset():
    trace = read_trace(SEREN, timezone="Asia/Shanghai")
    assert trace.jobs.equals(read_trace(SEREN).jobs)
    assert trace.notes == ("submit_time, start_time, end_time: times are absolute, Asia/Shanghai was not applied",)


def test_a_log_of_another_name_is_a_pool_of_that_name(written):
    assert read_trace(written("third.csv", SEREN.read_text())).pools == ["third"]
    refused(ConfigError, "are both of cluster seren", read_sources, [SEREN, FIXTURES / "both" / "trace_seren.csv"])


def test_times_of_mixed_kinds_and_missing_columns(written):
    path = written("trace_seren.csv", SEREN.read_text().replace("2023-03-01 00:00:10+08:00", "2023-03-01 00:00:10"))
    refused(TraceError, "row 2, column submit_time: has no offset while other rows have one", read_trace, path)
    path.write_text("job_id,gpu_num,type,state\n1,1,x,y\n")
    with pytest.raises(TraceError, match="columns submit_time, start_time, end_time, duration missing, found job_id"):
        read_trace(path, format="acme")
