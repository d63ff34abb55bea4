"""Helios's logs and quotas; expectations are by hand from the fixtures."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Pool
from jobcast.traces.readers import read_sources, read_trace
from tests.shared import refused

FIXTURES = Path(__file__).with_name("fixtures") / "helios"
ONE = FIXTURES / "one" / "cluster_log.csv"
EARTH, VENUS = (FIXTURES / "clusters" / name / "cluster_log.csv" for name in ("Earth", "Venus"))
QUOTAS = EARTH.with_name("cluster_gpu_number.csv")
HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
SHANGHAI = "Asia/Shanghai"
DAY_S = 86400.0
APRIL_S = datetime(2020, 4, 1, tzinfo=UTC).timestamp()


def at(clock, day=1):
    return datetime.fromisoformat(f"2020-04-{day:02d}T{clock}+00:00").astimezone(UTC)


def test_gpu_jobs_that_ran_are_kept_as_the_log_tells_them():
    trace = read_trace(ONE)
    assert trace.jobs.columns == [
        "job_id", "pool", "submit_time", "duration", "gpus", "user", "start_time", "end_time", "state", "cores",
        "node_num", "queue",
    ]  # fmt: skip
    assert trace.jobs.rows() == [
        ("007", "vcA", at("00:00:05"), 1.0, 1, "u3", at("00:00:05"), at("00:00:06"), "COMPLETED", 4.0, 1, 0),
        ("104", "vcB", at("00:00:05"), 86400.0, 2, "u2", at("00:00:13"), at("00:00:13", 2), "TIMEOUT", 10.0, 1, 8),
        ("100", "vcA", at("00:00:10"), 3600.0, 8, "u1", at("00:00:20"), at("01:00:20"), "COMPLETED", 40.0, 1, 10),
        ("105", "vcB", at("00:00:14"), 60.0, 1, "u3", None, None, "NODE_FAIL", 5.0, 1, 0),
    ]
    assert trace.dropped == {"CPU job (gpu_num 0)": 2, "duration missing or <= 0": 2}
    assert trace.notes == (
        "submit_time, start_time, end_time: times without an offset read as UTC",
        "times are wall-clock times of UTC+8; --timezone Asia/Shanghai brings them to UTC",
        "start_time, end_time: emptied in 1 of 4 jobs, where they lie before submit_time or each other",
    )
    assert (trace.name, trace.source.rows) == ("one", 8)


def test_ids_and_pools_of_several_clusters_are_told_apart():
    trace = read_sources([VENUS, EARTH]).trace
    assert trace.jobs["job_id"].to_list() == ["Earth/1", "Venus/1", "Earth/2"]
    assert trace.pools == ["Earth/vcA", "Earth/vcB", "Venus/vcA"]
    assert trace.dropped == {"CPU job (gpu_num 0)": 2}
    assert trace.source.path == f"{EARTH} + {VENUS}"
    assert trace.name == "Earth+Venus"


def test_a_bad_row_of_several_logs_is_named_with_its_file(written):
    bad = written("Venus_cluster_log.csv", VENUS.read_text() + "3,u,vcA,two,4,1,COMPLETED,2020-04-01 00:00:11,,,30,0\n")
    refused(TraceError, rf"{bad} row 4, column gpu_num: must be a number, got 'two'", read_sources, [EARTH, bad])
    refused(TraceError, rf"^{bad}, row 4, column gpu_num: must be a number, got 'two'", read_trace, bad)


def test_quotas_change_from_the_day_on():
    reading = read_sources([QUOTAS, EARTH])
    at_day = {day: reading.pools.at(APRIL_S + (day - 1) * DAY_S) for day in (1, 2, 3, 4)}
    assert at_day == {
        1: [Pool("vcA", 64), Pool("vcC", 8)],
        2: [Pool("vcA", 64), Pool("vcB", 32), Pool("vcC", 8)],
        3: [Pool("vcA", 32), Pool("vcB", 32)],
        4: [Pool("vcA", 32), Pool("vcB", 32)],
    }
    assert len(reading.pools.quotas) == 5
    assert reading.trace.notes[-1] == "quotas of 3 pools told, 2 changes"


def test_days_are_those_of_the_zone_and_the_first_holds_before_it_for_earlier_jobs(written):
    moved = read_sources([EARTH, QUOTAS], timezone=SHANGHAI).pools
    assert sorted({quota.from_s for quota in moved.quotas if quota.from_s > 0.0}) == [
        APRIL_S + day * DAY_S - 8 * 3600 for day in (0, 1, 2)
    ]
    log = written("cluster_log.csv", HEADER + "1,u,vcA,1,4,1,COMPLETED,2020-03-31 23:59:59,,,30,0\n")
    early = read_sources([log, QUOTAS]).pools
    assert early.at(APRIL_S - 1) == [Pool("vcA", 64), Pool("vcC", 8)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,vcA,total\n2020-04-01,many,64\n", "row 2, column vcA: must be a number of GPUs, got 'many'"),
        ("date,vcA,total\n2020-04-01,inf,64\n", "row 2, column vcA: must be a number of GPUs, got 'inf'"),
        ("date,vcA,total\n2020-04-01,1,1\n2020-04-01,2,2\n", "column date: a day is given twice"),
        ("date,vcA,total\n", "no days, only a header"),
    ],
)
def test_quotas_that_cannot_be_read(written, text, message):
    refused(TraceError, message, read_sources, [ONE, written("cluster_gpu_number.csv", text)])


def test_files_that_do_not_go_together():
    refused(ConfigError, r"helios needs a cluster's cluster_log\.csv, got .*number\.csv alone", read_sources, [QUOTAS])
    with pytest.raises(ConfigError, match=r"quotas of cluster Earth, but its cluster_log\.csv is not given; name"):
        read_sources([ONE, VENUS, QUOTAS])
    with pytest.raises(ConfigError, match="are both of cluster Earth; put each into a folder named for its cluster"):
        read_sources([EARTH, EARTH])


def test_words_for_nothing_are_nothing(written):
    path = written(
        "cluster_log.csv",
        f"{HEADER}1,u,vcA,1,4,1,X,2020-04-01 00:00:00,None,NaT,30.5,nan\n2,u,vcA,1,,1,X,2020-04-01 00:00:00,,,nan,\n",
    )
    trace = read_trace(path)
    assert trace.jobs.select("duration", "start_time", "end_time", "cores", "queue").rows() == [
        (30.5, None, None, 4.0, None)
    ]
    assert trace.dropped == {"duration missing or <= 0": 1}


def test_a_further_column_of_a_canonical_name_does_not_take_the_place_of_the_logs_own(written):
    row = "1,u,vcA,2,4,1,X,2020-04-01 00:00:00,,,30,0"
    path = written("cluster_log.csv", f"gpus,{HEADER.strip()},pool\n9,{row},elsewhere\n")
    trace = read_trace(path, format="helios")
    assert (trace.pools, trace.gpus.tolist()) == (["vcA"], [2])


def test_what_the_first_day_tells_holds_before_it_for_earlier_jobs_alone(written):
    log = written("cluster_log.csv", HEADER + "1,u,vcA,1,4,1,COMPLETED,2020-04-01 00:00:00,,,30,0\n")
    assert min(quota.from_s for quota in read_sources([log, QUOTAS]).pools.quotas) == APRIL_S
