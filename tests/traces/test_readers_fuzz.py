"""Every format's fixtures as they are, and noise: a reader reads all of a file or refuses it in one line.

Damaged ones are in tests/fuzz.
"""

import random
from pathlib import Path

import pytest

from jobcast.domain.errors import JobcastError
from jobcast.traces.readers import format_names, read_sources, reader_named
from jobcast.traces.readers.reading import Reading
from tests.shared import refused

FIXTURES = Path(__file__).with_name("fixtures")


def cases() -> dict[str, tuple[str, Path]]:
    """Name -> format and folder of each case: a format's folder, or each of its folders where it holds no file."""
    found = {}
    for folder in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
        plain = any(path.is_file() and path.suffix != ".md" for path in folder.iterdir())
        for case in [folder] if plain else inner:
            found[str(case.relative_to(FIXTURES))] = (folder.name, case)
    return found


CASES = cases()


def sources_of(folder: Path) -> list[Path]:
    """The files of one reading."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")


def read(name: str, sources: list[Path], **options: object) -> Reading:
    """Read, and hold the reader to its word: each record is a job or is counted as left out."""
    reading = read_sources(sources, format=name, **options)
    trace = reading.trace
    assert len(trace) + sum(trace.dropped.values()) == trace.source.rows
    assert len(trace) > 0
    assert all(count > 0 for count in trace.dropped.values())
    assert all("\n" not in line for line in (*trace.notes, *trace.dropped))
    return reading


def test_every_format_has_fixtures():
    assert {name for name, _ in CASES.values()} == set(format_names())


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_read_the_same_each_time_and_in_any_order(case):
    name, folder = CASES[case]
    first = read(name, sources_of(folder))
    for sources in (sources_of(folder), sources_of(folder)[::-1]):
        again = read(name, sources)
        assert again.trace.jobs.equals(first.trace.jobs)
        assert (again.trace.notes, again.trace.dropped) == (first.trace.notes, first.trace.dropped)
        assert again.trace.source.sha256 == first.trace.source.sha256
        assert again.pools == first.pools


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_recognised_as_its_format_alone(case):
    name, folder = CASES[case]
    knowing = {
        other for other in format_names() for path in sources_of(folder)
        if reader_named(other).recognises(path, path.read_bytes()[:65536])
    }  # fmt: skip
    assert knowing == {name}


@pytest.mark.parametrize("case", CASES)
def test_strict_refuses_what_would_be_left_out(case):
    name, folder = CASES[case]
    dropped = read(name, sources_of(folder)).trace.dropped
    try:
        assert not read(name, sources_of(folder), strict=True).trace.dropped
    except JobcastError as error:
        assert_one_line(error)
    else:
        assert not dropped


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES.values()}))
def test_random_bytes_are_refused_in_one_line(name, tmp_path):
    path = tmp_path / "noise"
    for seed in range(20):
        rng = random.Random(seed)
        path.write_bytes(rng.choice([b"", b"[", b'[{"', b"a,b\n", b"; "]) + rng.randbytes(rng.choice([0, 1, 9, 500])))
        for wanted in (name, None):
            assert 0 < len(refused(JobcastError, "", read_sources, [path], format=wanted)) < 2000


def assert_one_line(error: Exception) -> None:
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 2000
