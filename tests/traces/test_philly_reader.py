import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace

HEADER = "timestamp,duration,num_gpus,cluster\n"


def test_rows_become_jobs_named_by_their_number(csv_file):
    rows = [f"2017-09-04 10:30:{59 - row},{row + 1}.0,{row + 1},vc{row % 2}" for row in range(11)]
    trace = read_trace(csv_file("\n".join(rows), header=HEADER))
    assert trace.jobs["job_id"].to_list() == [f"{row:02d}" for row in reversed(range(11))]
    assert trace.jobs.columns == ["job_id", "pool", "submit_time", "duration", "gpus"]
    assert trace.jobs.rows()[-1][1::2] == ("vc0", 1.0)
    assert trace.pools == ["vc0", "vc1"]
    assert trace.notes == ("submit_time: times without an offset read as UTC",)
    assert trace.dropped == {}


def test_rows_that_are_no_jobs_are_counted_by_reason_and_keep_their_numbers(csv_file):
    rows = ["0,1,a", ",1,a", "-5,0,a", "5,0,a", "5,,a", "5,2,a"]
    path = csv_file("\n".join(f"2017-09-04 10:30:41,{row}" for row in rows), header=HEADER)
    trace = read_trace(path)
    assert trace.jobs["job_id"].to_list() == ["5"]
    assert trace.dropped == {"duration missing or <= 0": 3, "no GPUs": 2}
    assert trace.source.rows == 6
    with pytest.raises(TraceError, match=r"row 2, column duration: must be > 0, got 0\.0 \(2 more rows like it\)"):
        read_trace(path, strict=True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2017-09-04,5,1,", "row 4, column cluster: a value is needed"),
        (",5,1,a", "row 4, column timestamp: a value is needed"),
        ("None,5,1,a", "row 4, column timestamp: must be a time, got 'None'"),
        ("2017-09-04,x,1,a", "row 4, column duration: must be a number, got 'x'"),
        ("2017-09-04,nan,1,a", "row 4, column duration: must be a finite number"),
        ("2017-09-04,5,two,a", "row 4, column num_gpus: must be a number, got 'two'"),
    ],
)
def test_rows_that_cannot_be_read_are_errors_in_the_files_own_words(csv_file, row, message):
    text = f"2017-09-04,0,1,a\n2017-09-04,5,1,a\n{row}\n"
    with pytest.raises(TraceError, match=message):
        read_trace(csv_file(text, header=HEADER))


def test_nothing_but_rows_that_are_no_jobs(csv_file):
    with pytest.raises(TraceError, match=r"none of its 2 rows is a job \(1 duration missing or <= 0, 1 no GPUs\)"):
        read_trace(csv_file("2017-09-04,0,1,a\n2017-09-04,1,0,a\n", header=HEADER))
    with pytest.raises(TraceError, match="no jobs, only a header"):
        read_trace(csv_file("", header=HEADER))
    with pytest.raises(TraceError, match="column cluster missing, found timestamp, duration, num_gpus"):
        read_trace(csv_file("2017-09-04,0,1\n", header="timestamp,duration,num_gpus\n"), format="philly")


def test_a_zone_moves_the_wall_clock(csv_file):
    trace = read_trace(csv_file("2017-09-04 10:00:00,5,1,a\n", header=HEADER), timezone="America/Los_Angeles")
    assert f"{trace.jobs['submit_time'][0]:%Y-%m-%d %H:%M}" == "2017-09-04 17:00"


def test_the_trace_itself(philly):
    trace = read_trace(philly / "philly_jobs.csv", strict=True)
    # Counts of the data's own README.
    assert len(trace) == 71_570
    assert len(trace.pools) == 14
    assert (trace.jobs["pool"].value_counts()["count"] >= 100).sum() == 11
    assert trace.jobs["job_id"][0] == "00000"
    assert trace.dropped == {}
    jobs, duration_s = trace.to_jobs()
    assert (len(jobs), len(duration_s)) == (71_570, 71_570)
