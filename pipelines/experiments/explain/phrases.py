"""Jobs as explanations mention them: what is told of them, and the words that the sentences share."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.pipelines.experiments.explain.reservations import MOST, Answers
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.pipelines.report.formatting import UNKNOWN, counted, duration, instant, listed


class Mentions:
    """Turns positions of jobs into what is told of them.

    Parameters
    ----------
    table : the run
    answers : knows the duration bins
    """

    def __init__(self, table: RunTable, answers: Answers) -> None:
        self._table = table
        self._answers = answers

    def job(self, job: int) -> dict[str, Any]:
        """One job: id, pool, width, times, forecast bin, why that is no forecast, how much it outlived it."""
        table = self._table
        return {
            "job_id": table.job_ids[job],
            "pool": table.pools[table.pool[job]],
            "gpus": int(table.gpus[job]),
            "submitted_s": float(table.submit_s[job]),
            "started_s": finite(table.start_s[job]),
            "ended_s": finite(table.end_s[job]),
            "dedicated": bool(table.dedicated[job]),
            "duration_s": float(table.duration_s[job]),
            "duration_bin": table.bin_of(job),
            "bin_replaced": self._answers.bin_replaced(table.job_ids[job]),
            "overstayed_s": self.overstayed_s(job),
        }

    def overstayed_s(self, job: int) -> float:
        """Seconds by which a job ran longer than its forecast bin allows."""
        # The last bin has no end that a job could outlive.
        end_s = self._answers.bin_end_s(self._table.bin_of(job))
        return 0.0 if end_s is None else max(0.0, float(self._table.duration_s[job]) - end_s)

    def most(self, jobs: Ints, weights: Floats, most: int = MOST) -> dict[str, Any]:
        """The jobs of largest weight, how many there are and how wide together."""
        order = np.argsort(-weights[jobs], kind="stable")
        return self.first(jobs[order].tolist(), most)

    def first(self, jobs: Sequence[int], most: int = MOST) -> dict[str, Any]:
        """The first of some jobs, how many there are and how wide together."""
        return {
            "jobs": [self.job(job) for job in jobs[:most]],
            "count": len(jobs),
            "gpus": int(self._table.gpus[list(jobs)].sum()) if len(jobs) else 0,
        }


def finite(value: float) -> float | None:
    """A number, None in place of infinity and not-a-number."""
    return float(value) if np.isfinite(value) else None


Told = Mapping[str, Any]


def length(seconds: float | None) -> str:
    """A length of time.

    >>> length(600.0), length(None)
    ('10.0 min', '–')
    """
    return UNKNOWN if seconds is None or not math.isfinite(seconds) else duration(seconds)


def gpus_of(gpus: float) -> str:
    """A number of GPUs.

    >>> gpus_of(1), gpus_of(2.0), gpus_of(2.5)
    ('1 GPU', '2 GPUs', '2.5 GPUs')
    """
    return counted(int(gpus), "GPU") if float(gpus).is_integer() else f"{gpus:g} GPUs"


def job_words(mention: Told, pool: str | None = None, forecasts: bool = True) -> str:
    """A job: its pool where that is another than `pool`, its width, since when it ran, what was forecast of it."""
    result = [] if mention["pool"] == pool else [f"pool {mention['pool']}"]
    result.append(gpus_of(mention["gpus"]))
    if mention["started_s"] is not None:
        result.append(f"since {instant(mention['started_s'])}")
    ran = f"ran {length(mention['duration_s'])}"
    if mention["duration_bin"] is None or not forecasts:
        result.append(ran)
    elif mention["overstayed_s"] > 0:
        result.append(f"forecast {mention['duration_bin']}, {ran}: {length(mention['overstayed_s'])} too long")
    else:
        result.append(f"forecast {mention['duration_bin']}, {ran}")
    return f"job {mention['job_id']} ({', '.join(result)})"


def jobs_words(group: Told, most: int, pool: str | None = None, forecasts: bool = True) -> str:
    """The first of some jobs, and how many there are beside them."""
    shown = [job_words(mention, pool, forecasts) for mention in group["jobs"][:most]]
    if group["count"] > len(shown):
        shown.append(counted(group["count"] - len(shown), "other") if shown else counted(group["count"], "job"))
    return listed(shown)


def whose(group: Told) -> str:
    """On which GPUs some jobs ran that were not of their pools' quotas."""
    spare = any(not mention["dedicated"] for mention in group["jobs"])
    return "on spare GPUs" if spare else "of pools beyond their quotas"


def said_of(owner: Told) -> str:
    """GPUs that were pending in a pool, and that were forecast to be asked for; when, if that was earlier."""
    pending = f"{owner['pending_gpus']:g} pending"
    if owner.get("replaced"):
        bad = ", ".join(f"{kind} {why}" for kind, why in owner["replaced"].items())
        pending += f", a bad forecast replaced by the conservative one ({bad})"
    if owner["sharing_off"]:
        return f"{pending}, sharing switched off"
    if not owner["needed"]:
        return f"{pending}, no forecast needed"
    if not owner["asked"]:
        return f"{pending}, no forecast asked for"
    told_s = owner["forecast_at_s"]
    of = f" of {instant(told_s)}" if told_s is not None and told_s < owner["at_s"] else ""
    if owner["forecast_gpus"] == 0:
        return f"{pending}, forecast{of}: nobody comes"
    quantile = f" ({100 * owner['quantile']:g} % quantile)" if owner["quantile"] else ""
    return f"{pending}, forecast{of}: {round(owner['forecast_gpus'], 2):g} come{quantile}"


def bin_words(job: Told) -> str:
    """The duration bin that was forecast of a job, or that stands in place of a bad answer."""
    # A conservative answer must not pass for a forecast.
    if job.get("bin_replaced"):
        return f"forecast {job['duration_bin']}, which stands in place of a bad answer ({job['bin_replaced']})"
    return f"forecast {job['duration_bin']}"


def came_words(owner: Told) -> str:
    """Who then came to a pool within a window."""
    if not owner["arrived_jobs"]:
        return "nobody came"
    return f"{counted(owner['arrived_jobs'], 'job')} with {gpus_of(owner['arrived_gpus'])} came"
