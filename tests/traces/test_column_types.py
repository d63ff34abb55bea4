from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.column_types import Clock, read_instant, read_times
from tests.shared import refused

HERE = Place("file")
PACIFIC = "America/Los_Angeles"


def seconds(values, timezone=None, strict=False):
    times, notes = read_times(pl.Series("t", values), HERE, Clock(timezone, strict))
    return (times.dt.timestamp("us") / 1e6).to_list(), notes


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("1970-01-02T00:00:00Z", 86400.0),
        ("1970-01-02T00:00:00+00:00", 86400.0),
        ("1970-01-02 08:00:00+08:00", 86400.0),
        ("1970-01-01T17:00:00-0700", 86400.0),
        ("1970-01-02T05:30:00 +0530", 86400.0),
        ("1970-01-02 08:00+08", 86400.0),
        ("1970-01-02 00:00:00.25 UTC", 86400.25),
        ("1970-01-02T00:00:00.1234569Z", 86400.123456),
        ("86400", 86400.0),
        ("86400.0000014", 86400.000001),
        ("-1.5", -1.5),
        # ISO without dashes and colons
        ("19700102T000000Z", 86400.0),
        ("19700102T0000Z", 86400.0),
        ("19700102T080000+0800", 86400.0),
        ("19700102T000000.25Z", 86400.25),
        ("1970-01-02T14:00:00+14:00", 86400.0),
    ],
)
def test_one_instant_in_many_spellings(text, expected_s):
    assert seconds([text]) == ([expected_s], ())
    assert read_instant(text, HERE) == expected_s


@pytest.mark.parametrize("text", ["1970-01-02", "1970-01-02 00:00", "1970-01-02T00:00:00", "1970-01-02 00:00:00.000"])
def test_without_an_offset_it_is_utc_and_noted(text):
    assert seconds([text]) == ([86400.0], ("t: times without an offset read as UTC",))
    assert read_instant(text, HERE) == 86400.0


@pytest.mark.parametrize(
    "text",
    ["soon", "2017-02-30", "2017-02-03T24:01", "2017-13-01", "02/03/2017", "2017-02-03T10:00.5", "20170203T10"],
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(TraceError, match=f"^file, row index 1, column t: must be a time, got '{text}'; write ISO-8601"):
        seconds(["2017-02-03", text])


@pytest.mark.parametrize("values", [["1700000000000"], [1.7e12], [-1e11], [1_700_000_000_000_000]])
def test_milliseconds_in_place_of_seconds_are_told(values):
    refused(TraceError, r"must lie in the years 1900 to 2199, got .* divide milliseconds by 1,000", seconds, values)


@pytest.mark.parametrize(
    "value",
    ["0001-01-01T00:00:00+14:00", "1899-12-31T23:59:59Z", "2200-01-01", datetime(1, 1, 1), datetime(9999, 12, 31)],
)
@pytest.mark.parametrize("zone", [None, PACIFIC])
def test_years_that_no_trace_has_are_refused(value, zone):
    refused(TraceError, "must lie in the years 1900 to 2199", seconds, [value], zone)


def test_strict_wants_offsets_or_a_zone():
    with pytest.raises(TraceError, match="row index 0, column t: has no offset, got '2017-01-01'; name the zone"):
        seconds(["2017-01-01"], strict=True)
    assert seconds(["1970-01-01T08:00"], timezone="Asia/Shanghai", strict=True)[0] == [0.0]


def test_a_zone_reads_the_wall_clock_there():
    # Pacific daylight time, UTC-7, until 2017-11-05; then UTC-8.
    read, notes = seconds(["2017-11-04 12:00:00", "2017-11-06 12:00:00"], timezone=PACIFIC)
    assert read == [
        datetime(2017, 11, 4, 19, tzinfo=UTC).timestamp(),
        datetime(2017, 11, 6, 20, tzinfo=UTC).timestamp(),
    ]
    assert notes == (f"t: times without an offset read as {PACIFIC}",)


def test_an_hour_that_occurs_twice_is_the_earlier_one_and_counted():
    read, notes = seconds(["2017-11-05 01:30:00", "2017-11-05 03:30:00"], timezone=PACIFIC)
    assert read[0] == datetime(2017, 11, 5, 8, 30, tzinfo=UTC).timestamp()
    assert notes[1:] == (f"t: 1 occur twice in {PACIFIC}, read as the earlier instant",)


def test_an_hour_that_does_not_exist_is_shifted_forward_and_counted():
    read, notes = seconds(["2017-03-12 02:30:00", None, "2017-03-12 03:30:00"], timezone=PACIFIC)
    assert read == [datetime(2017, 3, 12, 10, 30, tzinfo=UTC).timestamp(), None, read[0]]
    assert notes[1:] == (f"t: 1 do not exist in {PACIFIC}, shifted forward",)


def test_a_zone_does_not_move_absolute_times():
    for values in (["1970-01-02T00:00:00Z"], ["86400"], [86400], [datetime(1970, 1, 2, tzinfo=UTC)]):
        assert seconds(values, timezone=PACIFIC) == (
            [86400.0],
            (f"t: times are absolute, {PACIFIC} was not applied",),
        )


def test_timestamps_of_other_zones_are_converted():
    values = pl.Series("t", [datetime(1970, 1, 2, tzinfo=UTC)]).dt.convert_time_zone("Asia/Shanghai")
    times, notes = read_times(values, HERE, Clock())
    assert times.to_list() == [datetime(1970, 1, 2, tzinfo=UTC)]
    assert notes == ("t: converted from Asia/Shanghai to UTC",)


@given(
    st.lists(st.datetimes(datetime(1900, 1, 2), datetime(2199, 12, 31)), min_size=1, max_size=20),
    st.integers(-14 * 60, 14 * 60),
)
def test_what_python_writes_is_read_back(times, offset_min):
    zone = timezone(timedelta(minutes=offset_min))
    aware = [time.replace(tzinfo=zone) for time in times]
    read, _ = read_times(pl.Series("t", [time.isoformat() for time in aware]), HERE, Clock())
    assert read.to_list() == aware


@pytest.mark.parametrize("values", [["20171106"], ["20171106", None, "20171107 "], ["2017"], ["2017", "20180101"]])
def test_numbers_that_may_all_be_dates_are_refused(values):
    refused(TraceError, r"may be a date or seconds, in every row, got '2017.*dashes .*decimal point", seconds, values)


def test_days_of_a_spreadsheet_are_told_and_refused_under_strict():
    times, (note,) = seconds(["43045.5", None, "43046"])
    assert times == [43045.5, None, 43046.0]
    assert "t: read as seconds from the epoch, though all may be days as spreadsheets count" in note
    refused(TraceError, "may be a day as spreadsheets count", seconds, ["43045.5"], strict=True)
    assert seconds(["43045.5", "12"])[1] == ()


@pytest.mark.parametrize("offset", ["+99:99", "+24:00", "-15", "+1401", "+05:60", "+0575"])
@pytest.mark.parametrize("time", ["2017-11-06T00:00:00", "20171106T000000"])
def test_offsets_that_no_clock_has_are_refused(time, offset):
    refused(TraceError, "has an offset beyond 14 hours", seconds, [f"{time}{offset}"])


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("zone", [None, PACIFIC, "UTC"])
def test_timestamps_that_python_has_no_year_for_are_refused(unit, zone):
    for value in (-(2**62), 2**62):
        values = pl.Series("t", [0, value]).cast(pl.Datetime(unit))
        if zone == "UTC":
            values = values.dt.replace_time_zone("UTC")
        with pytest.raises(TraceError, match=f"row index 1, column t: must lie in the years .*, got {value};"):
            read_times(values, HERE, Clock(None if zone == "UTC" else zone))
    days = pl.Series("t", [0, 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    refused(TraceError, "row index 1, column t: must lie in the years", read_times, days, HERE, Clock())
