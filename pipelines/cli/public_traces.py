"""Public traces for a person: what there is, fetched with progress, and the command that comes next."""

from pathlib import Path

from jobcast.models.registry.home import find_home
from jobcast.pipelines.report.console import Console
from jobcast.traces.catalogue import CATALOGUE, PublicTrace
from jobcast.traces.fetch import Fetching, convert_command, fetch, public_trace

RAW = Path("data", "raw")
"""Where raw traces go below the folder that holds store and data."""


def catalogue_table() -> str:
    """All public traces: name, size, licence, what it is."""
    lines = ["Public traces. Fetch one with: jobcast trace fetch NAME", ""]
    for trace in CATALOGUE.values():
        lines += [
            f"{trace.name:<17}{trace.what}",
            f"{'':<17}{_sizes(trace)}",
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


def _sizes(trace: PublicTrace) -> str:
    return ", ".join(f"{file.name} {file.shown_size}" for file in trace.files)


def _shortest(path: Path) -> Path:
    """The path from the working folder where it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
