"""Traces brought to the canonical form, and public ones fetched: what `jobcast trace` imports when it needs it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jobcast.domain.jobs import Pool
from jobcast.models.registry.home import find_home
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import counted
from jobcast.traces.catalogue import CATALOGUE
from jobcast.traces.fetch import Fetching, convert_command, fetch, public_trace
from jobcast.traces.pools import DEFAULT_LOAD, derive_pools, held_beyond, write_pools
from jobcast.traces.readers import read_sources
from jobcast.traces.readers.reading import Reading
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace

AUTO = "auto"
"""The format that looks at what the sources hold."""
MOST_NAMES = 5


def convert(
    format_name: str,
    sources: Sequence[Path],
    out: Path,
    pools_out: Path | None,
    timezone: str | None,
    strict: bool,
    pool_by: str | None = None,
) -> tuple[Trace, str, str | None]:
    """Convert a trace; what was written, its format, and where the quotas come from (None = not asked for).

    Nothing is written unless all of it could be read.

    Parameters
    ----------
    format_name : a format's name, or auto
    sources : its file or files
    out : the trace, CSV or Parquet by its ending
    pools_out : the quotas, as CSV; None = not asked for
    timezone : IANA zone of times without an offset
    strict : make an error of rows that would be left out
    pool_by : account, qos or partition: the column that names pools; None = as the format has it

    Raises
    ------
    TraceError, ConfigError
        A source cannot be read or used, or a place cannot be written to.
    """
    wanted = None if format_name == AUTO else format_name
    reading = read_sources(sources, format=wanted, timezone=timezone, strict=strict)
    if pool_by:
        # Slurm tells quotas of partitions, and of nothing else.
        quotas = reading.pools if pool_by == "partition" else None
        reading = replace(reading, trace=reading.trace.pooled_by(pool_by), pools=quotas)
    if not pools_out:
        write_trace(reading.trace, out)
        return reading.trace, reading.format_name, None
    # Before the trace is written: an error here must leave nothing behind.
    derived = [] if reading.pools else derive_pools(reading.trace)
    write_trace(reading.trace, out)
    write_pools(reading.pools or derived, pools_out)
    return reading.trace, reading.format_name, _origin(reading, derived)


def _origin(reading: Reading, derived: Sequence[Pool]) -> str:
    """Where the quotas come from, and which of the trace's pools have none."""
    if reading.pools is None:
        rule = f"quotas derived from the jobs: busy to {DEFAULT_LOAD:.0%} on average, at least the widest job"
        return rule + held_beyond(reading.trace, derived)
    result = {quota.pool for quota in reading.pools.quotas}
    # CPU jobs need no quota.
    untold = [pool for pool in reading.trace.on_gpus.pools if pool not in result]
    said = f"quotas of {counted(len(result), 'pool')} as the sources tell them"
    if not untold:
        return said
    shown = ", ".join(untold[:MOST_NAMES]) + (", ..." if untold[MOST_NAMES:] else "")
    return f"{said}, none for {counted(len(untold), 'pool')} with jobs ({shown}): add rows, or replay with --pools-only"


RAW = Path("data", "raw")
"""Where raw traces go below the folder that holds store and data."""


def catalogue_table() -> str:
    """All public traces: name, size, licence, what it is."""
    lines = ["Public traces. Fetch one with: jobcast trace fetch NAME", ""]
    for trace in CATALOGUE.values():
        sizes = ", ".join(f"{file.name} {file.shown_size}" for file in trace.files)
        lines += [
            f"{trace.name:<17}{trace.what}",
            f"{'':<17}{sizes}",
            f"{'':<17}{trace.licence}",
            f"{'':<17}{trace.home}",
        ]
    return "\n".join(lines)


def about(name: str) -> str:
    """What a public trace is, its licence, what to cite, where its files lie; ConfigError where there is none."""
    trace = public_trace(name)
    lines = [f"{trace.name}: {trace.what}", f"  from {trace.home}", f"  licence: {trace.licence}"]
    files = [f"  {file.url} ({file.shown_size})" for file in trace.files]
    return "\n".join([*lines, f"  cite: {trace.citation}", *files])


def fetched(name: str, origin: str | None, out: Path | None, console: Console) -> str:
    """Fetch a public trace and return the command that converts it.

    Parameters
    ----------
    name : of a public trace
    origin : a folder or an address that holds its files; None = where they are published
    out : the folder that they go to; None = data/raw/NAME
    console : told what is done

    Raises
    ------
    TraceError, ConfigError
        As `traces.fetch.fetch`.
    """
    trace = public_trace(name)
    folder = out if out is not None else _shortest(find_home() / RAW / name)
    fetch(trace, Fetching(folder, origin, console.note, console.progress))
    return convert_command(trace, folder)


def _shortest(path: Path) -> Path:
    """The path from the working folder where it lies below it."""
    here = Path.cwd()
    # The command that is told can be copied as it is.
    return path.relative_to(here) if path.is_relative_to(here) else path
