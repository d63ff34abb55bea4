from collections.abc import Callable
from pathlib import Path

import pytest

from jobcast.traces.table import Trace
from tests.scenarios import frame_of

HEADER = "job_id,pool,submit_time,duration,gpus\n"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes what a file of that name is to hold."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def csv_file(written: Callable[[str, str | bytes], Path]) -> Callable[[str], Path]:
    """Writes text as a canonical CSV file; rows alone get the header of the required columns."""
    return lambda text, header=HEADER: written("jobs.csv", header + text)


@pytest.fixture
def make_trace() -> Callable[..., Trace]:
    """Builds a trace from rows of (pool, submit_s, duration_s, gpus); ids are row numbers."""

    def build(*rows: tuple[str, float, float | None, int], **columns: list[object]) -> Trace:
        pools, submit_s, duration_s, gpus = zip(*rows, strict=True)
        lasts_s = [None if s is None else float(s) for s in duration_s]
        frame = frame_of(list(map(float, submit_s)), pool=pools, duration=lasts_s, gpus=gpus, **columns)
        return Trace.from_frame(frame, name="made")

    return build
