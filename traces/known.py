"""As of when an end was known: accounting shows it later than it came."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite

from jobcast.domain.errors import ConfigError

_KNOWN_AFTER_S: ContextVar[float] = ContextVar("known_after_s", default=0.0)


def known_after_s() -> float:
    """Seconds after which the ends of traces read now are known, where their rows name no `known_time`."""
    return _KNOWN_AFTER_S.get()


@contextmanager
def ends_known_after(seconds: float) -> Iterator[None]:
    """Ends of traces read meanwhile are known so many seconds later. Raises ConfigError for a number below 0.

    >>> with ends_known_after(60.0):
    ...     known_after_s()
    60.0
    """
    if not (isfinite(seconds) and seconds >= 0.0):
        raise ConfigError(f"known_after_s must be 0 or more seconds, got {seconds:g}; 0 counts an end at once")
    token = _KNOWN_AFTER_S.set(seconds)
    try:
        yield
    finally:
        _KNOWN_AFTER_S.reset(token)
