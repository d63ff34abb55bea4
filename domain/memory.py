"""How much memory a piece of work may take: what would need more is refused before it is asked for."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from jobcast.domain.errors import ConfigError, MemoryLimitError

VARIABLE = "JOBCAST_MEMORY"
"""The limit where no `memory_limit` is in force, as `parse_memory` reads it."""
SHARE_OF_FREE = 0.5
"""The default limit: room is left for what else the machine does."""
REMEDY = "narrow the window with --from and --until, or allow more with --memory"
MEMINFO = Path("/proc/meminfo")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_limit: ContextVar[int | None] = ContextVar("memory_limit", default=None)


def parse_memory(text: str) -> int:
    """Bytes from `4GB`, `512MB`, `1.5G` or a plain number; ConfigError for what is none or nothing.

    >>> parse_memory("512MB"), parse_memory("1.5 g"), parse_memory("1000")
    (512000000, 1500000000, 1000)
    """
    # Decimal units, also for GiB: an estimate needs no more.
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < 1:
        raise ConfigError(f"memory {text!r}: write a size such as 4GB or 512MB")
    return size


@contextmanager
def memory_limit(limit: int) -> Iterator[None]:
    """Let no piece of work meanwhile take more than so many bytes, by its estimate."""
    # A context variable: threads and tasks of a server have limits of their own.
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def need_memory(size: float, what: str, remedy: str = REMEDY) -> None:
    """Refuse work that would need more bytes than the limit.

    The limit is that of `memory_limit`, else of the variable JOBCAST_MEMORY, else half of what is free now.

    Raises
    ------
    MemoryLimitError
        It would; the line says what needs how much, and what to do.
    ConfigError
        JOBCAST_MEMORY holds no size.
    """
    # The nearest of three: code, then environment, then machine.
    limit = _limit.get()
    if limit is None:
        limit = parse_memory(given) if (given := os.environ.get(VARIABLE)) else _default()
    if limit is not None and size > limit:
        raise MemoryLimitError(f"{what} needs about {_shown(size)} of memory, the limit is {_shown(limit)}; {remedy}")


def _default() -> int | None:
    """Half of what is free; None where the system does not tell."""
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    # Only Linux has this file; elsewhere nothing is refused.
    except OSError:
        return None
    return int(SHARE_OF_FREE * 1024 * int(match[1])) if match else None


def _shown(size: float) -> str:
    """Bytes as a person reads them.

    >>> _shown(17.1e9), _shown(3e6)
    ('17.1 GB', '3.0 MB')
    """
    unit = next(unit for unit in ("T", "G", "M", "K", "") if size >= _UNITS[unit] or not unit)
    return f"{size / _UNITS[unit]:,.1f} {unit}B"
