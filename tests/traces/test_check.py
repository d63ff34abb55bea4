import re

import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace
from tests.shared import refused

ROW = "1,p,0,1,1\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,p,0,0,1", "row 3, column duration: must be > 0, got 0.0"),
        ("2,p,0,-4,1", "row 3, column duration: must be > 0, got -4.0"),
        ("2,p,0,nan,1", "row 3, column duration: must be a finite number, got nan"),
        ("2,p,0,inf,1", "row 3, column duration: must be a finite number, got inf"),
        ("2,p,0,long,1", "row 3, column duration: must be a number, got 'long'"),
        ("2,p,0,1,-3", "row 3, column gpus: must be >= 0, got -3"),
        ("2,p,0,1,-0.5", "row 3, column gpus: must be >= 0, got -1"),
        ("2,p,0,1,many", "row 3, column gpus: must be a number, got 'many'"),
        ("2,p,0,1,1e300", "row 3, column gpus: must be a finite whole number, got '1e300'"),
        ("1,p,0,1,1", "row 3, column job_id: must be unique, got '1'"),
        (",p,0,1,1", "row 3, column job_id: a value is needed, got nothing"),
        ("2,,0,1,1", "row 3, column pool: a value is needed, got nothing"),
        ("2,  ,0,1,1", "row 3, column pool: must not be empty, got '  '"),
        ("2,p,,1,1", "row 3, column submit_time: a value is needed, got nothing"),
        ("2,p,nan,1,1", "row 3, column submit_time: must be seconds from the epoch, got 'nan'"),
        ("2,p,1e20,1,1", "row 3, column submit_time: must lie in the years 1900 to 2199, got '1e20'"),
        ("2,p,0,1e300,1", "row 3, column duration: must be <= 3155760000, got 1e+300"),
        ("2,p,0,1", "row 3: 4 fields where the header has 5"),
        ("2,p,0,1,1,1", "row 3: 6 fields where the header has 5"),
    ],
)
def test_a_bad_row_is_named_as_a_person_finds_it(csv_file, row, message):
    path = csv_file(ROW + row + "\n3,p,0,1,1\n")
    assert refused(TraceError, "", read_trace, path).startswith(f"{path}, {message}; ")


def test_other_bad_rows_are_counted(csv_file):
    with pytest.raises(TraceError, match=r"row 3, column gpus: must be >= 0, got -2 \(2 more rows like it\);"):
        read_trace(csv_file(ROW + "2,p,0,1,-2\n3,p,0,1,-1\n4,p,0,1,1\n5,p,0,1,-2\n"))


def test_lines_are_counted_over_quoted_line_breaks_and_blank_lines(csv_file):
    refused(TraceError, "row 6, column duration", read_trace, csv_file('1,"p\nq",0,1,1\n\n2,p,0,1,1\n3,p,0,-1,1\n'))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("min_gpus", "5", "column min_gpus: must not be more than gpus, got 5"),
        ("min_gpus", "-1", "column min_gpus: must be >= 0, got -1"),
        ("steps", "1.5", "column steps: must be a whole number, got '1.5'"),
        ("end_time", "99", "column end_time: must not lie before submit_time, got 1970-01-01 00:01:39"),
        ("start_time", "99", "column start_time: must not lie before submit_time"),
        ("preemptible", "maybe", "column preemptible: must be true or false, got 'maybe'"),
        ("weight", "-1", "column weight: must be >= 0, got -1.0"),
        ("weight", "nan", "column weight: must be a finite number, got nan"),
        ("cores", "-1", "column cores: must be >= 0, got -1.0"),
        ("mem_gb", "64G", "column mem_gb: must be a number, got '64G'"),
        ("time_limit_s", "0", "column time_limit_s: must be > 0, got 0.0"),
        ("priority", "high", "column priority: must be a number, got 'high'"),
        ("nodes", "gpu[01-", "column nodes: must be a list of nodes such as gpu[01-04,7], got 'gpu[01-'"),
        ("known_time", "soon", "column known_time: must be a time, got 'soon'"),
    ],
)
def test_optional_columns_are_checked_where_filled(csv_file, column, value, message):
    header = f"job_id,pool,submit_time,duration,gpus,{column}\n"
    empty = read_trace(csv_file("1,p,100,1,4,\n", header=header))
    assert empty.jobs[column].to_list() == [None]
    with pytest.raises(TraceError, match=re.escape(f"row 3, {message}")):
        read_trace(csv_file(f"1,p,100,1,4,\n2,p,100,1,4,{value}\n", header=header))


def test_a_run_time_is_missing_only_where_the_job_has_not_ended(csv_file):
    header = "job_id,pool,submit_time,duration,gpus,start_time,end_time,known_time\n"
    read = read_trace(csv_file("1,p,0,,1,,,\n2,p,0,,1,5,,\n3,p,0,7,0,5,12,12\n", header=header))
    assert read.notes == (
        "duration: empty in 2 of 3 jobs, which had not ended (1 running, 1 waiting): they count as arrivals, replays "
        "leave them out",
        "gpus: 0 in 1 of 3 jobs: forecasts of GPUs and replays leave them out",
    )
    with pytest.raises(TraceError, match="row 3, column duration: a value is needed where end_time has one"):
        read_trace(csv_file("1,p,0,,1,,,\n2,p,0,,1,5,9,\n", header=header))
    with pytest.raises(TraceError, match="row 2, column known_time: must not lie before end_time"):
        read_trace(csv_file("1,p,0,7,1,5,12,11\n", header=header))


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("False", False), ("1", True), ("0", False), ("YES", True), ("no", False)]
)
def test_flags_as_people_write_them(csv_file, text, flag):
    header = "job_id,pool,submit_time,duration,gpus,preemptible\n"
    assert read_trace(csv_file(f"1,p,0,1,1,{text}\n", header=header)).jobs["preemptible"].to_list() == [flag]
