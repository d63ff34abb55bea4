"""JSON arrays of any length, read value by value: the whole is never held as objects."""

import json
import re
from collections.abc import Iterator
from typing import Any

from jobcast.domain.errors import TraceError
from jobcast.traces.files import FileBytes

_BLANKS = re.compile(r"[ \t\r\n]*")


def values_of(file: FileBytes) -> Iterator[Any]:
    """The values of a JSON array, one after another.

    Raises
    ------
    TraceError
        The file is no UTF-8 text or no JSON array; the line names the line of the file.
    """
    text = file.text("copy the file again")
    decode = json.JSONDecoder().raw_decode
    at = _after_blanks(text, 0)
    _expect(text, at, "[", file.path)
    at = _after_blanks(text, at + 1)
    if text.startswith("]", at):
        return
    while True:
        try:
            value, at = decode(text, at)
        except RecursionError:
            raise _malformed(text, at, "nested too deeply", file.path) from None
        except json.JSONDecodeError as error:
            raise _malformed(text, error.pos, error.msg, file.path) from None
        except ValueError as error:
            raise _malformed(text, at, str(error).partition(";")[0], file.path) from None
        yield value
        at = _after_blanks(text, at)
        if text.startswith("]", at):
            break
        _expect(text, at, ",", file.path)
        at = _after_blanks(text, at + 1)
    if (end := _after_blanks(text, at + 1)) < len(text):
        raise _malformed(text, end, "more after the array's end", file.path)


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _expect(text: str, at: int, mark: str, path: str) -> None:
    if not text.startswith(mark, at):
        raise _malformed(text, at, f"expected {mark}", path)


def _malformed(text: str, at: int, what: str, path: str) -> TraceError:
    line = text.count("\n", 0, at) + 1
    return TraceError(f"{path}, row {line}: malformed JSON ({what}); copy the file again or correct the line")
