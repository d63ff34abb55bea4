"""How far several runs are that go on in other processes, so that progress moves while one of them lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from jobcast.pipelines.report.console import Step
from jobcast.traces.owners import scratch_room

PARTS = 100
"""Of each run, which takes a byte of the file."""
LOOKS_S = 1.0
"""Between looks at how far they are."""


@dataclass(frozen=True, slots=True)
class Going:
    """A file that tells how far each run is: joblib's workers have no other way back before they are done."""

    path: Path

    def of(self, number: int) -> Step:
        """What the run of a number calls as it goes on; it may be called often."""
        told = 0

        def step(done: int, total: int) -> None:
            nonlocal told
            part = PARTS * done // max(total, 1)
            if part > told:
                told = part
                with self.path.open("r+b") as file:
                    file.seek(number)
                    file.write(bytes([part]))

        return step

    def far(self) -> tuple[int, int]:
        """Parts that are done, and all parts."""
        parts = self.path.read_bytes()
        return sum(parts), PARTS * len(parts)


@contextmanager
def going(runs: int, progress: Step | None) -> Iterator[Going | None]:
    """Call `progress` with how far all runs are together, now and then and after the last; None where nobody asks."""
    if progress is None:
        yield None
        return
    with scratch_room("going") as folder:
        path = folder / "going"
        path.write_bytes(bytes(runs))
        told, over = Going(path), Event()

        def look() -> None:
            while not over.wait(LOOKS_S):
                progress(*told.far())

        watch = Thread(target=look, daemon=True)
        watch.start()
        try:
            yield told
        finally:
            over.set()
            watch.join()
        progress(*told.far())
