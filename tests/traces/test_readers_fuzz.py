"""Every format's fixtures, as they are and damaged: a reader reads all of a file or refuses it in one line."""

import random
import shutil
from pathlib import Path

import pytest

from jobcast.domain.errors import JobcastError
from jobcast.traces.readers import format_names, read_sources, reader_named
from jobcast.traces.readers.reading import Reading

FIXTURES = Path(__file__).with_name("fixtures")
DAMAGES_A_CASE = 60
"""Damaged copies of each case; each draws one kind of damage for one of its files."""
TOKENS = (
    b"", b"0", b"-1", b"nan", b"inf", b"1e400", b"None", b"null", b"\xff", b"\xf0\x9f\x98\x80", b"9" * 30, b"-0.5",
    b"2020-13-01 00:00:00", b"9999-12-31 23:59:59", b"0001-01-01T00:00:00+14:00", b"2017-11-05 01:30:00",
    b'"', b'""', b"'", b"\\ud800", b"{", b"[", b"]", b"}", b",", b"\t", b"|", b";", b"\n", b"\r", b"\0", b"true",
)  # fmt: skip
SEPARATORS = b',\t|;: \n"'


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


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/Los_Angeles"])
@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_read_in_a_zone(case, zone):
    name, folder = CASES[case]
    plain, moved = (read(name, sources_of(folder), timezone=at) for at in (None, zone))
    assert plain.trace.source == moved.trace.source


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


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_fixture_is_read_whole_or_refused_in_one_line(case, tmp_path):
    name, folder = CASES[case]
    outcomes = set()
    for seed in range(DAMAGES_A_CASE):
        rng = random.Random(f"{case} {seed}")
        copy = tmp_path / str(seed) / folder.name
        shutil.copytree(folder, copy)
        victim = rng.choice(sources_of(copy))
        damage = rng.choice(DAMAGES)
        victim.write_bytes(damage(victim.read_bytes(), rng))
        zone = rng.choice([None, "America/Los_Angeles"])
        try:
            read(name, sources_of(copy), timezone=zone, strict=rng.random() < 0.2)
            outcomes.add("read")
        except JobcastError as error:
            assert_one_line(error)
            outcomes.add("refused")
        except Exception as error:
            error.add_note(f"{case}, seed {seed}: {damage.__name__} of {victim.name}")
            raise
        shutil.rmtree(copy)
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES.values()}))
def test_random_bytes_are_refused_in_one_line(name, tmp_path):
    path = tmp_path / "noise"
    for seed in range(20):
        rng = random.Random(seed)
        path.write_bytes(rng.choice([b"", b"[", b'[{"', b"a,b\n", b"; "]) + rng.randbytes(rng.choice([0, 1, 9, 500])))
        for wanted in (name, None):
            with pytest.raises(JobcastError) as error:
                read_sources([path], format=wanted)
            assert_one_line(error.value)


def assert_one_line(error: Exception) -> None:
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 2000


def cut(data: bytes, rng: random.Random) -> bytes:
    """The beginning alone."""
    return data[: rng.randrange(len(data))]


def flip(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed for others."""
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt)


def splice(data: bytes, rng: random.Random) -> bytes:
    """A token put in place of a few bytes."""
    at = rng.randrange(len(data))
    return data[:at] + rng.choice(TOKENS) + data[at + rng.randint(0, 6) :]


def replace_field(data: bytes, rng: random.Random) -> bytes:
    """One field, between two separators, changed for a token."""
    ends = [index for index, byte in enumerate(data) if byte in SEPARATORS] or [0]
    which = rng.randrange(len(ends))
    end = ends[which + 1] if which + 1 < len(ends) else len(data)
    return data[: ends[which] + 1] + rng.choice(TOKENS) + data[end:]


def shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    """Lines dropped, doubled, swapped."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randint(1, 3)):
        if not lines:
            break
        at = rng.randrange(len(lines))
        rng.choice([lines.pop, lambda i: lines.insert(i, lines[i]), lambda i: lines.append(lines.pop(i))])(at)
    return b"".join(lines)


def drop_separator(data: bytes, rng: random.Random) -> bytes:
    """One separator gone: a field too few, or two lines in one."""
    ends = [index for index, byte in enumerate(data) if byte in SEPARATORS] or [0]
    at = rng.choice(ends)
    return data[:at] + data[at + 1 :]


def line_ends(data: bytes, rng: random.Random) -> bytes:
    """Written elsewhere: a byte order mark, carriage returns, blank lines, no final newline."""
    changed = rng.choice([data, data.replace(b"\n", b"\r\n"), data + b"\n\n", data.rstrip(b"\n")])
    return rng.choice([b"", b"\xef\xbb\xbf"]) + changed


DAMAGES = (cut, flip, splice, replace_field, shuffle_lines, drop_separator, line_ends)
