"""What became of promises: kept, broken or open at an instant, how many are held, and how far later ones must reach.

Answers of any command or server become promises here, and their account is drawn from a home's ledger.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, WEEK_S
from jobcast.domain.errors import ConfigError, LedgerError
from jobcast.domain.times import iso
from jobcast.models.completion.intervals import LEVELS, IntervalTracker, Position
from jobcast.models.forecast_combination import pinball_losses
from jobcast.models.promise_ledger import END, LOOK, START, Event, Outcome, Outcomes, Promise, PromiseLedger
from jobcast.traces.table import Trace

RECORDED_S = 1.0
"""An event so near to an end of an interval is within: accounting tells whole seconds."""
SHARES = tuple(number / 20 for number in range(21))
"""Of futures, even ones, whose quantiles are kept with a promise."""
FUTURES = 100
"""Equally likely events that stand for kept quantiles."""
KEPT, LOW, HIGH, OPEN = "kept", "broken_low", "broken_high", "open"
"""What a promise can be: the event came within the interval, before it, not by its upper end, or may still come."""
ENOUGH, LAST = 50, 500
"""Promises that intervals are calibrated on: at least, and the last so many."""


def state(promise: Promise, level: float, outcome: Outcome, as_of_s: float) -> str:
    """What an interval of a promise is at an instant; it is broken as soon as its upper end passes without the event.

    Raises ValueError for a level of which the promise has no interval.
    """
    low_s, high_s = _ends(promise, level)
    if outcome.event_s is None:
        # Later than somebody looked it may have come.
        return HIGH if high_s + RECORDED_S < min(as_of_s, outcome.known_s) else OPEN
    if outcome.event_s < low_s - RECORDED_S:
        return LOW
    return HIGH if outcome.event_s > high_s + RECORDED_S else KEPT


def _ends(promise: Promise, level: float) -> tuple[float, float]:
    for share, low_s, high_s in promise.intervals:
        if share == level:
            return low_s, high_s
    raise ValueError(f"job {promise.job_id}: nothing was promised at {level:.0%}")


def promised(promises: Iterable[Promise], level: float = LEVELS[-1]) -> list[Promise]:
    """Those of real jobs with an interval at a level, each question of an instant once, by its last answer."""
    real = (one for one in promises if not one.what_if and any(share == level for share, *_ in one.intervals))
    return list({(*one.event, one.at_s, one.policy, one.version, one.sizes): one for one in real}.values())


def last_look_s(outcomes: Outcomes) -> float:
    """Until when somebody has seen what came, seconds from the epoch; minus infinity where nobody looked."""
    return max((one.known_s for one in outcomes.values()), default=-math.inf)


def looked_until_s(outcomes: Iterable[Outcome], as_of_s: float) -> float:
    """Until when what has not come by an instant is known not to have come: accounting shows ends later than they come.

    >>> looked_until_s([Outcome(5.0, 8.0), Outcome(None, 6.0)], 9.0), looked_until_s([Outcome(5.0, 8.0)], 9.0)
    (6.0, 9.0)
    """
    return min(as_of_s, max((one.known_s for one in outcomes if one.event_s is None), default=as_of_s))


def recorded_kinds(trace: Trace) -> set[str]:
    """What a trace records: starts, ends, or neither where it tells how long jobs ran alone.

    A start and a duration tell an end, but for elastic jobs, whose duration is that on one GPU.
    """
    named = set(trace.jobs.columns)
    ends = "end_time" in named or ("start_time" in named and not trace.elastic.any())
    return {kind for kind, is_told in ((START, "start_time" in named), (END, ends)) if is_told}


def outcomes_of(trace: Trace, events: Iterable[Event], as_of_s: float) -> dict[Event, Outcome]:
    """What a trace tells of events by an instant: of jobs that it does not hold and kinds not recorded nothing.

    An end that is not told may have come as long ago as ends take to be told.
    """
    names = zip(trace.jobs["job_id"].to_list(), trace.submit_s.tolist(), strict=True)
    row_of = {name: row for row, name in enumerate(names)}
    recorded = recorded_kinds(trace)
    when_s = {START: (trace.start_s, trace.start_s), END: (trace.end_s, trace.known_s)}
    looked_s = {START: as_of_s, END: as_of_s - trace.lag_s}
    found = {}
    for event in events:
        row = row_of.get(event[:2])
        if row is None or event[2] not in recorded:
            continue
        event_s, known_s = (float(column[row]) for column in when_s[event[2]])
        found[event] = Outcome(event_s, known_s) if known_s <= as_of_s else Outcome(None, looked_s[event[2]])
    return found


def counts(
    promises: Sequence[Promise], outcomes: Outcomes, as_of_s: float, group: Callable[[Promise], str]
) -> list[dict[str, Any]]:
    """Promises by group and kind: how many are what, and which share of those that are due was kept at each level.

    `promises`: on events that `outcomes` knows of. A promise is due once its upper end has passed. Those that were kept
    before are left out of the share until then: who comes early is within, so that counting them would flatter. So are
    those whose upper end passed when nobody could have been told yet.
    """
    found: dict[tuple[str, str], list[Promise]] = defaultdict(list)
    for one in promised(promises):
        found[group(one), one.kind].append(one)
    # Starts first, as they come.
    return [
        {"group": name, "kind": kind, **_counted(mine, outcomes, as_of_s)}
        for (name, kind), mine in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] == END))
    ]


def _counted(promises: Sequence[Promise], outcomes: Outcomes, as_of_s: float) -> dict[str, Any]:
    states = [state(one, LEVELS[-1], outcomes[one.event], as_of_s) for one in promises]
    result: dict[str, Any] = {"made": len(promises), **{name: states.count(name) for name in (KEPT, LOW, HIGH, OPEN)}}
    looked_s = looked_until_s((outcomes[one.event] for one in promises), as_of_s)
    for level in LEVELS:
        due = [one for one in promised(promises, level) if _is_due(one, level, looked_s)]
        held = sum(state(one, level, outcomes[one.event], as_of_s) == KEPT for one in due)
        name = f"{100 * level:g}"
        result |= {f"due_{name}": len(due), f"coverage_{name}_pct": 100.0 * held / len(due) if due else None}
    return result


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far intervals must reach, by what became of earlier ones.

    Attributes
    ----------
    due, kept : promises that it rests on, and how many of these were kept
    known : where these came among the futures that were drawn of them
    """

    due: int
    kept: int
    known: Sequence[Position]

    def tracker(self) -> IntervalTracker:
        """Intervals that go on from there."""
        return IntervalTracker(known=self.known)


def calibrate(promises: Iterable[Promise], outcomes: Outcomes, at_s: float) -> Calibration | None:
    """From the last promises that were made and due by an instant; None where they are fewer than `ENOUGH`.

    Ends go where events fell among the futures that were drawn of them (see `IntervalTracker`), so that it does not
    matter by which ends the promises were made. What had not come when somebody looked last has outlived its futures
    up to then.

    Parameters
    ----------
    promises : of one kind, policy and version
    outcomes : that were known by the instant
    """
    level = LEVELS[-1]
    rows = [one for one in promised(promises) if one.at_s < at_s and one.futures_s and one.event in outcomes]
    # Of what came after the last look only what was early would count.
    as_of_s = looked_until_s((outcomes[one.event] for one in rows), min(at_s, last_look_s(outcomes)))
    due = sorted((one for one in rows if _is_due(one, level, as_of_s)), key=lambda one: _ends(one, level)[1])[-LAST:]
    if len(due) < ENOUGH:
        return None
    due.sort(key=lambda one: one.at_s)
    at = np.array([one.at_s for one in due])
    came_s = np.array([math.inf if (event_s := outcomes[one.event].event_s) is None else event_s for one in due])
    left_s = [_futures(one) for one in due]
    known = IntervalTracker().positions(at, np.maximum(came_s - at, 1.0), left_s, as_of_s)
    kept = sum(state(one, level, outcomes[one.event], as_of_s) == KEPT for one in due)
    return Calibration(len(due), kept, known)


def start_losses(promises: Iterable[Promise], outcomes: Outcomes, at_s: float) -> Floats:
    """Pinball losses, of log10 waits, of promises made before an instant whose events `outcomes` knows of; (n,).

    What had not come when somebody looked last came then, at the earliest.
    """
    rows = [one for one in promised(promises) if one.at_s < at_s and one.futures_s and one.event in outcomes]
    came_s = [known_s if event_s is None else event_s for event_s, known_s in (outcomes[one.event] for one in rows)]
    logs = [
        np.log10(np.maximum(np.array([s, *one.futures_s]) - one.at_s, 1.0)) for s, one in zip(came_s, rows, strict=True)
    ]
    if not logs:
        return np.zeros(0)
    table = np.array(logs)
    return pinball_losses(table[:, 0], table[:, 1:], SHARES)


def _futures(promise: Promise) -> Floats:
    """Waits of equally likely futures, seconds, from the quantiles that were kept of them."""
    logs = np.log(np.maximum(np.array(promise.futures_s) - promise.at_s, 1.0))
    shares = np.arange(1, FUTURES + 1) / (FUTURES + 1.0)
    return np.exp(np.interp(shares, SHARES, logs))


def _is_due(promise: Promise, level: float, as_of_s: float) -> bool:
    return _ends(promise, level)[1] + RECORDED_S < as_of_s


MONDAY_S = 4 * DAY_S
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
