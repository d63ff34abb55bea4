"""One file brought from the network: resumed where it was cut, whole or not at all."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from jobcast.domain.errors import TraceError
from jobcast.traces.files import reason

Step = Callable[[int, int], None]
"""Called with (bytes done, bytes in all; 0 = not told)."""
CHUNK_BYTES = 1 << 18
TIMEOUT_S = 30.0
TRIES = 5
"""How often in a row a download may stop before it is given up."""
WAIT_S = 1.0
"""Wait before the second try; each further one waits twice as long."""
USER_AGENT = "jobcast (trace fetch)"
AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which trying again makes sense."""
HTTP_OK, HTTP_PARTIAL, HTTP_RANGE_REFUSED = 200, 206, 416


class UnreachableError(TraceError):
    """A host that cannot be reached, or a download that stops again and again."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A file that is not whole yet, and what the server said that it is a part of."""

    path: Path

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".of")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, url: str, tag: str, resumed: bool) -> None:
        """Note where the content comes from; start empty unless it goes on."""
        with _writing(self.path):
            self.note.write_text(f"{url}\n{tag}\n", encoding="utf-8")
            self.path.open("ab" if resumed else "wb").close()

    def add(self, chunk: bytes) -> None:
        """Append bytes."""
        with _writing(self.path), self.path.open("ab") as file:
            file.write(chunk)

    def tag_for(self, url: str) -> str | None:
        """What the server called the content that this is a part of; None where it is a part of another."""
        known = self.note.read_text(encoding="utf-8").splitlines() if self.note.exists() else []
        return known[1] if len(known) == 2 and known[0] == url else None

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def download(url: str, target: Path, step: Step, wait_s: float = WAIT_S) -> None:
    """Bring a file to `target`; while it is not whole it is `target`.part, which a later call resumes.

    Parameters
    ----------
    url : http or https
    target : where to
    step : told of progress
    wait_s : wait before the second try; each further one waits twice as long

    Raises
    ------
    UnreachableError
        There is no network, or the transfer stops `TRIES` times in a row without a byte more; what came is kept.
    TraceError
        The server does not have the file, or does not give it; or the disk is full.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise TraceError(f"{url}: must begin with http:// or https://; correct the address")
    part = _Part(target.with_name(target.name + ".part"))
    stopped = 0
    while True:
        before = part.size
        try:
            _transfer(url, part, step)
            break
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code not in AGAIN:
                raise TraceError(f"{url}: the server answers {error.code} {error.reason}; check the address") from None
            stopped = 1 if part.size > before else stopped + 1
            if stopped >= TRIES or (not part.size and _is_unreachable(error)):
                raise UnreachableError(f"{url}: {_why(error)}") from None
            time.sleep(wait_s * 2 ** (stopped - 1))
    part.path.replace(target)
    part.note.unlink(missing_ok=True)


def _transfer(url: str, part: _Part, step: Step) -> None:
    """Bring what is missing of a part; raises where the transfer stops early."""
    tag = part.tag_for(url)
    begun = part.size if tag is not None else 0
    request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT})
    if begun:
        request.add_header("Range", f"bytes={begun}-")
        if tag:
            request.add_header("If-Range", tag)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != HTTP_RANGE_REFUSED:
            raise
        if _total(error.headers.get("Content-Range", "")) == begun:
            return
        part.forget()
        raise http.client.HTTPException("the part does not belong to the file; starting over") from None
    with answer:
        resumed = answer.status == HTTP_PARTIAL and _first(answer.headers.get("Content-Range", "")) == begun
        done = begun if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length and length.isdigit() else 0
        part.begin(url, answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "", resumed)
        while chunk := answer.read(CHUNK_BYTES):
            part.add(chunk)
            done += len(chunk)
            step(done, total)
        if total and done < total:
            raise http.client.HTTPException(f"cut after {done} of {total} bytes")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What goes wrong here is the disk, not the network."""
    try:
        yield
    except OSError as error:
        raise TraceError(f"{path}: cannot be written ({reason(error)}); check the disk") from None


def _first(content_range: str) -> int | None:
    """First byte of "bytes 5-9/10"."""
    first = content_range.removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def _total(content_range: str) -> int | None:
    """All bytes of "bytes */10"."""
    total = content_range.rpartition("/")[2]
    return int(total) if total.isdigit() else None


def _is_unreachable(error: Exception) -> bool:
    """Whether trying again in a moment makes no sense: no such host, no network, nobody answers."""
    return isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError)


def _why(error: Exception) -> str:
    inner = getattr(error, "reason", None)
    shown = reason(inner) if isinstance(inner, BaseException) else reason(error)
    return f"cannot be reached ({shown})" if _is_unreachable(error) else f"stopped again and again ({shown})"
