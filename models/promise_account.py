"""Promises that are kept, and their account: how many came true, by week, pool, version or policy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError, LedgerError
from jobcast.domain.times import iso
from jobcast.models.promise_ledger import LOOK, Outcome, Outcomes, Promise, PromiseLedger
from jobcast.models.promise_record import counts, last_look_s, outcomes_of, promised, recorded_kinds
from jobcast.traces.table import Trace

MONDAY_S, WEEK_S = 4 * 86400.0, 7 * 86400.0
GROUPS: Mapping[str, Callable[[Promise], str]] = {
    "week": lambda one: (iso(one.at_s - (one.at_s - MONDAY_S) % WEEK_S) or "")[:10],
    "pool": lambda one: one.pool,
    "version": lambda one: one.version,
    "policy": lambda one: one.policy,
}
"""What promises are counted by; weeks are those of the instants that they hold for, from Monday on in UTC."""
ALONE = " alone"
"""Ends the version of what was not told by itself but combined with another: it is seen where versions are compared."""
ALL = "all"
Note = Callable[[str], None]


def keep(home: Path, promises: Iterable[Promise], note: Note) -> int:
    """Keep promises; how many were. An answer is worth giving all the same, so that a ledger that fails is a note."""
    try:
        return PromiseLedger(home).keep(promises)
    except LedgerError as error:
        note(f"not kept in the promise ledger: {error}")
        return 0


def account(home: Path, trace: Trace | None, by: str | None, keeping: bool = True) -> dict[str, Any]:
    """What became of the promises of a home: by what a trace records, else by what was kept before.

    Raises LedgerError for a ledger that cannot be read, ConfigError for a trace that records neither starts nor ends.
    """
    ledger = PromiseLedger(home)
    made, new = ledger.promises(), 0
    if trace is None:
        outcomes = ledger.outcomes()
        as_of_s = last_look_s(outcomes)
    elif recorded_kinds(trace):
        as_of_s = trace.last_known_s
        outcomes = outcomes_of(trace, {one.event for one in made}, as_of_s)
        if keeping and made:
            ledger.keep_outcomes({LOOK: Outcome(None, as_of_s)}, trace.source.sha256)
            new = ledger.keep_outcomes(outcomes, trace.source.sha256)
    else:
        raise ConfigError(
            f"{trace.source.path}: records neither starts nor ends (start_time, end_time); give one that does, as "
            "`simulate --out` and `trace convert sacct` write them"
        )
    return {"ledger": str(ledger.file), "new_outcomes": new} | judged(made, outcomes, as_of_s, by)


def judged(made: Sequence[Promise], outcomes: Outcomes, as_of_s: float, by: str | None) -> dict[str, Any]:
    """Promises counted by a column of `GROUPS`, or all together, as of an instant in seconds from the epoch."""
    real = promised(made)
    told = real if by == "version" else [one for one in real if not one.version.endswith(ALONE)]
    known = [one for one in told if one.at_s <= as_of_s and one.event in outcomes]
    imagined = sum(one.what_if for one in made)
    return {
        "as_of": iso(as_of_s) if known else None,
        "promises": len(told) + imagined,
        "what_if": imagined,
        "without_outcome": len(told) - len(known),
        "by": by,
        "groups": counts(known, outcomes, as_of_s, GROUPS[by] if by else lambda one: ALL),
    }
