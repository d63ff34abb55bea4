"""Files read block by block say the same as files read whole."""

import hashlib

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.column_types import lean_counts, lean_numbers, lean_times
from jobcast.traces.csv_table import read_csv, read_csv_by_blocks, stacked
from jobcast.traces.files import read_file
from tests.shared import refused

FIELD = st.text(st.sampled_from('ab,"\n é0'), max_size=5)
ROWS = st.lists(st.tuples(FIELD, FIELD), max_size=12)


def quoted(field: str) -> str:
    special = any(mark in field for mark in ',"\n\r')
    return '"' + field.replace('"', '""') + '"' if special else field


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, block_bytes=st.integers(1, 60), end=st.sampled_from(["", "\n", "\n\n"]), bom=st.booleans())
def test_blocks_of_any_size_hold_the_same_rows_on_the_same_lines(tmp_path, rows, block_bytes, end, bom):
    text = "\n".join(["x,y", *(f"{quoted(x)},{quoted(y)}" for x, y in rows)]) + end
    path = tmp_path / "t.csv"
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    whole, place = read_csv(read_file(path))
    table = read_csv_by_blocks(path, lambda frame: frame, block_bytes)
    assert table.frame.rows() == whole.rows()
    assert [table.place.row(i) for i in range(whole.height)] == [place.row(i) for i in range(whole.height)]
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("block_bytes", [1, 7, 20, 1000])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b\n1,2\n3,4\n5\n7,8\n", "row 4: 1 fields where the header has 2"),
        (b"a,b\n1,2\n\n3,4,5\n", "row 4: 3 fields where the header has 2"),
        (b"a,b\n1,2\n3,\xff\n", "row 3: not UTF-8 text"),
        (b"a,b\n1,2\n3,\0\n", "row 3: holds binary data"),
        (b'a,b\n1,2\n3,"4"x\n', "row 3: malformed"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "malformed"),
        (b"a,a\n1,2\n", "row 1: column a is given twice"),
        (b"a,,\n1,,\n", "row 1: 2 columns have no name; name or drop them"),
        (b"\xff\xfe", "not a text file with a header"),
        (b"", "the file is empty"),
    ],
)
def test_a_bad_row_is_named_by_its_line_in_the_whole_file(tmp_path, data, message, block_bytes):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    refused(TraceError, message, read_csv_by_blocks, path, lambda frame: frame, block_bytes)


def test_a_column_that_narrows_in_some_blocks_alone_is_text(written):
    path = written("t.csv", "t,n\n2020-04-01 00:00:10,1\n2020-04-01,2.5\n,\n")

    def narrow(frame):
        return frame.with_columns(lean_times(frame["t"]), lean_counts(frame["n"]))

    table = read_csv_by_blocks(path, narrow, 22)
    assert table.frame.rows() == [("2020-04-01 00:00:10", 1.0), ("2020-04-01", 2.5), (None, None)]
    assert narrow(table.frame[:1]).schema == {"t": pl.Datetime("us"), "n": pl.Int64}


def test_text_stays_where_a_value_does_not_fit():
    assert lean_numbers(pl.Series(["1", "x", "-"])).to_list() == ["1", "x", None]
    assert lean_counts(pl.Series(["1", "2.5", "None"])).to_list() == [1.0, 2.5, None]
    assert lean_counts(pl.Series(["1", " 2 "])).to_list() == [1, 2]
    assert lean_times(pl.Series([None, None], dtype=pl.String)).dtype == pl.Datetime("us")


def test_frames_of_different_columns_are_stacked():
    frame = stacked([pl.DataFrame({"a": [1], "b": [None]}), pl.DataFrame({"a": [2], "b": ["x"]})])
    assert frame.rows() == [(1, None), (2, "x")]
