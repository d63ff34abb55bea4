"""Answers as promises: kept in the ledger of a home, and calibrated on what became of earlier ones."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError, LedgerError
from jobcast.models.completion.intervals import LEVELS
from jobcast.models.promise_ledger import END, LOOK, START, Outcome, Promise, PromiseLedger
from jobcast.models.promise_record import (
    SHARES,
    Calibration,
    calibrate,
    counts,
    last_look_s,
    outcomes_of,
    promised,
    recorded_kinds,
)
from jobcast.models.queue_wait import LEVELS as WAIT_LEVELS
from jobcast.models.queue_wait import MEDIAN
from jobcast.pipelines.experiments.elastic.completion_prediction import HOUR_S, Answer, by_kind
from jobcast.pipelines.report.formatting import iso, parse_time
from jobcast.traces.table import Trace

INTERVALS = tuple(zip(LEVELS, (("p25_h", "p75_h"), ("p5_h", "p95_h")), strict=True))
"""Where figures of an answer have the ends of each level, hours from the question."""
MONDAY_S, WEEK_S = 4 * 86400.0, 7 * 86400.0
GROUPS: Mapping[str, Callable[[Promise], str]] = {
    "week": lambda one: (iso(one.at_s - (one.at_s - MONDAY_S) % WEEK_S) or "")[:10],
    "pool": lambda one: one.pool,
    "version": lambda one: one.version,
    "policy": lambda one: one.policy,
}
"""What promises are counted by; weeks are those of the instants that they hold for, from Monday on in UTC."""
AS_RECORDED = "recorded"
"""Whose starts queue-wait forecasts: those of the scheduler that the trace was recorded under."""
WAITS_TOLD = ("low_90_s", "low_50_s", "wait_s", "high_50_s", "bound_90_s", "high_90_s")
"""What is told of a job, in the order of `LEVELS`: two intervals, the median, and the one-sided 90 % bound."""
WAIT_INTERVALS = ((0.5, "low_50_s", "high_50_s"), (0.9, "low_90_s", "high_90_s"))
ALONE = " alone"
"""Ends the version of what was not told by itself but combined with another: it is seen where versions are compared."""
ALL = "all"
Note = Callable[[str], None]


def promises_of(job: Mapping[str, Any], answers: Sequence[Answer], what_if: bool, **asked: Any) -> list[Promise]:
    """What is promised of a job: the start of one that waits, and its end, at every width.

    Parameters
    ----------
    job : where it stands, and figures of its `answers`; see `completion_prediction.tell`
    answers : that the figures are of
    what_if : whether there is no such job; other widths of a job never are its own
    asked : the rest of `Promise`
    """
    at_s, made = asked["at_s"], []
    about = {"job_id": job["job_id"], "submit_s": parse_time(job["submitted"]), "pool": job["pool"]} | asked
    for number, (figures, answer) in enumerate(zip(job["answers"], answers, strict=True)):
        about |= {"gpus": answer.gpus, "what_if": what_if or number > 0, "asked_s": time.time()}
        for kind, described in by_kind(figures):
            ends = [(level, *(at_s + described[name] * HOUR_S for name in names)) for level, names in INTERVALS]
            point_s = at_s + described["point_h"] * HOUR_S if "point_h" in described else None
            futures_s = np.quantile(answer.drawn_s(kind), SHARES).tolist()
            made.append(Promise(**about, kind=kind, point_s=point_s, intervals=ends, futures_s=futures_s))
    return made


def starts_promised(
    version: str, from_s: float, jobs: Mapping[str, Mapping[str, Any]], trace_sha256: str
) -> list[Promise]:
    """The starts of jobs, as queue-wait tells them.

    Parameters
    ----------
    from_s : the instant from which on seconds count, seconds from the epoch
    jobs : by id, `pool`, `gpus`, `submitted` and the seconds of `WAITS_TOLD`
    """
    asked_s, made = time.time(), []
    for job_id, one in jobs.items():
        about: dict[str, Any] = {"job_id": job_id, "submit_s": parse_time(one["submitted"]), "kind": START}
        about |= {"pool": one["pool"], "gpus": one["gpus"] or 0, "at_s": from_s, "asked_s": asked_s}
        logs = np.log(np.maximum([one[name] for name in WAITS_TOLD], 1.0))
        futures_s = (from_s + np.exp(np.interp(SHARES, WAIT_LEVELS, logs))).tolist()
        intervals = [(level, from_s + one[low], from_s + one[high]) for level, low, high in WAIT_INTERVALS]
        how: dict[str, Any] = {"policy": AS_RECORDED, "version": version, "sizes": "", "simulated": False}
        how |= {"point_s": from_s + one[WAITS_TOLD[MEDIAN]], "trace_sha256": trace_sha256}
        made.append(Promise(**about, **how, intervals=intervals, futures_s=futures_s))
    return made


def keep(home: Path, promises: Iterable[Promise], note: Note) -> int:
    """Keep promises; how many were. An answer is worth giving all the same, so that a ledger that fails is a note."""
    try:
        return PromiseLedger(home).keep(promises)
    except LedgerError as error:
        note(f"not kept in the promise ledger: {error}")
        return 0


def calibrations(home: Path, trace: Trace, at_s: float, note: Note, **of: str) -> dict[str, Calibration]:
    """By kind of promise, how far intervals must reach, from promises on jobs of a trace that were due by an instant.

    `of`: columns of the ledger and what they must be, such as policy and version.
    """
    ledger = PromiseLedger(home)
    try:
        made, outcomes = ledger.promises(**of), ledger.outcomes(until_s=at_s)
    except LedgerError as error:
        note(f"not calibrated on earlier promises: {error}")
        return {}
    # Of other clusters nothing is learnt.
    known = set(zip(trace.jobs["job_id"].to_list(), trace.submit_s.tolist(), strict=True)) if made else set()
    mine = [one for one in made if (one.job_id, one.submit_s) in known]
    found = {kind: calibrate([one for one in mine if one.kind == kind], outcomes, at_s) for kind in (START, END)}
    return {kind: one for kind, one in found.items() if one is not None}


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
    real = promised(made)
    told = real if by == "version" else [one for one in real if not one.version.endswith(ALONE)]
    judged = [one for one in told if one.at_s <= as_of_s and one.event in outcomes]
    return {
        "ledger": str(ledger.file),
        "as_of": iso(as_of_s) if judged else None,
        "promises": len(made),
        "what_if": sum(one.what_if for one in made),
        "without_outcome": len(told) - len(judged),
        "new_outcomes": new,
        "by": by,
        "groups": counts(judged, outcomes, as_of_s, GROUPS[by] if by else lambda one: ALL),
    }
