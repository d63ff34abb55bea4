"""When a job starts and ends, in a line that a person understands, in their own time zone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import ceil, floor
from typing import Any

from jobcast.domain.times import LAST_S
from jobcast.pipelines.report.formatting import counted, listed
from jobcast.pipelines.report.layout import aligned

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
LEVEL = "90 %"
"""Of the intervals that are told in words, whose ends are `p5` and `p95`."""
COLUMNS = ("job", "user", "pool", "GPUs", "state", "starts", "ends by")


@dataclass(frozen=True, slots=True)
class Clock:
    """Instants as somebody at `at_s` (seconds from the epoch) says them; without a `zone` as this computer's clock."""

    at_s: float
    zone: tzinfo | None = None

    @property
    def name(self) -> str:
        """Of the zone, at the instant."""
        return str(self.zone) if self.zone is not None else self._local(self.at_s).astimezone().tzname() or "local time"

    def said(self, seconds: float) -> str:
        """The time of day, with the day where it is not today.

        >>> from datetime import UTC
        >>> [Clock(50_700.0, UTC).said(one) for one in (56_400.0, 94_200.0, 1e6)]
        ['15:40', '02:10 (tomorrow)', '1970-01-12 13:46']
        """
        then, days = self._local(seconds), (self._local(seconds).date() - self._local(self.at_s).date()).days
        day = {0: "", 1: " (tomorrow)", -1: " (yesterday)"}.get(days)
        return self.dated(seconds) if day is None else f"{then:%H:%M}{day}"

    def dated(self, seconds: float) -> str:
        """With its day in any case."""
        return f"{self._local(seconds):%Y-%m-%d %H:%M}"

    def between(self, low_s: float, high_s: float) -> str:
        """An interval in whole minutes that holds the one that is given.

        >>> from datetime import UTC
        >>> clock = Clock(50_700.0, UTC)
        >>> clock.between(50_710.0, 56_390.0), clock.between(56_000.0, 56_390.0), clock.between(56_401.0, 56_401.0)
        ('by 15:40', 'between 15:33 and 15:40', 'at 15:40')
        """
        first, last = floor(low_s / MINUTE_S), ceil(high_s / MINUTE_S)
        low, high = self.said(first * MINUTE_S), self.said(last * MINUTE_S)
        if high_s < self.at_s + MINUTE_S:
            return "within a minute"
        if last - first <= 1:
            return f"at {low}"
        return f"by {high}" if low_s < self.at_s + MINUTE_S else f"between {low} and {high}"

    def _local(self, seconds: float) -> datetime:
        # A day is left for zones east and west of Greenwich.
        return datetime.fromtimestamp(min(seconds, LAST_S - DAY_S), self.zone)


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
