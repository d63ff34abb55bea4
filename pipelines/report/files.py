"""Files of results: written whole or not at all, JSON the same for the same value."""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import replacing, unwritable
from jobcast.traces.owners import draft_room

COMMAND = "command.json"
"""How a folder of results was made; files of figures say it themselves, under the word `command`."""
OUTPUTS = ("--json", "--out", "--html", "--switches-out")
"""Options that say where a result goes."""
STREAMS = ("/dev/stdout", "/dev/stderr")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole; a device or a pipe is written to as it is."""
    # Nothing can be renamed onto a device or a pipe.
    if is_stream(path):
        with naming(path), path.open("w", encoding="utf-8") as stream:
            stream.write(text)
        return
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of writing name the path, which they do not by themselves once the file is open."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whole, in a form that is the same for the same value."""
    write_text(path, to_json(value))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    r"""Rows, the head among them, as CSV.

    >>> csv_text([("pool", "jobs"), ("a, b", 1000)])
    'pool,jobs\n"a, b",1000\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe, such as /dev/null or a shell's >(command): written to, never replaced."""
    # Descriptors by name: on some systems these look like plain files.
    named = path.absolute().parent.as_posix() in ("/dev/fd", "/proc/self/fd") or path.as_posix() in STREAMS
    return named or (path.exists() and not path.is_file() and not path.is_dir())


def to_json(value: Mapping[str, Any]) -> str:
    """JSON with keys in their given order and a final newline; not-a-number is refused.

    >>> to_json({"a": 1.5})
    '{\\n  "a": 1.5\\n}\\n'
    """
    # NaN is no JSON: other readers would refuse the whole file.
    return json.dumps(value, indent=2, allow_nan=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    # Arrays and numbers of numpy alike.
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; ConfigError names the file and what made it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; run the stage that writes it first") from error
    except (OSError, ValueError) as error:
        remedy = "write it again with the command that made it"
        raise ConfigError(f"{path}: cannot be read as JSON ({error}); {remedy}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: a JSON object was expected, got {type(value).__name__}")
    return value


def check_outputs(
    files: Mapping[str, Path | None],
    folders: Mapping[str, Path | None] = MappingProxyType({}),
    inputs: Iterable[Path | None] = (),
) -> None:
    """Refuse places that results cannot be written to, before the work begins; nothing is left there.

    Parameters
    ----------
    files, folders : option -> place; None = not asked for
    inputs : files that must not be overwritten

    Raises
    ------
    ConfigError
        A place cannot be written to, is named twice, or is an input.
    """
    # By real path: two names of one file are one place.
    taken = {os.path.realpath(path): "an input" for path in inputs if path is not None}
    for option, place in {**files, **folders}.items():
        if place is None or not _is_replaced(option, place, option in folders):
            continue
        real = os.path.realpath(place)  # also of links that lead in a circle, at which Path.resolve raises
        if real in taken:
            raise ConfigError(f"{option} {place}: is {taken[real]} too; name another place")
        taken[real] = option


def _is_replaced(option: str, place: Path, folder: bool) -> bool:
    """Whether a place will be replaced, not a stream; ConfigError when it cannot be.

    A temporary folder is made and removed where `replacing` will make one, or in the nearest folder that is there.
    """
    try:
        if is_stream(place):
            return False
        if not folder and place.is_dir():
            raise ConfigError(f"{option} {place}: is a folder; name a file")
        # A slip of the pen would be found much later, at another end of the disk.
        if not folder and not Path(os.path.realpath(place.parent)).exists():
            raise ConfigError(f"{option} {place}: there is no folder {place.parent}; make it, or correct the path")
        beside = place if folder else place.parent
        # A folder of results is made later; what counts is where the first that is missing would be.
        while not beside.exists():
            beside = beside.parent
        with draft_room(beside / place.name):
            return True
    except OSError as error:
        raise ConfigError(f"{option} {unwritable(place, error)}") from None
