"""Slurm's accounting: what each fixture must give, by hand, and what is refused."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import Quota
from jobcast.traces.readers import read_sources
from jobcast.traces.readers.reading import Reading
from tests.shared import refused

FIXTURES = Path(__file__).with_name("fixtures") / "sacct"
HEADER = "JobID|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
ROW = "1|gpu|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:01|2024-01-01T00:01:01|60|gres/gpu=2\n"


def read(case: str, **options: object) -> Reading:
    return read_sources(sorted((FIXTURES / case).iterdir()), format="sacct", **options)


@pytest.fixture
def written(written):
    return lambda text, name="sacct.txt": written(name, text)


def test_jobs_are_allocations_that_held_gpus_and_ended():
    whole = read("partitions").trace
    trace = replace(whole, jobs=whole.jobs.filter(whole.ended & (whole.gpus > 0)))
    assert trace.jobs["job_id"].to_list() == ["100", "102", "104_1", "105+0", "105+1", "106", "106/2"]
    assert trace.gpus.tolist() == [4, 3, 1, 8, 2, 4, 4]
    assert trace.duration_s.tolist() == [1800.0, 50.0, 600.0, 86410.0, 86410.0, 3600.0, 3600.0]
    assert trace.jobs["pool"].to_list() == ["gpu", "gpu", "debug", "gpu", "long", "gpu", "gpu"]
    assert trace.jobs["gpu_type"].to_list() == ["a100", "a100+v100", None, None, None, "a100", "a100"]
    assert trace.jobs["tag"].to_list() == ["train-a", "eval|x", "sweep", "het", "het", "train-a", "train-a"]
    assert trace.jobs["user"].to_list() == ["ada", "bob", "cy", "di", "di", "ada", "ada"]
    assert trace.jobs["account"].to_list() == ["vision", "nlp", "nlp", "sim", "sim", "vision", "vision"]
    assert trace.jobs["state"].to_list()[:3] == ["COMPLETED", "CANCELLED", "FAILED"]
    assert trace.jobs["mem_gb"].to_list() == [64.0, 4.0, 16.0, 1024.0, 16.0, 64.0, 64.0]
    assert trace.jobs["cores"].to_list() == [8.0, 1.0, 4.0, 16.0, 4.0, 8.0, 8.0]
    assert trace.jobs["partition"].to_list() == ["gpu", "gpu", "debug", "gpu", "long", "gpu", "gpu,long"]
    assert trace.source.rows == 22
    assert "job_id: waiting array tasks in 1 of 16 rows stand for jobs of their own: 7" in trace.notes
    assert trace.dropped == {
        "job step (the job has a row of its own)": 3,
        "never ran (no time elapsed)": 1,
        "end unknown": 1,
    }


def test_jobs_that_run_or_wait_or_ask_for_cores_alone_are_jobs_too():
    trace = read("partitions").trace
    others = trace.jobs.filter(~(trace.ended & (trace.gpus > 0)))
    shown = others.select("job_id", "gpus", "cores", "duration", pl.col("start_time", "end_time").is_null(), "state")
    assert shown.rows() == [
        ("101", 0, 2.0, 60.0, False, False, "COMPLETED"),
        ("104_2", 1, 4.0, None, False, True, "RUNNING"),
        *((f"104_{task}", 1, 4.0, None, True, True, "PENDING") for task in range(3, 10)),
        ("108", 4, 8.0, None, True, True, "PENDING"),
    ]
    told = "duration: empty in 9 of 17 jobs, which had not ended (1 running, 8 waiting): they count as arrivals, "
    assert f"{told}replays leave them out" in trace.notes
    assert "gpus: 0 in 1 of 17 jobs: forecasts of GPUs and replays leave them out" in trace.notes


def test_what_jobs_ask_for_is_told(written):
    header = HEADER.replace("AllocTRES", "QOS|Timelimit|NodeList|Priority|AllocTRES")
    asked = ["high|1-00:00:00|gpu[01-02]|4294901759", "normal|UNLIMITED|None assigned|0", "|Partition_Limit||", "||n1|"]
    rows = [
        f"{number}{ROW[1:].replace('gres/gpu=2', f'{texts}|billing=9,cpu=6,gres/gpu=2,mem=3000M')}"
        for number, texts in enumerate(asked, 1)
    ]
    jobs = read_sources([written(header + "".join(rows))], format="sacct").trace.jobs
    assert jobs.select("qos", "time_limit_s", "nodes", "priority", "cores", "mem_gb").rows() == [
        ("high", 86400.0, "gpu[01-02]", 4294901759.0, 6.0, 2.9296875),
        ("normal", None, None, 0.0, 6.0, 2.9296875),
        (None, None, None, None, 6.0, 2.9296875),
        (None, None, "n1", None, 6.0, 2.9296875),
    ]
    minutes = (header + rows[0]).replace("Timelimit", "TimelimitRaw").replace("1-00:00:00", "90")
    assert read_sources([written(minutes)], format="sacct").trace.jobs["time_limit_s"].to_list() == [5400.0]


@pytest.mark.parametrize(
    ("column", "given", "how"),
    [
        ("Timelimit", "1 day", "write [days-]hours:minutes:seconds, or use TimelimitRaw"),
        ("TimelimitRaw", "9x", "write minutes"),
    ],
)
def test_a_time_limit_that_cannot_be_read_names_its_own_remedy(written, column, given, how):
    text = HEADER.replace("AllocTRES", f"{column}|AllocTRES") + ROW.replace("gres/gpu", f"{given}|gres/gpu")
    assert refused(TraceError, "", read_sources, [written(text)], format="sacct").endswith(
        f"column {column}: must be a length of time, got '{given}'; {how}"
    )


def test_a_job_whose_width_changed_is_a_job_a_width(written):
    """Four GPUs for two hours, two for an hour; another that is about to change and has no end runs on."""
    rows = [
        "1|gpu|RESIZING|2024-01-01T00:00:00|2024-01-01T01:00:00|2024-01-01T03:00:00|7200|gres/gpu=4",
        "1|gpu|COMPLETED|2024-01-01T03:00:00|2024-01-01T03:00:00|2024-01-01T04:00:00|3600|gres/gpu=2",
        "2|gpu|RESIZING|2024-01-01T05:00:00|2024-01-01T05:00:00|Unknown|7200|gres/gpu=2",
    ]
    trace = read_sources([written(HEADER + "\n".join(rows) + "\n")], format="sacct").trace
    assert trace.jobs.select("job_id", "gpus", "duration").rows() == [
        ("1", 4, 7200.0),
        ("1/2", 2, 3600.0),
        ("2", 2, None),
    ]
    assert trace.gpu_time_s.sum() == 4 * 7200 + 2 * 3600
    assert any(note.startswith("job_id: repeated by requeued and resized jobs in 1 of 3") for note in trace.notes)


def test_a_job_that_waits_tells_its_gpus_by_what_it_asks_for(written):
    waits = "2|gpu|PENDING|2024-01-01T00:00:00|2024-01-02T00:00:00|Unknown|0|"
    trace = read_sources([written(HEADER + ROW + waits + "\n")], format="sacct").trace
    assert trace.dropped == {"GPUs not told (export ReqTRES too)": 1}
    asking = HEADER.replace("AllocTRES", "AllocTRES|ReqTRES") + ROW.replace("=2\n", "=2|\n") + waits + "|gres/gpu=8\n"
    trace = read_sources([written(asking)], format="sacct").trace
    assert trace.gpus.tolist() == [2, 8]
    assert trace.start_s.tolist() == [1704067201.0, float("inf")]  # an estimate of Slurm's is no start


def test_jobs_that_run_tell_when_the_export_was_made(written):
    """It ends later than anything that stands in it, which `predict jct` without --at would ask at; a forecast of
    Slurm's of a start tells nothing."""
    head = "JobID|Partition|State|Submit|Start|End|ElapsedRaw|ReqTRES\n"
    runs = "1|p|RUNNING|2024-01-01T10:00:00|2024-01-01T10:05:00|Unknown|5000|gres/gpu=1\n"
    waits = "2|p|PENDING|2024-01-01T11:00:00|2024-01-03T00:00:00|Unknown|0|gres/gpu=1\n"
    ended = "3|p|COMPLETED|2024-01-01T10:00:00|2024-01-01T10:05:00|2024-01-02T10:05:00|86400|gres/gpu=1\n"
    told = "the export is of 2024-01-01T11:28:20Z"
    tables = [written(head + runs + waits, "open.txt"), written(head + runs + ended, "ended.txt")]
    notes = [read_sources([table], format="sacct").trace.notes for table in tables]
    assert [any(told in note for note in some) for some in notes] == [True, False]


def test_shards_of_gpus_alone_are_none_and_told(written):
    rows = [("gres/gpu=2", 2), ("gres/shard=2", 0), ("gres/gpu=1,gres/shard:a100=4", 1), ("cpu=4", 0)]
    times = "2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|3600"
    text = "".join(f"{job}|p|COMPLETED|{times}|{tres}\n" for job, (tres, _) in enumerate(rows, 1))
    trace = read_sources([written(HEADER + text)], format="sacct").trace
    assert trace.jobs["gpus"].to_list() == [gpus for _, gpus in rows]
    assert "gpus: 1 of 4 jobs hold shards of GPUs (gres/shard) alone; read as none" in trace.notes


def test_partitions_tell_quotas_and_what_they_share():
    reading = read("partitions")
    assert reading.pools.quotas == (Quota("gpu", 32), Quota("long", 24))
    assert "partitions without GPUs have no quota: cpu" in reading.trace.notes
    assert "no quota told for 1 of 3 pools: debug" in reading.trace.notes
    assert any(note.startswith("nodes of several partitions count in each: 2;") for note in reading.trace.notes)


def test_the_wall_clock_is_read_in_its_zone_and_doubled_hours_are_told():
    trace = read("partitions", timezone="America/Los_Angeles").trace
    # 2024-11-03: PDT (UTC-7) until 02:00, then PST (UTC-8); 104_1 started at 01:30, which came twice.
    assert trace.submit_s[0] == 1730617800.0
    assert trace.submit_s[-2:].tolist() == [1730638860.0, 1730653200.0]
    told = "start_time, end_time: 1 occur twice in America/Los_Angeles, read as the earlier instant"
    assert told in trace.notes
    bare = read("partitions").trace
    assert "submit_time, start_time, end_time: times without an offset read as UTC" in bare.notes
    assert any("--timezone" in note and "SLURM_TIME_FORMAT=%s" in note for note in bare.notes)


def test_older_tables_count_gres_a_node_and_epochs_need_no_zone():
    reading = read("nodes")
    trace = reading.trace
    assert trace.jobs["job_id"].to_list() == ["7", "8", "10", "11", "12", "13", "14"]
    # 7: AllocGRES gpu:4 is the job's; 8: ReqGRES gpu:tesla:2 is a node's, of three nodes; 12: gpu is one.
    assert trace.gpus.tolist() == [4, 6, 2, 0, 1, 0, 1]
    assert trace.duration_s.tolist() == [3600.0, 93601.0, 5.0, 10.0, 10.0, 10.0, 15.0]
    assert trace.submit_s.tolist() == [1.7e9 + 100 * after for after in (0, 1, 3, 4, 5, 6, 7)]
    assert trace.jobs["start_time"].is_null().to_list() == [False, False, False, False, False, True, True]
    assert not any("offset" in note or "--timezone" in note for note in trace.notes)
    # n1 (4 GPUs) is in a and b, n2 (3 GPUs) in a, n3 has none.
    assert reading.pools.quotas == (Quota("a", 7), Quota("b", 4))


def test_exports_that_overlap_are_one_trace():
    reading = read("overlap")
    assert reading.trace.jobs["job_id"].to_list() == ["1", "2", "3"]
    assert reading.trace.duration_s.tolist() == [60.0, 7200.0, 1.0]
    assert reading.trace.jobs["pool"].to_list() == ["gpu", "gpu", "y"]
    assert reading.trace.dropped == {
        "header line repeated": 1,
        "repeats another row": 1,
        "the same run at an earlier stage": 1,
    }
    # gpu: 3 nodes of 4 and one of 2 + 1; debug: one of 2.
    assert reading.pools.quotas == (Quota("debug", 2), Quota("gpu", 15))


def test_a_copy_of_an_export_takes_no_open_job_away(written):
    runs = "2|gpu|RUNNING|2024-01-01T00:00:00|2024-01-01T00:00:01|Unknown|60|gres/gpu=2\n"
    logs = [written(HEADER + ROW + runs, name) for name in ("monday.txt", "tuesday.txt")]
    trace = read_sources(logs, format="sacct").trace
    assert trace.jobs["job_id"].to_list() == ["1", "2"]
    assert trace.dropped == {"repeats another row": 2}


def test_duration_without_elapsed_is_end_minus_start(written):
    row = "1|a|2024-03-10T01:00:00|2024-03-10T01:30:00|2024-03-10T03:30:00|gres/gpu=1\n"
    log = written("JobID|Partition|Submit|Start|End|ReqTRES\n" + row)
    assert read_sources([log], format="sacct").trace.duration_s.tolist() == [7200.0]
    # In Los Angeles 02:00 to 03:00 did not exist that night.
    assert read_sources([log], format="sacct", timezone="America/Los_Angeles").trace.duration_s.tolist() == [3600.0]


def test_clusters_of_one_table_keep_their_ids_apart(written):
    rows = [ROW.rstrip("\n") + f"|{cluster}\n" for cluster in ("east", "west")]
    log = written(HEADER.rstrip("\n") + "|Cluster\n" + "".join(rows))
    trace = read_sources([log], format="sacct").trace
    assert trace.jobs["job_id"].to_list() == ["east/1", "west/1"]
    assert trace.pools == ["east/gpu", "west/gpu"]
    assert any("2 clusters" in note and "all pools share" in note and "--clusters NAME" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("       JobID    JobName\n------------ ----------\n1 a\n", "sacct --parsable2"),
        ("JobID|State\n1|COMPLETED\n", "no column submit"),
        (ROW.replace("1|gpu", "1|1"), "no header with JobID, found 1, 1, "),
        (HEADER + ROW.replace("1|gpu", "x|gpu"), "row 2, column JobID: must be a job of Slurm, got 'x'"),
        (HEADER + ROW + ROW.replace("60|", "1:2:3:4|"), "row 3, column ElapsedRaw: must be a length of time"),
        (HEADER + ROW.replace("gpu=2", "gpu=two"), "row 2, column AllocTRES: counts of GPUs cannot be read"),
        (HEADER + ROW.replace("T00:00:00", "Tnoon"), "row 2, column Submit: must be a time"),
        (HEADER + ROW.replace("|gpu|", "|gpu|x|"), "row 2: 9 fields where the header has 8"),
        (HEADER + ROW + ROW[:9], "row 3: 3 fields where the header has 8; the file ends within it"),
        (HEADER + ROW + ROW[:9] + "\n", "row 3: 3 fields where the header has 8; correct the line"),
        (HEADER + ROW.replace("gres/gpu=2", ""), "none of its 1 rows is a job (1 GPUs not told"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(written, text, told):
    assert told in refused(TraceError, "", read_sources, [written(text)], format="sacct")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PARTITION AVAIL NODES\ngpu* up 3\n", "needs PARTITION, GRES and NODES, found PARTITION, AVAIL, NODES; write"),
        ("PARTITION NODES GRES\ngpu* three gpu:4\n", "row 2: must be a number of nodes, got 'three'"),
        ("PARTITION NODES GRES\ngpu* 3 gpu:a100:four\n", "row 2: counts of GPUs cannot be read"),
        ("PartitionName=gpu\n   Nodes=n[1-4]\n", "partition 'gpu' has no TRES="),
        ("NodeName=n1\n   Gres=gpu:4\n   Partitions=\n", "names no partition"),
    ],
)
def test_partitions_that_cannot_be_read_are_refused(written, text, told):
    assert told in refused(
        PoolsError, "", read_sources, [written(HEADER + ROW), written(text, "pools.txt")], format="sacct"
    )


def test_a_job_name_may_hold_line_breaks_and_a_row_that_is_cut_is_told_by_its_line(written):
    """As sacct prints `sbatch -J $'new\\n|line'`: no name may make the accounting unreadable."""
    header, row = HEADER.replace("State", "JobName|State"), ROW.replace("|gpu|", "|gpu|{}|")
    text = header + row.format("plain") + row.format("new\n\n|line\tx").replace("1|", "2|", 1) + row.format("last")
    found = read_sources([written(text.replace("\n1|gpu|last", "\n3|gpu|last"))], format="sacct").trace
    assert found.jobs["tag"].to_list() == ["plain", "new  |line\tx", "last"]
    for cut in ("1|gpu|na\n", "1|gp\n"):
        with pytest.raises(TraceError, match=r"row 3: . fields where the header has 9"):
            read_sources([written(header + row.format("a") + cut + row.format("b"))], format="sacct")


def test_a_last_line_that_does_not_end_may_have_been_cut_and_is_told(written):
    """gres/gpu=16, cut after its 1: as many fields as are due, and a count."""
    table = HEADER + ROW + ROW.replace("1|", "2|", 1).replace("gpu=2", "gpu=16")
    for whole in (table, table.replace("\n", "\r\n"), table.replace("\n", "|\n")[:-1]):
        trace = read_sources([written(whole)], format="sacct").trace
        assert trace.gpus.tolist() == [2, 16]
        assert not any("last line" in note for note in trace.notes)
    path = written(table[:-2])
    trace = read_sources([path], format="sacct").trace
    assert trace.gpus.tolist() == [2, 1]
    told = "the last line does not end; if it was cut, its AllocTRES is wrong: write it again"
    assert f"{path}, row 3: {told}" in trace.notes


@pytest.mark.parametrize(
    "name", ["a|b\nc", "x\n" + "|" * 20 + "y", "|" * 20 + "\ny", "us\x1f|x", "two\n2|words\nof|it"]
)
def test_a_job_name_may_hold_bars_before_and_after_its_line_breaks(written, name):
    header, row = HEADER.replace("State", "JobName|State"), "{}" + ROW.replace("|gpu|", "|gpu|{}|")[1:]
    text = header + row.format(1, "plain") + row.format(2, name) + row.format(3, "last")
    jobs = read_sources([written(text + header + row.format(4, name))], format="sacct").trace.jobs
    shown = name.replace("\n", " ").replace("\x1f", " ")
    assert jobs.select("job_id", "tag", "gpus").rows() == [
        (number, tag, 2) for number, tag in zip("1234", ("plain", shown, "last", shown), strict=True)
    ]


BERLIN_AUTUMN = [  # submitted, started, ended, ran (s); the same in UTC by hand: 02:00 to 03:00 came twice
    ("01:00", "01:30", "02:30", 7200, "23:00", "23:30", "01:30"),
    ("01:00", "01:30", "02:30", 3600, "23:00", "23:30", "00:30"),
    ("02:00", "02:50", "02:10", 1200, "00:00", "00:50", "01:10"),
    ("02:10", "02:30", "03:30", 3600, "00:10", "01:30", "02:30"),
    ("02:10", "02:30", "03:30", 7000, "00:10", "00:30", "02:30"),  # suspended for 200 s
    ("02:10", "02:20", "02:30", 600, "00:10", "00:20", "00:30"),
    ("02:50", "02:05", "02:30", 1500, "00:50", "01:05", "01:30"),
]


def test_of_autumns_repeated_hour_the_time_elapsed_tells_which_it_was(written):
    day = "2024-10-27T"
    rows = [
        f"{number}|gpu|COMPLETED|{day}{submit}:00|{day}{start}:00|{day}{end}:00|{ran}|gres/gpu=1\n"
        for number, (submit, start, end, ran, *_) in enumerate(BERLIN_AUTUMN, 1)
    ]
    runs = f"8|gpu|RUNNING|{day}02:50:00|{day}02:05:00|Unknown|60|gres/gpu=1\n"
    trace = read_sources([written(HEADER + "".join(rows) + runs)], format="sacct", timezone="Europe/Berlin").trace
    jobs = trace.jobs.sort("job_id").select(pl.col("submit_time", "start_time", "end_time").dt.strftime("%H:%M"))
    assert jobs.rows() == [*(one[4:] for one in BERLIN_AUTUMN), ("00:50", "01:05", None)]
    assert "start_time, end_time: 3 of those read as the later instant, as submission, start and time elapsed tell" in (
        trace.notes
    )
    endless = HEADER + rows[0].replace("7200", "9" * 400)
    with pytest.raises(TraceError, match="row 2, column ElapsedRaw: must be a finite number"):
        read_sources([written(endless)], format="sacct", timezone="Europe/Berlin")
    # times that are absolute have one reading, whatever was suspended
    epochs = HEADER + "9|gpu|COMPLETED|1729987800|1729989000|1729996200|3600|gres/gpu=1\n"
    told = read_sources([written(epochs)], format="sacct", timezone="Europe/Berlin").trace
    assert told.start_s.tolist() == [1729989000.0]
