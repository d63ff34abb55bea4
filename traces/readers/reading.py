"""What a reader makes of its files."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import PathLike
from jobcast.traces.pools import PoolsTable
from jobcast.traces.table import Source, Trace


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace, and the quotas of its pools where the files tell them."""

    trace: Trace
    pools: PoolsTable | None = None


def only_source(sources: Sequence[PathLike], format_name: str) -> PathLike:
    """The one file of a format that comes in one; ConfigError where there are more."""
    if len(sources) != 1:
        given = ", ".join(os.fspath(source) for source in sources)
        raise ConfigError(f"{format_name} takes one source, got {len(sources)} ({given}); convert them one by one")
    return sources[0]


def source_of(paths: Sequence[PathLike], sha256s: Sequence[str], rows: int) -> Source:
    """Where a trace of one or several files came from: the paths, one hash over all of them, the records of jobs.

    Parameters
    ----------
    paths, sha256s : the files and the hex digests of their bytes, in an order of the format's own
    rows : records of jobs in them; a reader keeps or drops each, and says how many it dropped and why
    """
    shown = " + ".join(os.fspath(path) for path in paths)
    digest = sha256s[0] if len(sha256s) == 1 else hashlib.sha256("\n".join(sha256s).encode()).hexdigest()
    return Source(shown, digest, rows)
