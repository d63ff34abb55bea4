"""What was told beside a running cluster, kept as promises, and what became of those of the last days."""

import threading
from collections.abc import Callable, Mapping
from math import inf, isnan
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import LedgerError
from jobcast.live.futures import Spread
from jobcast.live.state import WEEK_S, State
from jobcast.models.completion.intervals import LEVELS, Position
from jobcast.models.promise_ledger import END, START, Outcome, Outcomes, Promise, PromiseLedger
from jobcast.models.promise_record import SHARES, Note, calibrate, judged, keep

AGAIN_S = 300.0
"""After which what is told of a job is kept once more: somebody may look every few seconds, for days."""
SHOWN = 50
"""Promises that are shown, the last ones."""
OURS: Mapping[str, Any] = {"simulated": False, "trace_sha256": "", "what_if": False}
"""Of a promise beside a running cluster."""


class Promises:
    """Keeps what is told in the ledger of a home, and what came of it.

    Parameters
    ----------
    home : see `registry.home.find_home`
    now_s : seconds from the epoch
    note : told where the ledger cannot be used; answers are given all the same

    Attributes
    ----------
    figures : all that were made in the last 7 days by kind, and by version, as `promise_record.judged`
    """

    def __init__(self, home: Path, now_s: float, note: Note) -> None:
        self._home, self._note, self._ledger = home, note, PromiseLedger(home)
        self._lock, self._told = threading.Lock(), dict[str, tuple[int, float]]()
        self._made, self._kept = list[Promise](), set[tuple[str, float, str]]()
        try:
            self._kept = {event for event, one in self._ledger.outcomes().items() if one.event_s is not None}
            ours = self._ledger.promises(trace_sha256="")
            self._made = [one for one in ours if not one.simulated and one.at_s >= now_s - WEEK_S]
        except LedgerError as error:
            note(f"promises of before are not counted: {error}")
        self.figures: Mapping[str, Any] = {}

    def tell(self, about: Mapping[str, Any], spreads: Mapping[str, Spread], number: int) -> None:
        """Keep what is told of a job, once a round of futures and `AGAIN_S`.

        Parameters
        ----------
        about : of `Promise`: `job_id`, `submit_s`, `pool`, `gpus`, `at_s`, `policy`, `version`, `sizes`
        spreads : of its start and end, where they are still to come; from `at_s` on
        number : of the round
        """
        with self._lock:
            last, last_s = self._told.get(about["job_id"], (-1, -inf))
            if number == last or about["at_s"] < last_s + AGAIN_S:
                return
            self._told[about["job_id"]] = number, about["at_s"]
            made = [_promise(about, kind, one) for kind, one in spreads.items()]
            self._made += made
        keep(self._home, made, self._note)

    def look(self, state: State, now_s: float) -> None:
        """Keep what has come, and count anew."""
        with self._lock:
            self._made = [one for one in self._made if one.at_s >= now_s - WEEK_S]
            self._told = {name: one for name, one in self._told.items() if one[1] >= now_s - AGAIN_S}
            made = list(self._made)
        outcomes = _outcomes(made, state)
        came = {event: one for event, one in outcomes.items() if one.event_s is not None and event not in self._kept}
        try:
            self._ledger.keep_outcomes(came, "")
            self._kept |= came.keys()
        except LedgerError as error:
            self._note(f"outcomes are not kept: {error}")
        as_of_s = min(now_s, state.known_s)
        by_version = judged(made, outcomes, as_of_s, "version")
        self.figures = {"kinds": judged(made, outcomes, as_of_s, None)["groups"], "versions": by_version["groups"]} | {
            name: by_version[name] for name in ("as_of", "promises", "without_outcome")
        }

    def last(self, mine: Callable[[str], bool], state: State) -> list[dict[str, Any]]:
        """The last that were told of jobs that somebody may see, newest first: times in seconds from the epoch."""
        with self._lock:
            shown = [one for one in reversed(self._made) if mine(one.job_id)][:SHOWN]
        outcomes = _outcomes(shown, state)
        return [
            {
                **{
                    name: getattr(one, name) for name in ("job_id", "kind", "pool", "gpus", "at_s", "policy", "version")
                },
                "intervals": {f"{level:g}": [low_s, high_s] for level, low_s, high_s in one.intervals},
                "came_s": outcomes[one.event].event_s if one.event in outcomes else None,
            }
            for one in shown
        ]

    def positions(self, kind: str, state: State) -> list[Position]:
        """Where events of a kind fell among the futures that were told of them, to begin with; empty for too few."""
        mine = [one for one in self._made if one.kind == kind]
        found = calibrate(mine, _outcomes(mine, state), state.known_s)
        return [] if found is None else list(found.known)


def _promise(about: Mapping[str, Any], kind: str, spread: Spread) -> Promise:
    at_s = about["at_s"]
    ends = [(one.level, at_s + one.low_s, at_s + one.high_s) for one in spread.intervals if one.level in LEVELS]
    futures_s = np.quantile(at_s + spread.drawn_s, SHARES).tolist()
    told: dict[str, Any] = {**about, **OURS, "asked_s": at_s, "point_s": at_s + spread.median_s}
    return Promise(kind=kind, intervals=ends, futures_s=futures_s, **told)


def _outcomes(made: list[Promise], state: State) -> Outcomes:
    """What came of promises by now; of a job that was cancelled while it waited nothing will."""
    found = {}
    for event in {one.event for one in made}:
        known = state.job(event[0])
        if known is None or known.job.submit_s != event[1] or (isnan(known.start_s) and not isnan(known.end_s)):
            continue
        came_s = {START: known.start_s, END: known.end_s}[event[2]]
        found[event] = Outcome(None if isnan(came_s) else came_s, state.known_s)
    return found
