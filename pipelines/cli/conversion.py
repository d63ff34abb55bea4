"""A trace of any format brought to the canonical form."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobcast.traces.pools import DEFAULT_LOAD, derive_pools, write_pools
from jobcast.traces.readers import read_sources
from jobcast.traces.readers.reading import Reading
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace

AUTO = "auto"
"""The format that looks at what the sources hold."""
MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written: the trace, its format, and where the quotas come from (None = not asked for)."""

    trace: Trace
    format_name: str
    quotas_from: str | None


def convert(
    format_name: str, sources: Sequence[Path], out: Path, pools_out: Path | None, timezone: str | None, strict: bool
) -> Conversion:
    """Convert a trace; nothing is written unless all of it could be read.

    Parameters
    ----------
    format_name : a format's name, or auto
    sources : its file or files
    out : the trace, CSV or Parquet by its ending
    pools_out : the quotas, as CSV; None = not asked for
    timezone : IANA zone of times without an offset
    strict : make an error of rows that would be left out

    Raises
    ------
    TraceError, ConfigError
        A source cannot be read or used, or a place cannot be written to.
    """
    wanted = None if format_name == AUTO else format_name
    reading = read_sources(sources, format=wanted, timezone=timezone, strict=strict)
    if not pools_out:
        write_trace(reading.trace, out)
        return Conversion(reading.trace, reading.format_name, None)
    quotas = reading.pools or derive_pools(reading.trace)
    write_trace(reading.trace, out)
    write_pools(quotas, pools_out)
    return Conversion(reading.trace, reading.format_name, _origin(reading))


def _origin(reading: Reading) -> str:
    """Where the quotas come from, and which of the trace's pools have none."""
    if reading.pools is None:
        return f"quotas derived from the jobs: busy to {DEFAULT_LOAD:.0%} on average, at least the widest job"
    told = {quota.pool for quota in reading.pools.quotas}
    untold = [pool for pool in reading.trace.on_gpus.pools if pool not in told]
    said = f"quotas of {len(told):,} pools as the sources tell them"
    if not untold:
        return said
    shown = ", ".join(untold[:MOST_NAMES]) + (", ..." if untold[MOST_NAMES:] else "")
    return f"{said}, none for {len(untold):,} pools with jobs ({shown}): add rows, or replay with --pools-only"
