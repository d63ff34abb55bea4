"""Says that parts are being compiled, which the first run of them on a machine waits for: up to half a minute."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from threading import Thread, Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

LASTS_S = 0.5
"""Shorter compiling is no wait that needs a reason."""
NOTICE = "compiling, once ..."


@dataclass(slots=True)
class Compiling:
    """How long numba has compiled in this process, told of when it begins to last; functions it loads do not count."""

    notice: Callable[[str], None] = lambda text: None
    depth: int = 0
    since_s: float = 0.0
    spent_before_s: float = 0.0
    timer: Timer | None = None

    @property
    def spent_s(self) -> float:
        """Seconds of compiling up to now."""
        return self.spent_before_s + (time.monotonic() - self.since_s if self.depth else 0.0)

    def begin(self) -> None:
        """A function is being compiled, maybe for one that is."""
        self.depth += 1
        if self.depth == 1:
            self.since_s = time.monotonic()
            # Once in a process: what has lasted is not told again.
            if self.spent_before_s < LASTS_S:
                self.timer = Timer(LASTS_S - self.spent_before_s, self.notice, (NOTICE,))
                self.timer.daemon = True
                self.timer.start()

    def end(self) -> None:
        """It is compiled."""
        if self.depth == 1:
            self.spent_before_s = self.spent_s
            if self.timer is not None:
                self.timer.cancel()
        self.depth -= 1


COMPILING = Compiling()
"""Of this process."""


def working_s() -> float:
    """A clock that stands still while something is compiled, seconds."""
    return time.monotonic() - COMPILING.spent_s


def tell_compiling(notice: Callable[[str], None]) -> None:
    """Call `notice` when compiling begins to last; numba, slow to import, is listened to once somebody needs it."""
    COMPILING.notice = notice
    if "numba.core.dispatcher" in sys.modules:
        _listen()
    elif not any(isinstance(finder, _BeforeNumba) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeNumba())


@cache
def compiling_in_workers() -> "Event":
    """Set by workers of this process in which compiling lasts (`report_compiling`): told as its own is, once."""
    # Here, since commands without workers must start fast.
    from joblib.externals.loky.backend import get_context

    lasts = get_context("loky").Event()

    def tell() -> None:
        lasts.wait()
        if COMPILING.spent_s < LASTS_S:
            COMPILING.notice(NOTICE)

    Thread(target=tell, daemon=True).start()
    return lasts  # type: ignore[no-any-return]


def report_compiling(lasts: "Event") -> None:
    """In a worker, which shows nothing: set its parent's `compiling_in_workers` when compiling begins to last."""
    tell_compiling(lambda text: lasts.set())


class _BeforeNumba(MetaPathFinder):
    """Finds nothing, but is asked when numba's dispatcher, which tells of compiling, is about to be imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "numba.core.dispatcher":
            sys.meta_path.remove(self)
            _listen()


def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            COMPILING.begin()

        def on_end(self, event: Any) -> None:
            COMPILING.end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
