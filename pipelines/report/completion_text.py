"""When a job starts and ends, in a line that a person understands, in their own time zone."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Any

from jobcast.domain.clock import HOUR_S, MINUTE_S
from jobcast.domain.clock import Clock as Clock
from jobcast.pipelines.report.formatting import counted, listed
from jobcast.pipelines.report.layout import aligned

LEVEL = "90 %"
"""Of the intervals that are told in words, whose ends are `p5` and `p95`."""
COLUMNS = ("job", "user", "pool", "GPUs", "state", "starts", "ends by")


def sentence(job: Mapping[str, Any], clock: Clock) -> str:
    """What is forecast of a job at its own width, and when it ends at others.

    Parameters
    ----------
    job : where it stands (`job_id`, `user`, `pool`, `state`, `started`, `gpus`) and `answers` by width: ends in hours
        from the instant, and those of its `start` where it has not started
    """
    own, *others = job["answers"]
    about = ", ".join(filter(None, (job["user"], counted(own["gpus"], "GPU"), job["pool"] and f"pool {job['pool']}")))
    certain = own["p5_h"] == own["p95_h"]
    level = "if nothing else comes" if certain else f"with {LEVEL}"
    text = f"job {job['job_id']} ({about}): {_begins(job, clock)}, ends {_ends(own, clock, job)} {level}"
    for other in others:
        text += f"; with {counted(other['gpus'], 'GPU')} instead of {own['gpus']}: ends {_ends(other, clock, job)}"
    return text


def _begins(job: Mapping[str, Any], clock: Clock) -> str:
    if job["started"] is None:
        start = job["answers"][0]["start"]
        return f"starts {clock.between(*_instants(start, clock))}"
    began = clock.said(datetime.fromisoformat(job["started"]).timestamp())
    return f"runs since {began}" if job["state"] == "running" else f"ran from {began} on and waits again"


def _ends(answer: Mapping[str, Any], clock: Clock, job: Mapping[str, Any]) -> str:
    low_s, high_s = _instants(answer, clock)
    # Of a job that waits the latest end matters; of one that runs, both.
    return clock.between(low_s if job["state"] == "running" or low_s == high_s else clock.at_s, high_s)


def _instants(ends: Mapping[str, Any], clock: Clock) -> tuple[float, float]:
    return clock.at_s + ends["p5_h"] * HOUR_S, clock.at_s + ends["p95_h"] * HOUR_S


def queue_table(jobs: Sequence[Mapping[str, Any]], clock: Clock) -> str:
    """All jobs that wait or run, a line each."""
    rows = [COLUMNS]
    for job in jobs:
        own = job["answers"][0]
        begins = _begins(job, clock).removeprefix("starts ")
        ends = clock.said(ceil(_instants(own, clock)[1] / MINUTE_S) * MINUTE_S)
        rows.append((job["job_id"], job["user"], job["pool"], str(own["gpus"]), job["state"], begins, ends))
    return aligned(rows)


def calibrated_on(calibrated: Mapping[str, Mapping[str, int]]) -> str:
    """What intervals were calibrated on, empty where they were not.

    >>> calibrated_on({"start": {"due": 214, "kept": 197}, "end": {"due": 90, "kept": 82}})
    'calibrated on 214 promises of starts (197 kept) and 90 promises of ends (82 kept)'
    """
    rows = [f"{counted(one['due'], 'promise')} of {kind}s ({one['kept']} kept)" for kind, one in calibrated.items()]
    return f"calibrated on {listed(rows)}" if rows else ""
