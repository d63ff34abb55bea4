"""What became of promises: kept, broken or open at an instant, how many are held, and how far later ones must reach."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.completion.job_completions import BEYOND, LEVELS, IntervalTracker
from jobcast.models.promise_ledger import END, START, Event, Outcome, Outcomes, Promise
from jobcast.traces.table import Trace

RECORDED_S = 1.0
"""An event so near to an end of an interval is within: accounting tells whole seconds."""
SHARES = tuple(number / 20 for number in range(21))
"""Of futures, even ones, whose quantiles are kept with a promise."""
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


def recorded_kinds(trace: Trace) -> set[str]:
    """What a trace records: starts, ends, or neither where it tells how long jobs ran alone.

    A start and a duration tell an end, but for elastic jobs, whose duration is that on one GPU.
    """
    named = set(trace.jobs.columns)
    ends = "end_time" in named or ("start_time" in named and not trace.elastic.any())
    return {kind for kind, is_told in ((START, "start_time" in named), (END, ends)) if is_told}


def outcomes_of(trace: Trace, events: Iterable[Event], as_of_s: float) -> dict[Event, Outcome]:
    """What a trace tells of events by an instant: of jobs that it does not hold and kinds not recorded nothing."""
    names = zip(trace.jobs["job_id"].to_list(), trace.submit_s.tolist(), strict=True)
    row_of = {name: row for row, name in enumerate(names)}
    recorded = recorded_kinds(trace)
    when_s = {START: (trace.start_s, trace.start_s), END: (trace.end_s, trace.known_s)}
    found = {}
    for event in events:
        row = row_of.get(event[:2])
        if row is None or event[2] not in recorded:
            continue
        event_s, known_s = (float(column[row]) for column in when_s[event[2]])
        found[event] = Outcome(event_s, known_s) if known_s <= as_of_s else Outcome(None, as_of_s)
    return found


def counts(
    promises: Sequence[Promise], outcomes: Outcomes, as_of_s: float, group: Callable[[Promise], str]
) -> list[dict[str, Any]]:
    """Promises by group and kind: how many are what, and which share of those that are due was kept at each level.

    `promises`: on events that `outcomes` knows of. A promise is due once its upper end has passed. Those that were kept
    before are left out of the share until then: who comes early is within, so that counting them would flatter.
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
    told: dict[str, Any] = {"made": len(promises), **{name: states.count(name) for name in (KEPT, LOW, HIGH, OPEN)}}
    for level in LEVELS:
        due = [one for one in promised(promises, level) if _is_due(one, level, as_of_s)]
        held = sum(state(one, level, outcomes[one.event], as_of_s) == KEPT for one in due)
        name = f"{100 * level:g}"
        told |= {f"due_{name}": len(due), f"coverage_{name}_pct": 100.0 * held / len(due) if due else None}
    return told


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far intervals must reach, by what became of earlier ones.

    Attributes
    ----------
    due, kept : promises that it rests on, and how many of these were kept
    tails : by level, the shares of futures below and above an interval; see `IntervalTracker`
    """

    due: int
    kept: int
    tails: Mapping[float, tuple[float, float]]

    def tracker(self) -> IntervalTracker:
        """Intervals that go on from there."""
        return IntervalTracker(tails=self.tails)


def calibrate(promises: Iterable[Promise], outcomes: Outcomes, at_s: float) -> Calibration | None:
    """From the last promises that were made and due by an instant; None where they are fewer than `ENOUGH`.

    Each end is put where it would have held as many of the events as it is to hold: split conformal prediction (Vovk
    et al., Algorithmic Learning in a Random World, 2005) in shares of the futures, so that it does not matter by which
    ends the promises were made. Intervals only become wider: jobs of one queue go well together, so that a good week
    says little of the next. What has not come counts as if it came when somebody looked last.

    Parameters
    ----------
    promises : of one kind, policy and version
    outcomes : that were known by the instant
    """
    level = LEVELS[-1]
    known = [one for one in promised(promises) if one.at_s < at_s and one.futures_s and one.event in outcomes]
    # Of what came after the last look only what was early would count.
    as_of_s = min(at_s, last_look_s(outcomes))
    due = sorted((one for one in known if _is_due(one, level, as_of_s)), key=lambda one: _ends(one, level)[1])[-LAST:]
    if len(due) < ENOUGH:
        return None
    shares = np.array([_futures_beside(one, outcomes[one.event]) for one in due])
    tails = {one: (_tail(shares[:, 0], one), _tail(shares[:, 1], one)) for one in LEVELS}
    kept = sum(state(one, level, outcomes[one.event], as_of_s) == KEPT for one in due)
    return Calibration(len(due), kept, tails)


def _is_due(promise: Promise, level: float, as_of_s: float) -> bool:
    return _ends(promise, level)[1] + RECORDED_S < as_of_s


def _futures_beside(promise: Promise, outcome: Outcome) -> tuple[float, float]:
    """The shares of futures below and above an interval that would just have held the event, from either side."""
    came_s = outcome.known_s if outcome.event_s is None else outcome.event_s
    knots = np.log(np.maximum(np.array(promise.futures_s) - promise.at_s, 1.0))
    event = float(np.log(max(came_s - promise.at_s, 1.0)))
    return _share(knots, event), _share(-knots[::-1], -event)


def _share(knots: Floats, event: float) -> float:
    """The share of futures up to an event, by quantiles at even shares; beyond them as intervals reach beyond."""
    place = int(np.searchsorted(knots, event, side="right"))
    if place in (0, len(knots)):
        return float((event - knots[0]) / BEYOND if place == 0 else 1.0 + (event - knots[-1]) / BEYOND)
    part = (event - knots[place - 1]) / (knots[place] - knots[place - 1])
    return float((place - 1 + part) / (len(knots) - 1))


def _tail(shares: Floats, level: float) -> float:
    """The largest tail that misses no more of the events than it may, and no larger than that of the futures."""
    aim = (1.0 - level) / 2.0
    rank = int(aim * (len(shares) + 1))
    return float(min(np.sort(shares)[max(rank - 1, 0)], aim))
