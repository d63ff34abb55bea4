"""The event log grows, keeps each event once, and is never changed."""

import sqlite3

import pytest

from jobcast.domain.errors import LedgerError
from jobcast.live.event_log import END, START, SUBMIT, Event, EventLog
from tests.shared import refused

EVENTS = [
    Event(10.0, SUBMIT, "a", 10.0, {"pool": "p", "gpus": 2}),
    Event(12.0, START, "a", 12.0),
    Event(25.0, END, "a", 20.0),
]


def test_events_come_back_in_order_and_once(tmp_path):
    log = EventLog(tmp_path)
    assert log.append(EVENTS[:2]) == 2
    assert log.append(EVENTS) == 1
    assert [event for _, event in EventLog(tmp_path).since(0)] == EVENTS
    assert [event for _, event in log.since(log.since(0)[1][0])] == EVENTS[2:]


def test_rows_are_never_changed(tmp_path):
    log = EventLog(tmp_path)
    log.append(EVENTS)
    with sqlite3.connect(log.file) as database, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        database.execute("DELETE FROM events")


def test_a_file_that_is_no_database_is_refused_in_one_line(tmp_path):
    log = EventLog(tmp_path)
    log.file.parent.mkdir()
    log.file.write_text("no database, " * 100)
    refused(LedgerError, "cannot be used as event log", log.since, 0)
