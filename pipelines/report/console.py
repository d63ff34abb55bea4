"""What a person sees while jobcast works: progress and notes on stderr, results on stdout."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jobcast.pipelines.report.compiling import working_s

Step = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

PLAIN_LINE_EVERY_S = 10.0
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that act on a terminal or turn its text around instead of showing; line feeds and tabs are ours."""


def printable(text: str) -> str:
    r"""Text with what would act on a terminal written out, as names from files may hold anything.

    >>> print(printable("pool\x1b[2J"))
    pool\x1b[2J
    >>> print(printable("a\u202eb"))
    a\u202eb
    """
    # Written out and not dropped: one sees that the name is odd.
    return UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def part_of(progress: Step | None, part: int, parts: int) -> Step | None:
    """Progress of one of several parts of equal length, from 0, as that of the whole; parts may differ in their steps.

    >>> part_of(lambda done, total: print(done, total), 1, 4)(5, 10)
    15 40
    """
    return None if progress is None else lambda done, total: progress(part * total + done, parts * total)


@dataclass(frozen=True, slots=True)
class Console:
    """Speaks to the user; `quiet` says nothing but errors."""

    quiet: bool = False

    def note(self, *lines: str) -> None:
        """Lines on stderr."""
        for line in () if self.quiet else lines:
            print(printable(line), file=sys.stderr, flush=True)

    def result(self, text: str) -> None:
        """A result on stdout, whatever `quiet` says of the rest."""
        print(printable(text), flush=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Step]:
        """Show a bar on a terminal and plain lines elsewhere."""
        if self.quiet:
            yield lambda done, total: None
        # A log file gets lines: a bar would fill it with control characters.
        elif sys.stderr.isatty():
            yield from _bar(label)
        else:
            yield _plain_lines(label)


@dataclass(frozen=True, slots=True)
class Kept(Console):
    """Keeps notes in `lines` for somebody else to tell; shows no progress."""

    quiet: bool = True
    lines: list[str] = field(default_factory=list)

    def note(self, *lines: str) -> None:
        """Keep lines."""
        self.lines.extend(lines)


def _bar(label: str) -> Iterator[Step]:
    # Here, since commands that show no bar must start fast.
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    # No markup: labels hold names from files.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=RichConsole(stderr=True), get_time=working_s) as bars:
        task = bars.add_task(printable(label), total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _plain_lines(label: str) -> Step:
    last = working_s()

    def step(done: int, total: int) -> None:
        nonlocal last
        # The end is told by what follows.
        if working_s() - last >= PLAIN_LINE_EVERY_S and done < total:
            last = working_s()
            print(f"{printable(label)}: {100 * done // max(total, 1)} %", file=sys.stderr, flush=True)

    return step
