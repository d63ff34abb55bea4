"""The promise ledger: what is kept, by several processes at once, by one that is killed, and files that are none."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from jobcast.domain.errors import LedgerError
from jobcast.models.promise_ledger import END, START, Outcome, Promise, PromiseLedger
from tests.shared import refused

WRITER = """
import sys
from pathlib import Path
from jobcast.models.promise_ledger import Outcome, Promise, PromiseLedger
name, rounds, many, home = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
ledger = PromiseLedger(home)
for number in range(rounds):
    ledger.keep(
        Promise(
            job_id=f"{name}-{number}-{row}", submit_s=0.0, kind="end", pool="p", gpus=1, at_s=1.0, asked_s=2.0,
            policy="fcfs", version="jct", sizes="forecast", point_s=None, intervals=[[0.9, 1.0, 2.0]],
        )
        for row in range(many)
    )
    ledger.keep_outcomes({("shared", 0.0, "end"): Outcome(5.0, 5.0)}, name)
    print(number, flush=True)
"""
"""Keeps `rounds` times `many` promises, and an outcome that all writers know."""


def promise(**changed):
    told = {
        "job_id": "a", "submit_s": 10.0, "kind": END, "pool": "p", "gpus": 4, "at_s": 20.0, "asked_s": 1e9,
        "policy": "fcfs", "version": "jct 1", "sizes": "forecast", "point_s": 90.0,
        "intervals": [[0.5, 60.0, 100.0], [0.9, 30.0, 200.0]], "futures_s": [30.0, 200.0],
    }  # fmt: skip
    return Promise(**told | changed)


@pytest.fixture
def ledger(tmp_path):
    return PromiseLedger(tmp_path / "home")


def writer(home: Path, name: str, rounds: int, many: int) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", WRITER, name, str(rounds), str(many), str(home)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_what_is_kept_is_read_again(ledger):
    start, end = promise(kind=START, point_s=None, what_if=1), promise(policy="sia")
    assert ledger.keep([start, end]) == 2
    assert ledger.promises() == [start, end]
    assert ledger.promises(policy="sia", kind=END) == [end]
    assert ledger.promises(policy="nobody") == []


def test_without_a_file_nothing_is_known_and_reading_makes_none(ledger):
    assert (ledger.promises(), ledger.outcomes()) == ([], {})
    assert ledger.keep([]) == 0
    assert not ledger.file.parent.exists()


@pytest.mark.parametrize("change", ["UPDATE promises SET at_s = 0", "DELETE FROM promises", "DELETE FROM outcomes"])
def test_rows_are_never_changed(ledger, change):
    ledger.keep([promise()])
    ledger.keep_outcomes({promise().event: Outcome(50.0, 50.0)}, "x")
    with (
        closing(sqlite3.connect(ledger.file)) as database,
        pytest.raises(sqlite3.IntegrityError, match="rows of the promise ledger are never changed"),
    ):
        database.execute(change)
    assert ledger.promises() == [promise()]


def test_outcomes_are_kept_once_and_corrected_beside(ledger):
    event = promise().event
    assert ledger.keep_outcomes({event: Outcome(None, 40.0)}, "monday") == 1
    assert ledger.keep_outcomes({event: Outcome(None, 40.0)}, "monday") == 0
    assert ledger.outcomes() == {event: Outcome(None, 40.0)}
    assert ledger.keep_outcomes({event: Outcome(50.0, 55.0)}, "tuesday") == 1
    assert ledger.keep_outcomes({event: Outcome(50.0, 55.0)}, "wednesday") == 0
    # A look that comes late takes nothing back.
    assert ledger.keep_outcomes({event: Outcome(None, 45.0)}, "older") == 1
    assert ledger.outcomes() == {event: Outcome(50.0, 55.0)}
    # What was not known by an instant is not told by it.
    assert ledger.outcomes(until_s=54.0) == {event: Outcome(None, 45.0)}
    ledger.keep_outcomes({event: Outcome(51.0, 60.0)}, "corrected")
    assert ledger.outcomes() == {event: Outcome(51.0, 60.0)}


def test_eight_writers_at_once(tmp_path):
    writers = [writer(tmp_path, f"w{number}", 6, 5) for number in range(8)]
    assert [one.wait(timeout=300) for one in writers] == [0] * 8
    kept = PromiseLedger(tmp_path).promises()
    assert len({one.job_id for one in kept}) == len(kept) == 8 * 6 * 5
    assert list(PromiseLedger(tmp_path).outcomes().values()) == [Outcome(5.0, 5.0)]
    # Nothing of those that were not first to make the file is left.
    assert {path.name.partition("-")[0] for path in tmp_path.joinpath("promises").iterdir()} <= {"ledger.db"}


@pytest.mark.skipif(os.name != "posix", reason="kills by SIGKILL")
def test_a_writer_that_is_killed_leaves_whole_answers(tmp_path):
    many, finished = 40, 0
    for number in range(3):
        process = writer(tmp_path, f"w{number}", 100_000, many)
        assert process.stdout is not None
        # Somewhere in the middle of a write.
        for _ in range(5 + 7 * number):
            finished += bool(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    kept = PromiseLedger(tmp_path).promises()
    assert len(kept) % many == 0
    assert len(kept) >= finished * many > 0
    with closing(sqlite3.connect(PromiseLedger(tmp_path).file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert PromiseLedger(tmp_path).keep([promise()]) == 1


def other_database(file):
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE promises (id)")
        database.commit()


def newer(file):
    PromiseLedger(file.parents[1]).keep([promise()])
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 7")


def truncated(file):
    PromiseLedger(file.parents[1]).keep(promise(job_id=str(number)) for number in range(500))
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.write_bytes(file.read_bytes()[:20_000])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            lambda file: file.write_text("job,start\n" * 1000),
            "cannot be used as promise ledger (file is not a database)",
        ),
        (lambda file: file.write_bytes(b""), "is a database, but no promise ledger; move it away"),
        (other_database, "is a database, but no promise ledger; move it away"),
        (newer, "was written by a newer jobcast (schema 7, not 1); update jobcast"),
        (truncated, "cannot be used as promise ledger (database disk image is malformed)"),
    ],
)
def test_files_that_are_no_ledger(ledger, spoil, told):
    ledger.file.parent.mkdir(parents=True)
    spoil(ledger.file)
    for act in (ledger.promises, lambda: ledger.keep([promise()])):
        line = refused(LedgerError, "", act)
        assert told in line
        assert str(ledger.file) in line


def test_a_home_that_cannot_be_written(tmp_path):
    (tmp_path / "promises").write_text("a file where a folder should be")
    refused(LedgerError, "check its folder", PromiseLedger(tmp_path).keep, [promise()])
    assert PromiseLedger(tmp_path).promises() == []
