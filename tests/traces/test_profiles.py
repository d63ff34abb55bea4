"""Tables of profiles: read and written alike in three formats, looked up, refused with one line.

SQLite files are merged in one transaction, and other tables in them are left alone.
"""

import os
import sqlite3
from contextlib import closing

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.profiles import (
    PROFILE_COLUMNS,
    ProfileTable,
    merge_sqlite,
    profile_table,
    read_profiles,
    write_profiles,
)
from tests.shared import refused

ROWS = [
    ("A", 32, "v100", 1, 10.0),
    ("A", 32, "v100", 2, 6.0),
    ("A", None, "t4", 1, 30.0),
    ("A", 64, "v100", 1, 9.0),
    ("B", None, "t4", 4, 0.1),
]
SUFFIXES = (".csv", ".parquet", ".sqlite", ".db")
HEADER = ",".join(PROFILE_COLUMNS)


def test_a_name_of_no_known_ending_is_refused_with_all_that_are_known(tmp_path):
    with pytest.raises(ConfigError, match=r"p\.txt: the suffix must be \.csv or \.parquet or \.sqlite or \.db; rename"):
        write_profiles(ROWS, tmp_path / "p.txt")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"profiles{suffix}"
    write_profiles(ROWS, path)
    table = read_profiles(path)
    assert table.frame.rows() == ROWS
    assert (len(table), table.rows, table.models, table.gpu_types) == (5, 5, ("A", "B"), ("v100", "t4"))
    assert len(table.sha256) == 64
    assert os.listdir(tmp_path) == [path.name]


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("AB"),
            st.none() | st.integers(1, 9),
            st.sampled_from(["v100", "t4"]),
            st.integers(1, 4),
            st.floats(1e-6, 1e6),
        ),
        min_size=1,
        unique_by=lambda row: row[:4],
    )
)
def test_three_formats_hold_the_same_numbers(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("formats")
    for suffix in SUFFIXES[:3]:
        write_profiles(rows, folder / f"p{suffix}")
        assert read_profiles(folder / f"p{suffix}").frame.rows() == rows


def test_lookup():
    """By hand: exact rows before those of any batch size; none: infinite."""
    table = profile_table(ROWS)
    known = table.epoch_s(["A", "A", "A", "B", "C"], [32, 64, 7, 8, None], ["v100", "t4", "v100"], 2)
    inf = np.inf
    assert known.tolist() == [
        [[10.0, 6.0], [30.0, inf], [10.0, 6.0]],
        [[9.0, inf], [30.0, inf], [9.0, inf]],
        [[inf, inf], [30.0, inf], [inf, inf]],
        [[inf, inf], [inf, inf], [inf, inf]],
        [[inf, inf], [inf, inf], [inf, inf]],
    ]


def test_jobs_without_a_batch_size():
    """They take rows of any, else those of the smallest."""
    sized = profile_table([("A", 64, "t4", 1, 5.0), ("A", 16, "t4", 1, 8.0), ("A", 64, "t4", 2, 3.0)])
    assert sized.epoch_s(["A"], [None], ["t4"], 2).ravel().tolist() == [8.0, np.inf]
    assert sized.gpu_types_of("A", None) == ("t4",)
    assert sized.gpu_types_of("A", 5) == ()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A,1,t,1,0", "row 2, column epoch_s: must be a number > 0, got '0'"),
        ("A,1,t,1.5,2", "row 2, column gpus: must be a whole number from 1 to 65536, got '1.5'"),
        ("A,0,t,1,2", "row 2, column batch_size: must be a whole number >= 1, or empty"),
        (",1,t,1,2", "row 2, column model: must name one, got nothing"),
        (
            "A,,t,1,2\nA,,t,1,3",
            "row 3, column model: model, batch size, GPU type and GPUs are there twice, got 'A, any",
        ),
        ("", "only a header, no rows"),
    ],
)
def test_what_cannot_be_used_is_named(written, rows, said):
    path = written("bad.csv", f"{HEADER}\n{rows}\n")
    told = refused(TraceError, "", read_profiles, path)
    assert said in told
    assert told.startswith(str(path))


def test_a_table_of_rows_at_hand():
    frame = pl.DataFrame({"model": ["A"], "batch_size": [None], "gpu_type": ["t4"], "gpus": [1], "epoch_s": [2]})
    table = profile_table(frame, "made")
    assert isinstance(table, ProfileTable)
    assert table.frame.rows() == [("A", None, "t4", 1, 2.0)]
    refused(TraceError, "made, row index 0, column epoch_s", profile_table, [("A", None, "t4", 1, -2.0)], "made")


OLD = [("A", 32, "v100", 1, 10.0), ("A", None, "t4", 1, 30.0)]
NEW = profile_table([("A", None, "t4", 1, 31.0), ("A", 32, "t4", 1, 29.0)]).frame


def test_equal_keys_are_replaced(tmp_path):
    path = tmp_path / "p.sqlite"
    write_profiles(OLD, path)
    assert merge_sqlite(NEW, path) == (1, 1)
    assert sorted(read_profiles(path).frame.rows(), key=str) == sorted([OLD[0], *NEW.rows()], key=str)
    assert merge_sqlite(NEW, path) == (0, 2)


def test_other_tables_stay_and_a_failure_changes_nothing(tmp_path):
    path = tmp_path / "p.sqlite"
    write_profiles(OLD, path)
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("CREATE TABLE notes (text TEXT)")
        opened.execute(
            "CREATE TRIGGER no BEFORE INSERT ON profiles WHEN new.epoch_s = 29 BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    refused(ConfigError, "cannot be written", merge_sqlite, NEW, path)
    assert read_profiles(path).frame.rows() == OLD
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("SELECT count(*) FROM notes").fetchone() == (0,)
