"""Where simulations run in parallel: joblib's own processes, or Ray."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.report.compiling import compiling_in_workers, report_compiling

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

T = TypeVar("T")
ENGINES = ("local", "ray")
CHUNK = 8
"""Tasks a worker that Ray is given at a time: it answers for all of them at once."""
LOOKS_S = 1.0
"""Between a worker's looks whether its parent is there."""


def results(tasks: Iterable[Any], *, jobs: int, engine_name: str) -> Iterator[Any]:
    """What joblib's delayed tasks return, as they are done, in no order; Ray's come in chunks.

    Raises ConfigError for an unknown engine, or where Ray is not installed.
    """
    from joblib import Parallel

    with engine(engine_name):
        if engine_name == "local":
            # A single job runs in this process, which must stay open to Ctrl-C.
            begun_with = (os.getpid(), compiling_in_workers()) if jobs > 1 else ()
            workers = {"initializer": _begin, "initargs": begun_with} if jobs > 1 else {}
            with signals_blocked() if jobs > 1 else nullcontext():
                done = Parallel(
                    n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1, **workers
                )(tasks)
            try:
                for result in done:  # noqa: UP028 (`yield from` would close it before the warnings are held back)
                    yield result
            finally:
                with warnings.catch_warnings():
                    # Whoever ends a command is told so in one line; that joblib gives up tasks then is no news.
                    warnings.simplefilter("ignore", UserWarning)
                    done.close()
            return
        # Ray takes a whole list at once: chunks keep results coming and memory bounded.
        left = iter(tasks)
        while chunk := list(islice(left, CHUNK * jobs)):
            yield from Parallel(n_jobs=jobs, batch_size=1)(chunk)


def _begin(parent: int, lasts: "Event") -> None:
    """A worker begins."""
    report_compiling(lasts)
    end_with(parent)


def end_with(parent: int) -> None:
    """In a worker: end once its parent is gone, killed without a chance to end it.

    It would wait for ever for somebody to take its result, deaf to all signals but SIGKILL (`signals_blocked`).
    """

    def watch() -> None:
        # On Windows, where the number stays what it was, this looks in vain.
        while os.getppid() == parent:
            time.sleep(LOOKS_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Let joblib run on an engine of `ENGINES`. Raises ConfigError for another, or where Ray is not installed."""
    from joblib import parallel_config

    if name not in ENGINES:
        raise ConfigError(f"--engine {name}: unknown; choose from {', '.join(ENGINES)}")
    if name == "local":
        yield
        return
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ConfigError("--engine ray: Ray is not installed; pip install 'jobcast[ray]'") from error
    if not ray.is_initialized():
        ray.init(address="local", log_to_driver=False, include_dashboard=False)
    register_ray()  # type: ignore[no-untyped-call, unused-ignore]  # Ray tells types where it is installed
    with parallel_config(backend="ray"):
        yield


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Hold back what ends a command while workers are begun: they stay deaf to it, and the parent ends them.

    A terminal's Ctrl-C, and a SIGTERM of Slurm or systemd, reach all processes of a command at once.
    """
    # Windows has none, and starts workers in another way.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # else it would be begun with the workers, which lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def meanwhile(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Do some work in a process of its own, on one core, while the block runs.

    What it raises comes up after the block; what it returns is then the answer of what is yielded.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    with signals_blocked():
        # One core: the block beside it has the others.
        one_core = {"LOKY_MAX_CPU_COUNT": "1"}
        executor = ProcessPoolExecutor(1, env=one_core, initializer=end_with, initargs=(os.getpid(),))
        future = executor.submit(work)
    try:
        yield future.result
        future.result()
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def end_workers() -> None:
    """End the workers that joblib has begun, at once: what they work on is no longer wanted."""
    # Looked up, not imported: without workers there is nothing to end, and joblib is slow to load.
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = loky._executor if loky else None
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=True)
