"""What reaches a terminal: names from files show what they hold and do nothing else."""

import csv as csv_module
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.pipelines.report.console import printable

POOL = "w\x1b]0;owned\x07[red]:fire:\u202e\rx\x9b2J"
ROWS = ("pool", "job_id", "submit_time", "duration", "gpus", "user", "tag")


@pytest.fixture
def odd_names(tmp_path):
    path = tmp_path / "names.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv_module.writer(file)
        table.writerow(ROWS)
        table.writerows((POOL, f"j\x1b{row}", row * 60, 30, 1, "u\x1b", "t\x07") for row in range(30))
    return path


def acts(text):
    return [character for character in text if not character.isprintable() and character != "\n"]


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_acts_is_left_and_all_else_is(text):
    shown = printable(text)
    assert not [one for one in shown if one not in "\n\t" and (ord(one) < 32 or 0x7F <= ord(one) < 0xA0)]
    assert shown.encode("utf-8").decode() == shown  # lone surrogates, as in names of files, are written out too
    assert printable(shown) == shown
    assert shown == text or not text.isprintable()


def test_tables_notes_and_errors_of_the_command_line(shell, odd_names):
    table = shell.works("trace", "describe", odd_names)
    assert not acts(table.out + table.err)
    assert r"w\x1b]0;owned" in table.out
    pools = "pools.csv"
    Path(pools).write_text("pool,gpus\nother,4\n")
    line = shell.refuses("simulate", "--trace", odd_names, "--pools", pools, "--policy", "fcfs")
    assert not acts(line)
    assert r"w\x1b]0;owned\x07[red]:fire:\u202e x\x9b2J" in line  # an error is one line: white space is one space
    assert r"no\x1b[2J.csv: no such file" in shell.refuses("trace", "describe", "no\x1b[2J.csv")
    assert r"unknown policy fc\x1bfs" in shell.refuses("simulate", "--trace", odd_names, "--policy", "fc\x1bfs")
    note = shell.works("trace", "convert", "canonical", odd_names, "--out", "o\x1b.csv").err
    assert note.startswith(r"o\x1b.csv: 30 of 30 rows")


def test_a_label_beside_a_bar_is_no_markup():
    code = (
        "from jobcast.pipelines.report.console import Console\n"
        "with Console().progress('train [red]x\\x1b]0;y\\x07') as step: step(1, 2)\n"
    )
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", code], stderr=theirs, stdout=theirs, check=True)
    assert done.returncode == 0
    shown = b""
    os.close(theirs)
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed, and all was read
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert b"train [red]x\\x1b]0;y\\x07" in shown
    assert b"\x1b]0;" not in shown
