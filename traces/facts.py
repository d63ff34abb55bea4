"""Tables that lie beside a trace, as `jobcast trace enrich` writes them, found by whoever reads the trace."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jobcast.domain.errors import TraceError
from jobcast.traces.files import PathLike, read_file

JOBS, ASSUMPTIONS = "jobs.parquet", "assumptions.json"
KIND = "jobcast trace enrich"
"""What assumptions say that they are of."""
FILES: Mapping[str, str] = {
    "speedups": "speedups.csv",
    "throughputs": "throughputs.csv",
    "datasets": "datasets.csv",
    "regimes": "regimes.csv",
    "step_times": "step_times.csv",
    "training_curves": "training_curves.csv",
    "tasks": "tasks.parquet",
    "curves": "curves.parquet",
    "profiles": "profiles.csv",
}
"""File beside the jobs by the name that `--set` gives it."""


def facts_beside(trace: PathLike, names: Collection[str] = tuple(FILES)) -> dict[str, Path]:
    """Of some tables those that lie beside a trace, by the names that `--set` gives them; none where it is plain.

    Raises
    ------
    TraceError
        The assumptions cannot be read, or a table is not the one that they name.
    """
    folder = Path(trace).parent
    found = {}
    for name, described in (assumptions_beside(trace) or {}).get("files", {}).items():
        if name not in names:
            continue
        file = read_file(folder / described["file"])
        # a table changed by hand would quietly contradict the assumptions
        if file.sha256 != described["sha256"]:
            raise TraceError(
                f"{file.path}: is not the table that {folder / ASSUMPTIONS} names; run jobcast trace enrich again, or "
                f"name your own by --set {name}=FILE"
            )
        found[name] = folder / described["file"]
    return found


def assumptions_beside(trace: PathLike) -> Mapping[str, Any] | None:
    """What an enriched trace rests on, as its assumptions.json tells it; None for any other trace.

    Raises TraceError for a file that cannot be read.
    """
    path = Path(trace).parent / ASSUMPTIONS
    # other traces may lie in the folder, for which nothing is assumed
    if Path(trace).name != JOBS or not path.is_file():
        return None
    return _read(path)


def is_enriched(folder: Path) -> bool:
    """Whether a folder is one that `jobcast trace enrich` wrote, or an empty one."""
    path = folder / ASSUMPTIONS
    if not path.is_file():
        return not any(folder.iterdir())
    try:
        return bool(_read(path))
    except TraceError:
        return False


def sentences(assumptions: Mapping[str, Any], names: set[str] | None = None) -> list[str]:
    """What to tell of assumptions: a sentence a fact, of those alone that own one of some tables.

    A fact without tables is its columns, which `names` may hold beside tables.
    """
    facts = assumptions["facts"].values()
    return [fact["says"] for fact in facts if names is None or not names.isdisjoint(fact["tables"] or fact["columns"])]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        saved = json.loads(read_file(path).data)
        if saved["kind"] != KIND:
            raise ValueError(f"of {saved['kind']}")
        for name, one in saved["files"].items():
            if one["file"] != FILES[name] or not isinstance(one["sha256"], str):
                raise ValueError(f"the file of {name} is not {FILES[name]}")
        facts = saved["facts"].values()
        if not all(fact["says"] and isinstance(fact["tables"] + fact["columns"], list) for fact in facts):
            raise ValueError("a fact without words")
    # whatever JSON holds instead of the expected mapping
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(
            f"{path}: not what jobcast trace enrich wrote ({error}); run it again, or move the trace away from it"
        ) from None
    return dict(saved)
