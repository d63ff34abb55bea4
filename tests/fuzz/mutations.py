"""Damage to files, the same for the same generator: what disks, editors, exports and careless hands do to them."""

import gzip
import io
import random
import zipfile
from collections.abc import Callable, Sequence

Mutation = Callable[[bytes, random.Random], bytes]
WORDS = (
    "", " ", "0", "-1", "-0.5", "1e400", "-1e400", "1e-400", "nan", "inf", "-inf", "NaN", "None", "null", "true",
    "0x10", "1_000", "1,5", "9" * 30, "1" + "0" * 400, "\u0661\u0662", "\U0001f600", "\u202e", "\ufeff", "\x1b[31m",
    "\\ud800", "2017", "20171106", "20171106T093000Z", "43045.5", "2020-13-01 00:00:00", "2017-02-30",
    "-020-04-01", "9999-12-31 23:59:59", "0001-01-01T00:00:00+14:00", "2017-11-05 01:30:00",
    "2017-11-06T00:00:00+99:99",
    '"', '""', "'", "{", "[", "]", "}", "{}", "[]", ",", "\t", "|", ";", ":", "&a [*a]",
    "!!python/object/apply:os.abort []", "\n", "\r", "\r\n", "\0", "../../x",
    "%s", "${HOME}", "<script>", "=1+1", "a" * 300,
)  # fmt: skip
"""What fields, values and names are changed for."""
TOKENS: tuple[bytes, ...] = (*(word.encode() for word in WORDS), b"\xff", b"\xf0\x9f", b"PAR1", b"\x1f\x8b")
SEPARATORS = b',\t|;: \n"'
MOST_COPIES = 3
"""How many of its damages one input suffers at most."""
HUGE_FIELD, HUGE_LINE, DEEP = 100_000, 1_000_000, 100_000
"""Bytes of a field and of a line, and brackets, that no file in good faith holds."""


def mutate(data: bytes, rng: random.Random, kinds: Sequence[Mutation] | None = None) -> bytes:
    """Data with one to three damages of the kinds given (all of `MUTATIONS` by default), drawn by `rng`.

    >>> mutate(b"a,b", random.Random(1)) == mutate(b"a,b", random.Random(1))
    True
    """
    for _ in range(rng.choice((1, 1, 1, 2, MOST_COPIES))):
        data = rng.choice(kinds or MUTATIONS)(data, rng)
    return data


def mutate_text(text: str, rng: random.Random) -> str:
    """As `mutate`, for what is text before anybody reads it: words of a command line, YAML or JSON at hand."""
    return mutate(text.encode(), rng, TEXT).decode(errors="replace")


def flip(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed for others."""
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, 8) if data else 0):
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt)


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    """A single bit changed, as a disk or a memory does."""
    if not data:
        return data
    spoilt = bytearray(data)
    spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The beginning alone, or without it."""
    at = rng.randrange(len(data) + 1)
    return rng.choice((data[:at], data[:at], data[at:]))


def zeroed(data: bytes, rng: random.Random) -> bytes:
    """A stretch of zeros, as a machine leaves that lost power while it wrote."""
    at = rng.randrange(len(data) + 1)
    length = min(rng.choice((1, 16, 512, 4096)), len(data) - at)
    return data[:at] + bytes(length) + data[at + length :]


def splice(data: bytes, rng: random.Random) -> bytes:
    """A token put in place of a few bytes."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at + rng.randint(0, 6) :]


def replace_field(data: bytes, rng: random.Random) -> bytes:
    """One field, between two separators, changed for a token."""
    first, last = _field(data, rng)
    return data[:first] + rng.choice(TOKENS) + data[last:]


def swap_fields(data: bytes, rng: random.Random) -> bytes:
    """One field changed for another of the same file."""
    first, last = _field(data, rng)
    other = slice(*_field(data, rng))
    return data[:first] + data[other] + data[last:]


def grow_field(data: bytes, rng: random.Random) -> bytes:
    """One field grown beyond reason: 100 kB of one character."""
    first, last = _field(data, rng)
    return data[:first] + rng.choice((b"9", b"a", b" ", b"\xc3\xa9")) * HUGE_FIELD + data[last:]


def shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    """Lines dropped, doubled, put last."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randint(1, 3)):
        if not lines:
            break
        at = rng.randrange(len(lines))
        rng.choice((lines.pop, lambda i: lines.insert(i, lines[i]), lambda i: lines.append(lines.pop(i))))(at)
    return b"".join(lines)


def long_line(data: bytes, rng: random.Random) -> bytes:
    """A line of a megabyte: of letters, of fields, or all lines in one."""
    line = rng.choice((b"a" * HUGE_LINE, b"a," * (HUGE_LINE // 2), data.replace(b"\n", b" ")))
    at = rng.choice((0, len(data), data.find(b"\n") + 1))
    return data[:at] + line + b"\n" + data[at:]


def drop_separator(data: bytes, rng: random.Random) -> bytes:
    """One separator gone: a field too few, or two lines in one."""
    ends = [index for index, byte in enumerate(data) if byte in SEPARATORS]
    if not ends:
        return data
    at = rng.choice(ends)
    return data[:at] + data[at + 1 :]


def columns(data: bytes, rng: random.Random) -> bytes:
    """A column dropped, doubled or moved on every line, by the separator that the first line holds most of."""
    lines = data.split(b"\n")
    separator = max((b",", b"\t", b"|", b" ", b";"), key=lines[0].count)
    width = lines[0].count(separator) + 1
    at, to = rng.randrange(width), rng.randrange(width)
    kind = rng.choice(("drop", "double", "move"))

    def changed(line: bytes) -> bytes:
        fields = line.split(separator)
        if at >= len(fields):
            return line
        field = fields[at] if kind == "double" else fields.pop(at)
        if kind != "drop":
            fields.insert(to, field)
        return separator.join(fields)

    return b"\n".join(changed(line) if line else line for line in lines)


def line_ends(data: bytes, rng: random.Random) -> bytes:
    """Written elsewhere: a byte order mark, CR or CRLF, blank lines, no final newline."""
    plain = data.replace(b"\r\n", b"\n")
    changed = rng.choice((
        data, plain.replace(b"\n", b"\r\n"), plain.replace(b"\n", b"\r"), plain.replace(b"\n", b"\n\n"),
        b"\n\n" + data, data + b"\n\n", data.rstrip(b"\n"),
    ))  # fmt: skip
    return rng.choice((b"", b"\xef\xbb\xbf")) + changed


def other_encoding(data: bytes, rng: random.Random) -> bytes:
    """Text in another encoding: UTF-16 with its mark or without, UTF-32, or Latin-1 with letters of its own."""
    text = data.decode("utf-8", errors="replace")
    if rng.random() < 0.3:
        return text.replace("a", "\xe4").encode("latin-1", errors="replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "utf-8-sig")), "replace")


def nulls(data: bytes, rng: random.Random) -> bytes:
    """Null bytes put in."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + b"\0" + data[at:]
    return data


def nested(data: bytes, rng: random.Random) -> bytes:
    """Brackets in brackets, deeper than a parser that calls itself can go."""
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"- ", b"")))
    depth = rng.choice((100, 3_000, DEEP))
    deep = opening * depth + rng.choice((b"", b"1" + closing * depth))
    at = rng.randrange(len(data) + 1)
    return rng.choice((deep, data[:at] + deep + data[at:], data + deep))


def packed(data: bytes, rng: random.Random) -> bytes:
    """Compressed: gzip whole, cut or twice; zip; or what merely begins like zstd, xz, bzip2."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("jobs.csv"), data)
    gz = gzip.compress(data, mtime=0)
    begins = b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh9"
    return rng.choice((
        gz, gz[: rng.randrange(len(gz))], gzip.compress(gz, mtime=0), file.getvalue(), *(one + data for one in begins),
    ))  # fmt: skip


def nothing(data: bytes, rng: random.Random) -> bytes:
    """Nothing at all, white space, or noise."""
    return rng.choice((b"", b"\n", b" ", b"\0" * 64, rng.randbytes(rng.choice((1, 4, 64, 4096)))))


TEXT: tuple[Mutation, ...] = (
    cut, splice, replace_field, swap_fields, shuffle_lines, drop_separator, columns, line_ends, nested,
)  # fmt: skip
"""Damage that leaves most of a text as it was."""
MUTATIONS: tuple[Mutation, ...] = (
    flip, flip_bit, cut, zeroed, splice, replace_field, swap_fields, grow_field, shuffle_lines, long_line,
    drop_separator, columns, line_ends, other_encoding, nulls, nested, packed, nothing,
)  # fmt: skip
"""All of it."""


def _field(data: bytes, rng: random.Random) -> tuple[int, int]:
    """Where a field begins and ends, drawn by its position."""
    at = rng.randrange(len(data) + 1)
    first = max(data.rfind(bytes([byte]), 0, at) for byte in SEPARATORS) + 1
    ends = [found for byte in SEPARATORS if (found := data.find(bytes([byte]), at)) >= 0]
    return first, min(ends, default=len(data))
