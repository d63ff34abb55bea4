"""Jobs as the events of a cluster tell them, in the form that a history is made of."""

from collections.abc import Iterable
from math import inf

import numpy as np

from jobcast.domain.jobs import Job, Requirements
from jobcast.live.event_log import END, START, SUBMIT, Event
from jobcast.simulator.history import EarlierJobs


def recorded_jobs(events: Iterable[Event], now_s: float = inf) -> EarlierJobs:
    """What was known at an instant, seconds from the epoch.

    Order does not matter. Of several starts or ends of a job that which was known last counts. A job whose submission
    is not known is left out; so is an end before the job's start.
    """
    known = sorted((one for one in events if one.known_s <= now_s), key=lambda one: (one.known_s, one.at_s))
    last: dict[str, dict[str, Event]] = {SUBMIT: {}, START: {}, END: {}}
    for event in known:
        last.get(event.kind, {})[event.job_id] = event
    submitted = sorted(last[SUBMIT].values(), key=lambda one: (one.at_s, one.job_id))
    jobs = [_job(seq, event) for seq, event in enumerate(submitted)]
    rows = [_times(last[START].get(job.job_id), last[END].get(job.job_id)) for job in jobs]
    start_s, known_s, duration_s = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return EarlierJobs(jobs, start_s, known_s, duration_s)


def _job(seq: int, event: Event) -> Job:
    facts = event.facts
    limit_s = facts.get("time_limit_s")
    asked = None if limit_s is None else Requirements(time_limit_s=limit_s)
    named = (facts.get("user", ""), facts.get("tag", ""))
    return Job(seq, event.job_id, facts["pool"], event.at_s, facts["gpus"], *named, requirements=asked)


def _times(start: Event | None, end: Event | None) -> tuple[float, float, float]:
    """Start, from when the end is known, and run time, in seconds; NaN for what is not known."""
    start_s = np.nan if start is None else start.at_s
    # A comparison with NaN is false: an end without a start counts, with the run time that is told.
    if end is None or end.at_s < start_s:
        return start_s, np.nan, np.nan
    return start_s, end.known_s, end.facts.get("duration_s", end.at_s - start_s)
