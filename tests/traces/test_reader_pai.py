"""PAI; expectations are by hand from the fixtures."""

from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources
from tests.shared import refused

FOLDER = Path(__file__).with_name("fixtures") / "pai"
TABLES = sorted((FOLDER / "tables").iterdir())


def test_tasks_are_summed_up_by_job():
    trace = read_sources(TABLES, format="pai").trace
    shown = ["job_id", "pool", "duration", "gpus", "user", "tag", "gpu_type", "workload", "state"]
    # j1: four workers of half a T4 and a quarter of a P100: 2.25 GPUs, from the first start at 1015 s to 5000 s.
    assert trace.jobs.select(shown).rows() == [
        ("j1", "T4", 3985.0, 3, "u1", "g1", "T4", "bert", "Terminated"),
        ("j2", "MISC", 350.0, 2, "u2", "g2", "MISC", None, "Failed"),
        ("j7", "V100M32", 900.0, 2, "u4", "g1", "V100M32", "ctr", "Terminated"),
    ]
    assert trace.submit_s.tolist() == [1000.0, 1100.0, 1600.0]
    assert trace.start_s.tolist() == [1015.0, 1150.0, 1700.0]
    assert trace.jobs["cores"].to_list() == [36.0, 6.0, 6.0]
    assert trace.source.rows == 7
    assert trace.dropped == {
        "no start_time in the table of jobs": 1,
        "no task asks for GPUs": 1,
        "no task has started": 1,
        "a task has not ended": 1,
    }
    assert trace.notes[0] == "gpus: fractions rounded up in 1 of 3 rows"
    assert trace.notes[-1] == "jobs whose tasks alone are told, left aside: 1"


def test_headers_and_a_missing_table_of_groups_do_no_harm(written):
    folder = FOLDER / "with_header"
    header = written("pai_job_table.header", "job_name,inst_id,user,status,start_time,end_time\n")
    trace = read_sources([*sorted(folder.iterdir()), header], format="pai").trace
    assert trace.jobs.select("job_id", "gpus", "duration").rows() == [("a", 1, 90.0), ("b", 3, 100.0)]
    assert "tag" not in trace.jobs.columns


@pytest.mark.parametrize("of_all", [True, False])
def test_quotes_around_fields_are_no_part_of_them(tmp_path, of_all):
    """As table writers put them around all fields, or around what is no number."""
    folder, files = FOLDER / "with_header", []
    for file in sorted(folder.iterdir()):
        rows = [line.split(",") for line in file.read_text().splitlines()]
        said = [[f'"{field}"' if of_all or not field[:1].isdigit() else field for field in row] for row in rows]
        files.append(tmp_path / file.name)
        files[-1].write_text("\n".join(map(",".join, said)) + "\n")
    plain = read_sources(sorted(folder.iterdir()), format="pai").trace
    assert read_sources(files, format="pai").trace.jobs.equals(plain.jobs)
    files[0].write_text(files[0].read_text().replace('"a"', '"a,b"'))
    refused(TraceError, r"jobs\.csv, row 2: 7 fields where 6 are due", read_sources, files, format="pai")


def test_what_is_missing_or_wrong_is_told(written):
    jobs, tasks = FOLDER / "with_header" / "jobs.csv", FOLDER / "with_header" / "tasks.csv"
    refused(ConfigError, "pai needs pai_task_table too", read_sources, [jobs], format="pai")
    refused(ConfigError, "are both pai_job_table; give it once", read_sources, [jobs, jobs, tasks], format="pai")
    other = written("other.csv", "a,b\n1,2\n")
    refused(ConfigError, "is none of the tables of pai", read_sources, [jobs, tasks, other], format="pai")
    bad = written("tasks.csv", tasks.read_text().replace("260.0", "later"))
    with pytest.raises(TraceError, match="row 3, column end_time: must be a number, got 'later'"):
        read_sources([jobs, bad], format="pai")
    short = written("short.csv", tasks.read_text() + "c,worker\n")
    refused(TraceError, "row 4: 2 fields where 10 are due", read_sources, [jobs, short], format="pai")
    refused(TraceError, "row 5, column start_time: a value is needed", read_sources, TABLES, format="pai", strict=True)


@pytest.mark.parametrize(
    ("old", "new", "gpus"),
    [
        ("j2,tensorflow,2,", "j2,tensorflow,,", 1),  # no number of instances: one
        ("300.0,10.0,100.0,MISC", "300.0,10.0,33.3,MISC", 1),  # 2 x 0.333
        ("j2,tensorflow,2,", "j2,tensorflow,3,", 3),
    ],
)
def test_the_width_of_a_job(written, old, new, gpus):
    jobs, tasks = (FOLDER / "tables" / f"pai_{name}_table.csv" for name in ("job", "task"))
    trace = read_sources([jobs, written("tasks.csv", tasks.read_text().replace(old, new))], format="pai").trace
    assert dict(trace.jobs.select("job_id", "gpus").iter_rows())["j2"] == gpus


@pytest.mark.parametrize("value", ["nan", "inf", "-100.0"])
def test_a_task_whose_gpus_are_no_number_is_named(written, value):
    jobs, tasks = (FOLDER / "tables" / f"pai_{name}_table.csv" for name in ("job", "task"))
    changed = written("tasks.csv", tasks.read_text().replace("50.0,T4", f"{value},T4"))
    with pytest.raises(TraceError, match=r"tasks.csv, row 2, column plan_gpu: must be a finite number >= 0"):
        read_sources([jobs, changed], format="pai")
