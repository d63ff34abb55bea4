"""Public traces fetched from a server of our own, and from folders."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.catalogue import CATALOGUE, PublicFile, PublicTrace
from jobcast.traces.fetch import Fetching, UnreachableError, convert_command, download, fetch, public_trace, unpack
from tests.shared import refused

DATA = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(DATA).hexdigest()


class Shelf:
    """What a server holds, how it behaves, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/data.bin": DATA}
        self.ranges = True
        self.tag = '"one"'
        self.cut_after: list[int] = []
        self.statuses: list[int] = []
        self.asked: list[str] = []
        self.url = ""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """A server on this machine."""
    holds = Shelf()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            holds.asked.append(asked)
            body = holds.files.get(self.path)
            status = holds.statuses.pop(0) if holds.statuses else 200
            if body is None or status != 200:
                self.send_error(404 if body is None else status)
                return
            begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and holds.ranges else 0
            begin = begin if self.headers.get("If-Range", holds.tag) == holds.tag else 0
            if begin >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - begin))
            self.send_header("ETag", holds.tag)
            self.end_headers()
            rest = body[begin:]
            self.wfile.write(rest[: holds.cut_after.pop(0)] if holds.cut_after else rest)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    holds.url = f"http://127.0.0.1:{server.server_port}"
    yield holds
    server.shutdown()
    server.server_close()


def quiet(done: int, total: int) -> None:
    pass


@contextmanager
def no_progress(label: str) -> Iterator[object]:
    yield quiet


def how(out: Path, origin: str | None = None, told: list[str] | None = None) -> Fetching:
    return Fetching(out, origin, (told if told is not None else []).append, no_progress, wait_s=0.0)


def made(*files: PublicFile) -> PublicTrace:
    sources = tuple(name for file in files for name in file.holds or (file.name,))
    return PublicTrace("made", "made up", "canonical", files, "https://example.org", "none", "nobody", sources)


def get(shelf: Shelf, target: Path, path: str = "/data.bin") -> None:
    download(shelf.url + path, target, quiet, wait_s=0.0)


def test_a_file_arrives_whole_and_leaves_no_part(shelf, tmp_path):
    seen = []
    download(shelf.url + "/data.bin", tmp_path / "a", lambda done, total: seen.append((done, total)), 0.0)
    assert (tmp_path / "a").read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_download_that_is_cut_goes_on_where_it_stopped(shelf, tmp_path):
    shelf.cut_after = [300_000, 300_000]
    get(shelf, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert shelf.asked == ["", "bytes=300000-", "bytes=600000-"]


def test_a_part_is_resumed_by_a_later_run(shelf, tmp_path):
    shelf.cut_after = [300_000, 0, 0, 0, 0, 0]
    refused(UnreachableError, "stopped again and again", get, shelf, tmp_path / "a")
    assert (tmp_path / "a.part").stat().st_size == 300_000
    shelf.cut_after, shelf.asked = [], []
    get(shelf, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert shelf.asked == ["bytes=300000-"]


@pytest.mark.parametrize("change", ["no ranges", "new content", "another address"])
def test_a_part_that_cannot_be_gone_on_with_is_begun_anew(shelf, tmp_path, change):
    shelf.cut_after = [300_000, 0, 0, 0, 0]
    refused(UnreachableError, "", get, shelf, tmp_path / "a")
    shelf.cut_after, wanted, path = [], DATA, "/data.bin"
    if change == "no ranges":
        shelf.ranges = False
    elif change == "new content":
        wanted = shelf.files["/data.bin"] = DATA[::-1]
        shelf.tag = '"two"'
    else:
        path, wanted = "/other", DATA[1:]
        shelf.files[path] = wanted
    get(shelf, tmp_path / "a", path)
    assert (tmp_path / "a").read_bytes() == wanted


def test_a_part_that_is_whole_needs_no_more_bytes(shelf, tmp_path):
    (tmp_path / "a.part").write_bytes(DATA)
    (tmp_path / "a.part.of").write_text(f"{shelf.url}/data.bin\n{shelf.tag}\n")
    get(shelf, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert shelf.asked == [f"bytes={len(DATA)}-"]


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(shelf, tmp_path):
    shelf.statuses = [503, 429]
    get(shelf, tmp_path / "a")
    assert len(shelf.asked) == 3
    refused(TraceError, "the server answers 404 Not Found; check the address", get, shelf, tmp_path / "b", "/nothing")
    assert len(shelf.asked) == 4


def test_nobody_there_is_told_with_what_to_do(tmp_path):
    file = PublicFile("data.bin", "http://127.0.0.1:9/data.bin")
    told = refused(TraceError, "", fetch, made(file), how(tmp_path / "out"))
    assert "http://127.0.0.1:9/data.bin: cannot be reached (Connection refused)" in told
    assert f"run: jobcast trace fetch made --from {tmp_path}/out --out {tmp_path}/out" in told
    assert "\n" not in told


def test_a_fetched_file_is_checked(shelf, tmp_path):
    told: list[str] = []
    file = PublicFile("data.bin", f"{shelf.url}/data.bin", len(DATA), SHA256)
    assert fetch(made(file), how(tmp_path, told=told)) == [tmp_path / "data.bin"]
    assert told == [f"{tmp_path}/data.bin: {len(DATA):,} bytes, SHA-256 {SHA256}, as published"]
    shelf.asked = []
    fetch(made(file), how(tmp_path))
    assert shelf.asked == []


@pytest.mark.parametrize(
    "file", [PublicFile("data.bin", "", None, "0" * 64), PublicFile("data.bin", "", 7)], ids=["digest", "size"]
)
def test_what_is_not_the_published_file_is_refused_and_not_kept(shelf, tmp_path, file):
    refused(TraceError, r"data\.bin: not the file of .* or from elsewhere", fetch, made(file), how(tmp_path, shelf.url))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "data.bin").write_bytes(b"mine")
    refused(TraceError, "not the file", fetch, made(file), how(tmp_path, shelf.url))
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def tar_gz(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("a.tar.gz", tar_gz({"x/big": b"0" * 9, "x/log": b"1", "x/list": b"2"}), {"log": b"1", "list": b"2"}),
        ("a.zip", zipped({"__MACOSX/E/log": b"?", "data/E/log": b"1", "data/V/log": b"2"}), {"E/log": b"1"}),
        ("a.swf.gz", gzip.compress(b"; swf", mtime=0), {"a.swf": b"; swf"}),
    ],
    ids=["tar.gz", "zip", "gz"],  # the bytes hold the time at which they were packed
)
def test_archives_give_what_is_wanted_and_no_more(tmp_path, name, data, wanted):
    mirror, out = tmp_path / "mirror", tmp_path / "out"
    mirror.mkdir()
    (mirror / name).write_bytes(data)
    fetch(made(PublicFile(name, "", holds=tuple(wanted))), how(out, str(mirror)))
    held = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert held == {name: data, **wanted}


def test_an_archive_names_no_place_outside_the_folder(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"../../evil/log": b"1"}))
    assert unpack(tmp_path / "a.zip", ["log"], tmp_path / "out") == [tmp_path / "out" / "log"]
    refused(TraceError, "does not hold other", unpack, tmp_path / "a.zip", ["other"], tmp_path / "out")


def test_a_folder_may_hold_the_files_unpacked_already(tmp_path):
    mirror, out = tmp_path / "mirror", tmp_path / "out"
    mirror.mkdir()
    (mirror / "log").write_bytes(b"1")
    file = PublicFile("a.tar.gz", "https://example.org/a.tar.gz", holds=("log",))
    assert fetch(made(file), how(out, str(mirror))) == [out / "log"]
    assert (out / "log").read_bytes() == b"1"
    (mirror / "log").unlink()
    with pytest.raises(TraceError, match=r"holds no a\.tar\.gz; download https://example\.org/a\.tar\.gz"):
        fetch(made(file), how(tmp_path / "other", str(mirror)))
    refused(ConfigError, "no such folder", fetch, made(file), how(out, "ftp://example.org"))


def test_the_catalogue_states_what_a_user_needs():
    assert {"philly", "helios", "pai", "acme", "openb"} <= set(CATALOGUE)
    assert any(name.startswith("swf-") for name in CATALOGUE)
    for name, trace in CATALOGUE.items():
        assert trace.name == name
        assert trace.licence
        assert trace.citation
        held = [held for file in trace.files for held in file.holds or (file.name,)]
        assert set(trace.sources) <= set(held)
        for file in trace.files:
            assert file.url.startswith("https://")
            assert file.url.endswith(f"/{file.name}")
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
    refused(ConfigError, "give one of philly, helios", public_trace, "nope")


def test_the_next_command_is_ready_to_be_run():
    assert convert_command(CATALOGUE["philly"], Path("raw dir")) == (
        "jobcast trace convert philly 'raw dir/cluster_job_log' 'raw dir/cluster_machine_list' "
        "--out philly.parquet --pools-out philly_pools.csv --timezone America/Los_Angeles"
    )


def test_the_published_openb_files_are_those_that_we_know(published):
    for file in CATALOGUE["openb"].files:
        data = (published / "openb" / file.name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)
