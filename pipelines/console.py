"""What a person sees while jobcast works: progress and notes on stderr, results on stdout."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Step = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

PLAIN_LINE_EVERY_S = 10.0


def _ignore(done: int, total: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Console:
    """Speaks to the user; `quiet` says nothing but errors."""

    quiet: bool = False

    def note(self, text: str) -> None:
        """One line on stderr."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def result(self, text: str) -> None:
        """A result on stdout, whatever `quiet` says of the rest."""
        print(text, flush=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Step]:
        """Show a bar on a terminal and plain lines elsewhere."""
        if self.quiet:
            yield _ignore
        elif sys.stderr.isatty():
            yield from _bar(label)
        else:
            yield _plain_lines(label)


def _bar(label: str) -> Iterator[Step]:
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=RichConsole(stderr=True)) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _plain_lines(label: str) -> Step:
    last = time.monotonic()

    def step(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_LINE_EVERY_S and done < total:
            last = time.monotonic()
            print(f"{label}: {100 * done // max(total, 1)} %", file=sys.stderr, flush=True)

    return step
