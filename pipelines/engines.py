"""Where simulations run in parallel: joblib's own processes, or Ray."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

from jobcast.domain.errors import ConfigError

ENGINES = ("local", "ray")
CHUNK = 8
"""Tasks a worker that Ray is given at a time: it answers for all of them at once."""


def results(tasks: Iterable[Any], *, jobs: int, engine_name: str) -> Iterator[Any]:
    """What joblib's delayed tasks return, as they are done, in no order; Ray's come in chunks.

    Raises ConfigError for an unknown engine, or where Ray is not installed.
    """
    from joblib import Parallel

    with engine(engine_name):
        if engine_name == "local":
            with ctrl_c_blocked() if jobs > 1 else nullcontext():
                done = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1)(
                    tasks
                )
            yield from done
            return
        left = iter(tasks)
        while chunk := list(islice(left, CHUNK * jobs)):
            yield from Parallel(n_jobs=jobs, batch_size=1)(chunk)


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
    register_ray()
    with parallel_config(backend="ray"):
        yield


@contextmanager
def ctrl_c_blocked() -> Iterator[None]:
    """Hold SIGINT back while workers are begun. They stay deaf to it: a terminal's Ctrl-C is the parent's to handle."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # else it would be begun with the workers, which lets SIGINT through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
