"""The seal of Parquet files: what changed is found, what others save or edit is read."""

import io
import random
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.files import read_file
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.table_files import (
    SEAL_BEGINS,
    SEAL_BYTES,
    SEAL_ENDS,
    parquet_metadata,
    read_parquet,
    write_parquet,
    write_trace,
)
from tests.shared import refused

TABLE = pl.DataFrame({"name": ["a", None, "ü"], "seconds": [1.5, -0.0, None], "of": [["x"], [], None]})


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(TABLE, path, {"about": "this"})
    return path


def refuses(path) -> bool:
    try:
        read_parquet(path)
    except TraceError:
        return True
    return False


def test_a_table_and_its_texts_come_back_and_the_bytes_are_the_same(sealed, tmp_path):
    assert read_parquet(sealed).equals(TABLE)
    assert parquet_metadata(sealed)["about"] == "this"
    write_parquet(TABLE, tmp_path / "again.parquet", {"about": "this"})
    assert sealed.read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_any_one_bit_that_flips_is_found(sealed):
    data = sealed.read_bytes()
    seal = data.index(SEAL_BEGINS)
    for at in range(0, len(data), 3):
        sealed.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        refused = refuses(sealed)
        assert refused, f"byte {at} of {len(data)}, the seal is at {seal}"


def test_damage_to_the_seal_and_to_the_table_does_not_pass_for_a_file_without_a_seal(sealed):
    data = sealed.read_bytes()
    for seed in range(100):
        rng = random.Random(seed)
        spoilt = bytearray(data)
        at = data.index(SEAL_BEGINS)
        for hit in rng.sample(range(at, at + SEAL_BYTES), rng.randint(1, 20)):
            spoilt[hit] ^= 1 + rng.randrange(255)
        spoilt[rng.randrange(4, at)] ^= 1
        sealed.write_bytes(spoilt)
        assert refuses(sealed)


def test_a_seal_that_was_moved_is_refused(sealed):
    data = sealed.read_bytes()
    seal = data[(at := data.index(SEAL_BEGINS)) : at + SEAL_BYTES]
    for moved in (data.replace(seal, b"") + seal, data.replace(seal, seal + seal), data.replace(seal, b"\0" + seal)):
        sealed.write_bytes(moved)
        assert refuses(sealed)


def test_any_other_reader_reads_it(sealed):
    assert pl.read_parquet(sealed).equals(TABLE)
    assert pl.scan_parquet(sealed).select("seconds").collect().equals(TABLE.select("seconds"))
    assert pyarrow.parquet.read_table(sealed)["name"].to_pylist() == TABLE["name"].to_list()


def test_whoever_edits_it_is_not_locked_out(sealed, tmp_path):
    edited = tmp_path / "edited.parquet"
    read_parquet(sealed).head(1).write_parquet(edited)
    assert read_parquet(edited).equals(TABLE.head(1))
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(sealed).slice(1), edited)
    assert read_parquet(edited)["name"].to_list() == [None, "ü"]
    pyarrow.parquet.read_table(sealed).to_pandas().to_parquet(edited)
    assert read_parquet(edited).height == 3


def test_a_file_without_a_seal_that_panics_or_is_cut_is_refused(tmp_path):
    path = tmp_path / "plain.parquet"
    TABLE.write_parquet(path)
    data = path.read_bytes()
    for end in range(1, len(data), 7):
        path.write_bytes(data[:end])
        assert refuses(path)
    assert SEAL_ENDS not in data
    assert read_file(path).data


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('",\n\r\t;'), min_size=1, max_size=8)
NAMES = TEXT.filter(str.strip)
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
JOB = st.fixed_dictionaries(
    {
        "pool": NAMES,
        "submit_time": TIMES,
        "duration": st.floats(1e-6, 1e9) | st.none(),
        "gpus": st.integers(0, 2**40),
        "user": TEXT | st.none(),
        "weight": st.floats(0, 1e300) | st.none(),
        "preemptible": st.booleans() | st.none(),
        **{name: TEXT | st.none() for name in ("account", "qos", "partition")},
        **{name: st.floats(0, 1e9) | st.none() for name in ("cores", "mem_gb")},
        "priority": st.floats(-1e9, 1e10) | st.none(),
        "nodes": st.sampled_from(["n1", "gpu[01-04,7],login1", None]),
        "known_time": st.datetimes(datetime(2101, 1, 1), datetime(2190, 1, 1), timezones=st.just(UTC)) | st.none(),
        "extra": TEXT | st.none(),
    }
)
SCHEMA = {"weight": pl.Float64, "preemptible": pl.Boolean, "user": pl.String, "extra": pl.String}


def parquet(**columns) -> bytes:
    base = {
        "job_id": ["1", "2"],
        "pool": ["p", "p"],
        "submit_time": [datetime(2017, 1, 1, tzinfo=UTC)] * 2,
        "duration": [1.0, 2.0],
        "gpus": [1, 1],
    }
    file = io.BytesIO()
    pl.DataFrame(base | columns).write_parquet(file)
    return file.getvalue()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=st.lists(JOB, min_size=1, max_size=8), ids=st.lists(NAMES, min_size=8, max_size=8, unique=True))
def test_what_is_written_is_read_back(tmp_path, jobs, ids):
    rows = [{"job_id": name, **job} for name, job in zip(ids, jobs, strict=False)]
    trace = Trace.from_frame(pl.DataFrame(rows, schema_overrides=SCHEMA), name="t")
    for path in (tmp_path / "jobs.csv", tmp_path / "jobs.parquet"):
        write_trace(trace, path)
        read = read_trace(path)
        assert read.jobs.equals(trace.jobs)
        assert read.notes == trace.notes
        first = path.read_bytes()
        write_trace(read, path)
        assert path.read_bytes() == first
    assert {file.name for file in tmp_path.iterdir()} == {"jobs.csv", "jobs.parquet"}


def test_csv_as_a_person_sees_it(tmp_path):
    frame = {"job_id": ["007"], "pool": ["p"], "submit_time": [1.5], "duration": [60], "gpus": [2], "user": [None]}
    write_trace(Trace.from_frame(pl.DataFrame(frame), name="t"), tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == (
        "job_id,pool,submit_time,duration,gpus,user\n007,p,1970-01-01T00:00:01.500000Z,60.0,2,\n"
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cores_may_stand_under_their_former_name(make_trace, tmp_path, suffix):
    path = tmp_path / f"jobs.{suffix}"
    made = make_trace(("p", 0, 1, 1), ("p", 1, 1, 0), cores=[1.5, None])
    write_trace(replace(made, jobs=made.jobs.rename({"cores": "cpus"})), path)
    assert read_trace(path).jobs.equals(made.jobs)


def test_an_unknown_suffix_is_refused_and_a_missing_folder_made(make_trace, tmp_path):
    trace = make_trace(("p", 0, 1, 1))
    with pytest.raises(ConfigError, match=r"jobs\.xlsx: the suffix must be \.csv or \.parquet"):
        write_trace(trace, tmp_path / "jobs.xlsx")
    (tmp_path / "file").write_text("")
    refused(ConfigError, r"jobs\.csv: cannot be written \(", write_trace, trace, tmp_path / "file" / "jobs.csv")
    write_trace(trace, tmp_path / "none" / "jobs.csv")
    assert (tmp_path / "none" / "jobs.csv").is_file()


def test_a_failed_write_leaves_the_old_file(make_trace, tmp_path, monkeypatch, written):
    path = written("jobs.csv", "old")

    def half(frame, target, **_):
        Path(target).write_text("hal")
        raise OSError(28, "No space left on device")

    trace = make_trace(("p", 0, 1, 1))
    monkeypatch.setattr(pl.DataFrame, "write_csv", half)
    refused(ConfigError, r"jobs\.csv: no space left on the device; free some", write_trace, trace, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "of no known format: neither CSV text nor Parquet"),
        (b"job_id,pool,submit_time,duration,gpus\n", "no jobs, only a header"),
        (b"job_id,pool,submit_time,duration,gpus", "no jobs, only a header"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "neither CSV text nor Parquet"),
        (bytes(range(128, 256)) * 9, "neither CSV text nor Parquet"),
        ("job_id,pool".encode("utf-16"), "of no known format: it is text in UTF-16; save it in UTF-8"),
        (parquet()[:-9], "not a Parquet file that can be read"),
        (b"PAR1", "not a Parquet file that can be read"),
    ],
)
def test_what_is_no_trace_gets_one_clear_line(written, data, message):
    path = written("jobs.csv", data)
    assert refused(TraceError, message, read_trace, path).startswith(str(path))


def test_a_byte_order_mark_carriage_returns_and_spaced_headers_are_fine(written):
    trace = read_trace(written("jobs.csv", b"\xef\xbb\xbfjob_id, pool,submit_time,duration,gpus\r\n007,p,5,1,1\r\n"))
    assert trace.jobs.rows() == [("007", "p", datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), 1.0, 1)]
    assert trace.name == "jobs"
    assert trace.source.rows == 1


def test_the_slow_way_through_quotes_reads_the_same(csv_file):
    rows = ["1,p,0,1,1", "2,q,5,2.5,4"]
    plain = read_trace(csv_file("\n".join(rows)))
    quoted = read_trace(csv_file('"1","p",0,1,1\n\n' + rows[1] + "\n"))
    assert quoted.jobs.equals(plain.jobs)


def test_parquet_of_other_number_types_is_brought_to_ours(tmp_path):
    columns = {
        "job_id": [7, 8],
        "gpus": [1.0, 2.5],
        "duration": [3, 4],
        "pool": pl.Series(["p", "q"]).cast(pl.Categorical),
    }
    (tmp_path / "jobs.parquet").write_bytes(parquet(**columns))
    trace = read_trace(tmp_path / "jobs.parquet")
    assert trace.jobs["job_id"].to_list() == ["7", "8"]
    assert trace.gpus.tolist() == [1, 3]
    assert trace.jobs.schema["duration"] == pl.Float64
    assert trace.pools == ["p", "q"]


def test_parquet_times_at_an_offset_without_a_name(tmp_path):
    table = pyarrow.Table.from_pylist([{"job_id": "a", "pool": "p", "duration": 1.0, "gpus": 1}])
    at = pyarrow.array([0], pyarrow.timestamp("ns", "+05:30"))
    table = table.append_column("submit_time", at).append_column("seen", at)
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    trace = read_trace(tmp_path / "a.parquet")
    assert trace.submit_s.tolist() == [0.0]
    write_trace(trace, tmp_path / "a.csv")
    assert read_trace(tmp_path / "a.csv").jobs["seen"].to_list() == ["1970-01-01T00:00:00.000000000+0000"]


def test_what_csv_cannot_hold_is_refused(make_trace, tmp_path):
    made = make_trace(("p", 0, 1, 1))
    trace = replace(made, jobs=made.jobs.with_columns(extra=pl.Series([["x"]])))
    with pytest.raises(ConfigError, match=r"jobs\.csv: CSV .* nested data; name a file in \.parquet"):
        write_trace(trace, tmp_path / "jobs.csv")


def test_parquet_days_begin_at_midnight(written):
    path = written("jobs.parquet", parquet(submit_time=[date(1970, 1, 2)] * 2))
    assert read_trace(path).submit_s.tolist() == [86400.0] * 2
    assert read_trace(path).notes == ("submit_time: times without an offset read as UTC",)
    assert read_trace(path, timezone="Asia/Shanghai").submit_s.tolist() == [16 * 3600.0] * 2


def test_naive_parquet_times(written):
    path = written("jobs.parquet", parquet(submit_time=[datetime(1970, 1, 2, 8)] * 2))
    assert read_trace(path).submit_s.tolist() == [86400.0 + 8 * 3600] * 2
    assert read_trace(path).notes == ("submit_time: times without an offset read as UTC",)
    assert read_trace(path, timezone="Asia/Shanghai").submit_s.tolist() == [86400.0] * 2
    refused(TraceError, "row index 0, column submit_time: has no offset", read_trace, path, strict=True)
