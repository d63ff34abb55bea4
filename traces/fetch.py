"""Public traces brought to a folder: downloaded or copied, checked, unpacked.

Files taken out of the archives in which public traces come.

One file brought from the network: resumed where it was cut, whole or not at all.
"""

import gzip
import hashlib
import http.client
import shlex
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.catalogue import CATALOGUE, PublicFile, PublicTrace
from jobcast.traces.files import reason, replacing

Step = Callable[[int, int], None]
"""Called with (bytes done, bytes in all; 0 = not told)."""
ANSWER_BYTES = 1 << 18
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
        # a full disk must not be retried like a broken network
        with _writing(self.path):
            self.note.write_text(f"{url}\n{tag}\n", encoding="utf-8")
            self.path.open("ab" if resumed else "wb").close()

    def add(self, chunk: bytes) -> None:
        """Append bytes."""
        with _writing(self.path), self.path.open("ab") as file:
            file.write(chunk)

    def tag_for(self, url: str) -> str | None:
        """What the server called the content that this is a part of; None where it is a part of another."""
        # a part of another address, or of an older file, must not be gone on with
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
            # a try that brought bytes starts the count of tries anew
            stopped = 1 if part.size > before else stopped + 1
            # without a byte on file there is nothing to be patient about
            if stopped >= TRIES or (not part.size and _is_unreachable(error)):
                raise UnreachableError(f"{url}: {_why(error)}") from None
            # twice as long each time: servers under load need it
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
            # the server sends the whole file if it changed meanwhile
            request.add_header("If-Range", tag)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != HTTP_RANGE_REFUSED:
            raise
        # the part was whole already: only the rename was missing
        if _total(error.headers.get("Content-Range", "")) == begun:
            return
        part.forget()
        raise http.client.HTTPException("the part does not belong to the file; starting over") from None
    with answer:
        # some servers answer 200 and the whole file, whatever was asked
        resumed = answer.status == HTTP_PARTIAL and _first(answer.headers.get("Content-Range", "")) == begun
        done = begun if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length and length.isdigit() else 0
        part.begin(url, answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "", resumed)
        while chunk := answer.read(ANSWER_BYTES):
            part.add(chunk)
            done += len(chunk)
            step(done, total)
        # a closed connection looks like the end of the file to urllib
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


CHUNK_BYTES = 1 << 20
BAD_ARCHIVE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


def unpack(archive: Path, wanted: Sequence[str], folder: Path) -> list[Path]:
    """Take files out of an archive (.tar.gz, .zip, .gz), each under the end of its path that is wanted.

    Only what is wanted is written, and only below `folder`, whatever paths the archive names.

    Raises
    ------
    TraceError
        The archive cannot be read, or does not hold one of them.
    """
    kind = next((suffix for suffix in _UNPACKERS if archive.name.endswith(suffix)), None)
    if kind is None:
        raise TraceError(f"{archive}: must be one of {', '.join(_UNPACKERS)}; unpack it by hand")
    try:
        found = _UNPACKERS[kind](archive, wanted, folder)
    except BAD_ARCHIVE as error:
        raise TraceError(f"{archive}: cannot be unpacked ({reason(error)}); delete it and fetch it again") from None
    missing = [name for name in wanted if name not in found]
    if missing:
        raise TraceError(f"{archive}: does not hold {', '.join(missing)}; delete it and fetch it again")
    return [folder / name for name in wanted]


def _match(path: str, wanted: Sequence[str]) -> str | None:
    """The wanted file that a path of an archive is.

    >>> _match("./data/Venus/cluster_log.csv", ["Earth/cluster_log.csv", "Venus/cluster_log.csv"])
    'Venus/cluster_log.csv'
    """
    # by the end of the path: archives differ in their leading folders
    return next((name for name in wanted if f"/{path}".endswith(f"/{name}")), None)


def _written(source: IO[bytes] | gzip.GzipFile, target: Path) -> None:
    with replacing(target) as draft, draft.open("wb") as file:
        while chunk := _read(source):
            file.write(chunk)


def _read(source: IO[bytes] | gzip.GzipFile) -> bytes:
    """The next bytes; what goes wrong here is the archive, not the disk that is written to."""
    try:
        return source.read(CHUNK_BYTES)
    except OSError as error:
        raise EOFError(reason(error)) from None


def _from_tar(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    found: set[str] = set()
    # as a stream: the archive holds gigabytes, and is read once
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            name = _match(member.name, wanted) if member.isfile() else None
            source = members.extractfile(member) if name and name not in found else None
            if name and source:
                _written(source, folder / name)
                found.add(name)
            # the rest need not even be unpacked
            if len(found) == len(wanted):
                break
    return found


def _from_zip(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            # shadow files of macOS bear the same names
            name = None if member.filename.startswith("__MACOSX/") else _match(member.filename, wanted)
            if name and name not in found:
                with members.open(member) as source:
                    _written(source, folder / name)
                found.add(name)
    return found


def _from_gzip(archive: Path, wanted: Sequence[str], folder: Path) -> set[str]:
    with gzip.open(archive) as source:
        _written(source, folder / wanted[0])
    return {wanted[0]}


_UNPACKERS: dict[str, Callable[[Path, Sequence[str], Path], set[str]]] = {
    ".tar.gz": _from_tar,
    ".zip": _from_zip,
    ".gz": _from_gzip,
}


Progress = Callable[[str], AbstractContextManager[Step]]
"""Shows the progress of a step by name."""
Say = Callable[[str], None]
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
"""What comes in place of a large file where a mirror did not fetch it from Git LFS."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """How a trace is fetched.

    Attributes
    ----------
    out : the folder that it goes to
    origin : a folder or an address (http, https) that holds its files; None = where they are published
    say : told what is done, a line at a time
    progress : shows how far a file is
    wait_s : wait before a download that stopped is taken up again
    """

    out: Path
    origin: str | None
    say: Say
    progress: Progress
    wait_s: float = WAIT_S


def public_trace(name: str) -> PublicTrace:
    """A public trace by name; ConfigError names them all."""
    if name not in CATALOGUE:
        raise ConfigError(f"public trace {name!r} is not known; give one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def fetch(trace: PublicTrace, how: Fetching) -> list[Path]:
    """Bring a trace's files to a folder, and return those that its reader takes.

    Files that are there already are checked and kept. A download that was cut goes on where it stopped.

    Raises
    ------
    TraceError
        A file cannot be had, is not the published one, or cannot be unpacked; the line says what to do.
    ConfigError
        The folder cannot be written to, or `how.origin` is none.
    """
    folder = _origin_folder(how.origin)
    try:
        how.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{how.out}: cannot be written ({reason(error)}); name another with --out") from None
    for file in trace.files:
        # a mirror may hold the tables without the archive
        if folder is not None and _copied_unpacked(file, folder, how):
            continue
        target = how.out / file.name
        kept = target.exists()
        if kept:
            how.say(f"{target}: there already")
        elif folder is not None:
            _copy(file, folder, target, how)
        else:
            _download(trace, file, target, how)
        try:
            check(file, target, how.say)
        except TraceError:
            # what was there before is the user's, damaged or not
            if not kept:
                target.unlink()
            raise
        if file.holds:
            for path in unpack(target, file.holds, how.out):
                how.say(f"{path}: unpacked")
    return [how.out / name for name in trace.sources]


def check(file: PublicFile, path: Path, say: Say) -> None:
    """Compare a file with what is known of it, and say its digest.

    Raises
    ------
    TraceError
        It is not the published file. (`fetch` deletes what it just brought, never what was there.)
    """
    with path.open("rb") as opened:
        # told apart from a wrong digest, since the remedy differs
        if opened.read(len(LFS_POINTER)) == LFS_POINTER:
            raise TraceError(f"{path}: a pointer of Git LFS, not the file; get that with git lfs pull")
        opened.seek(0)
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    size = path.stat().st_size
    elsewhere = "fetch it anew, or from elsewhere with --from"
    if file.sha256 and digest != file.sha256:
        raise TraceError(f"{path}: not the file of SHA-256 {file.sha256}, got {digest}; {elsewhere}")
    if file.size is not None and size != file.size:
        raise TraceError(f"{path}: not the file of {file.size} bytes, got {size}; {elsewhere}")
    result = "as published" if file.sha256 else "no digest is published to compare with"
    say(f"{path}: {size:,} bytes, SHA-256 {digest}, {result}")


def convert_command(trace: PublicTrace, folder: Path) -> str:
    """The command that converts a fetched trace."""
    words = ["jobcast", "trace", "convert", trace.format, *(str(folder / name) for name in trace.sources)]
    words += ["--out", f"{trace.name}.parquet", "--pools-out", f"{trace.name}_pools.csv"]
    return shlex.join(words + (["--timezone", trace.timezone] if trace.timezone else []))


def _origin_folder(origin: str | None) -> Path | None:
    """The folder that files are copied from; None = they are downloaded."""
    if origin is None or urlsplit(origin).scheme in ("http", "https"):
        return None
    folder = Path(origin)
    if not folder.is_dir():
        raise ConfigError(f"--from {origin}: no such folder; give a folder, or an address with http:// or https://")
    return folder


def _copied_unpacked(file: PublicFile, folder: Path, how: Fetching) -> bool:
    """Copy what an archive holds from a folder that holds it unpacked and not the archive; False where not so."""
    unpacked = [(name, _found(folder, name)) for name in file.holds]
    if not unpacked or _found(folder, file.name) or not all(path for _, path in unpacked):
        return False
    for name, path in unpacked:
        if path and path.resolve() != (how.out / name).resolve():
            _copy_file(path, how.out / name)
        how.say(f"{how.out / name}: from {path}, unpacked already; no digest is published to compare with")
    return True


def _found(folder: Path, name: str) -> Path | None:
    """A file in a folder, under its name with or without the folders in it."""
    return next((path for path in (folder / name, folder / Path(name).name) if path.is_file()), None)


def _copy(file: PublicFile, folder: Path, target: Path, how: Fetching) -> None:
    source = _found(folder, file.name)
    if source is None:
        raise TraceError(f"--from {folder}: holds no {file.name}; download {file.url} and put it there")
    _copy_file(source, target)
    how.say(f"{target}: copied from {source}")


def _copy_file(source: Path, target: Path) -> None:
    with replacing(target) as draft:
        shutil.copyfile(source, draft)


def _download(trace: PublicTrace, file: PublicFile, target: Path, how: Fetching) -> None:
    url = file.url if how.origin is None else f"{how.origin.rstrip('/')}/{file.name}"
    if how.origin is not None:
        how.say(f"{target}: from {url}")
    try:
        with how.progress(file.name) as step:
            download(url, target, lambda done, total: step(done, total or file.size or 0), how.wait_s)
    except UnreachableError as error:
        raise TraceError(f"{error}; {_by_hand(trace, target.parent)}") from None


def _by_hand(trace: PublicTrace, folder: Path) -> str:
    """What to do where there is no network."""
    again = shlex.join(["jobcast", "trace", "fetch", trace.name, "--from", str(folder), "--out", str(folder)])
    files = ", ".join(file.name for file in trace.files)
    return f"run it again later, or download {files} where there is a network, put it into {folder} and run: {again}"
