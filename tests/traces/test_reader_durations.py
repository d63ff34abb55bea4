import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_trace
from tests.shared import refused

HEADER = "job_id,pool,submit_time,duration,gpus,start_time,end_time\n"


def rows(durations, span_s=7200):
    return "".join(f"{n},p,{n}0.0,{duration},1,{n}0.0,{n * 10 + span_s}.0\n" for n, duration in enumerate(durations))


@pytest.mark.parametrize("durations", [[7200] * 4, [7201.5] * 4, [7270] * 4, [3600, 1800, 7200, 12.5], [1]])
def test_durations_that_fit_and_shorter_ones_are_taken(csv_file, durations):
    trace = read_trace(csv_file(rows(durations), header=HEADER), strict=True)
    assert trace.duration_s.tolist() == durations
    assert trace.notes == ()


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (60, "is 60 times .* divide by 60$"),
        (1000, "is 1,000 times .* divide by 1000$"),
        (3600, "is 3,600 times"),
        (1 / 60, "is 1/60 times .* multiply by 60$"),
        (1 / 3600, "is 1/3,600 times"),
        (1 / 1000, "is 1/1,000 times"),
    ],
)
def test_a_column_in_another_unit_is_refused_with_its_factor(csv_file, factor, told):
    path = csv_file(rows([7200 * factor] * 10 + [7200]), header=HEADER)
    assert "in 10 of 11 jobs (job 0: " in refused(TraceError, told, read_trace, path)


def test_a_few_that_contradict_are_counted_and_refused_under_strict(csv_file):
    path = csv_file(rows([7200] * 7 + [720_000] * 2 + [7200 / 60]), header=HEADER)
    told = (
        "duration: contradicts end_time - start_time in 3 of 10 jobs, by a factor of 100 in the middle "
        "(job 7: 720,000 s where 7,200 s lie between)"
    )
    trace = read_trace(path)
    assert trace.notes == (told,)
    assert trace.duration_s[7] == 720_000
    with pytest.raises(TraceError, match=r"contradicts .* in 3 of 10 jobs.*; correct it or read without --strict"):
        read_trace(path, strict=True)


def test_a_single_job_that_is_far_off_is_named(csv_file):
    (note,) = read_trace(csv_file(rows([99_999], span_s=10), header=HEADER)).notes
    assert "in 1 of 1 jobs, by a factor of 9,999.9" in note
    (note,) = read_trace(csv_file(rows([5], span_s=0), header=HEADER)).notes
    assert "by a factor of inf" in note


def test_elastic_jobs_and_unknown_ends_are_left_alone(csv_file):
    elastic = "1,p,0.0,72000,8,0.0,7200.0,0\n"
    assert read_trace(csv_file(elastic, header=HEADER.replace("\n", ",min_gpus\n"))).notes == ()
    assert read_trace(csv_file("1,p,0.0,72000,8,0.0,\n2,p,0.0,72000,8,,\n", header=HEADER)).notes == ()
    assert read_trace(csv_file("1,p,0.0,72000,8,0.0\n", header=HEADER.replace(",end_time", ""))).notes == ()


def test_a_hundredth_or_two_seconds_more_is_rounding(csv_file):
    for fits, beyond, span_s in ((7272, 7273, 7200), (12, 12.5, 10)):
        assert read_trace(csv_file(rows([fits], span_s), header=HEADER)).notes == ()
        assert "contradicts" in read_trace(csv_file(rows([beyond], span_s), header=HEADER)).notes[0]
