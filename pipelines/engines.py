"""Where simulations run in parallel: joblib's own processes, or Ray."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from jobcast.domain.errors import ConfigError

ENGINES = ("local", "ray")


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
