"""What died commands left behind, swept before the next one that writes to the store begins."""

from pathlib import Path

from jobcast.models.registry.home import find_home
from jobcast.models.registry.runs import sweep_store
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import counted
from jobcast.traces.owners import sweep_drafts_below, sweep_scratch

DATA = "data"


def tidy_home(console: Console, out: Path | None = None) -> Path:
    """The home of the registry, swept, for a command that writes to its store.

    Runs that a dead process left running are ended; half-written files under the store, the home's data, `out` and
    among the system's temporary ones are removed. What a living process owns stays. What was done is said.

    Raises RegistryError for a store that cannot be written to.
    """
    home = find_home()
    store = sweep_store(home)
    roots = {place.resolve() for place in (home / DATA, out) if place is not None}
    drafts = store.drafts + sum(sweep_drafts_below(root) for root in sorted(roots)) + sweep_scratch()
    parts = [counted(count, noun) for count, noun in ((store.runs, "run"), (drafts, "half-written file")) if count]
    if parts:
        console.note(f"swept what interrupted commands had left: {' and '.join(parts)}")
    return home
