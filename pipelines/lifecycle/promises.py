"""Answers as promises: kept in the ledger of a home, and calibrated on what became of earlier ones."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import LedgerError
from jobcast.models.completion.intervals import LEVELS
from jobcast.models.promise_ledger import END, START, Promise, PromiseLedger
from jobcast.models.promise_record import SHARES, Calibration, Note, calibrate
from jobcast.models.queue_wait import LEVELS as WAIT_LEVELS
from jobcast.models.queue_wait import MEDIAN
from jobcast.pipelines.experiments.elastic.completion_prediction import Answer, by_kind
from jobcast.pipelines.report.formatting import parse_time
from jobcast.traces.table import Trace

INTERVALS = tuple(zip(LEVELS, (("p25_h", "p75_h"), ("p5_h", "p95_h")), strict=True))
"""Where figures of an answer have the ends of each level, hours from the question."""
AS_RECORDED = "recorded"
"""Whose starts queue-wait forecasts: those of the scheduler that the trace was recorded under."""
WAITS_TOLD = ("low_90_s", "low_50_s", "wait_s", "high_50_s", "bound_90_s", "high_90_s")
"""What is told of a job, in the order of `LEVELS`: two intervals, the median, and the one-sided 90 % bound."""
WAIT_INTERVALS = ((0.5, "low_50_s", "high_50_s"), (0.9, "low_90_s", "high_90_s"))


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
