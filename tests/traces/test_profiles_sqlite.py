"""SQLite files of profiles: merged in one transaction, other tables left alone."""

import sqlite3
from contextlib import closing

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.traces.profiles import merge_sqlite, profile_table, read_profiles, write_profiles

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
    with pytest.raises(ConfigError, match="cannot be written"):
        merge_sqlite(NEW, path)
    assert read_profiles(path).frame.rows() == OLD
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("SELECT count(*) FROM notes").fetchone() == (0,)
