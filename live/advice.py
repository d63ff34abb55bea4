"""Advice about a running cluster: what was seen, what to do about it and why, as data and as figures for JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf, isfinite
from typing import Any

from jobcast.live.leases import Lease
from jobcast.live.recorded_jobs import Stopped
from jobcast.live.state import WEEK_S
from jobcast.traces.readers.slurm_queue import QueuedJob


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to the cluster.

    Attributes
    ----------
    do : `lend`, `return` (a job goes back to its QOS), `limit` or `preempt` (of a QOS)
    what : the job, or the QOS
    why : in plain words
    pool, gpus : of the job; of a limit what it is from then on
    until_s : of a lease, when the job is expected to have ended, seconds from the epoch
    job : as Slurm tells it
    qos : that a job goes back to
    others : whose jobs a QOS may stop
    limit_s : time limit that a job gets back, seconds; None where it was not cut
    """

    do: str
    what: str
    why: str
    pool: str = ""
    gpus: int | None = 0
    until_s: float = inf
    job: QueuedJob | None = None
    qos: str = ""
    others: tuple[str, ...] = ()
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What was seen at an instant, and what to do about it.

    Attributes
    ----------
    at_s : seconds from the epoch, by the cluster's clock
    pools : of each GPUs of its quota, held, on lease to it, and how many wait for
    leases : that are not over
    actions : in order
    degraded : why nothing new is lent, or less than might be, or owners cannot take it back
    versions : of the predictors
    left : what the policy would lend besides, and why it is not done: (job, why)
    stopped : jobs on lease that were, see `stopped_figures`
    """

    at_s: float
    pools: Mapping[str, Mapping[str, int]]
    leases: Sequence[Lease]
    actions: Sequence[Action]
    degraded: Sequence[str]
    versions: Mapping[str, int]
    left: Sequence[tuple[str, str]] = ()
    stopped: Mapping[str, Any] = field(default_factory=dict)


def advice_figures(advice: Advice) -> dict[str, Any]:
    """Advice as JSON has it; instants are ISO 8601, UTC."""
    return {
        "as_of": instant(advice.at_s),
        "versions": dict(advice.versions),
        "degraded": list(advice.degraded),
        "pools": {name: dict(row) for name, row in advice.pools.items()},
        "actions": [_action(one) for one in advice.actions],
        "left": [{"job_id": name, "why": why} for name, why in advice.left],
        "leases": [lease_figures(one, advice.at_s) for one in advice.leases],
        "stopped_7d": dict(advice.stopped),
    }


def stopped_figures(stopped: Sequence[Stopped], now_s: float) -> dict[str, Any]:
    """Jobs on lease that were stopped in the last 7 days, most by owners who came back, and GPU-hours they had run."""
    last = [one.gpu_hours for one in stopped if one.at_s > now_s - WEEK_S]
    return {"jobs": len(last), "gpu_hours_lost": sum(last)}


def lease_figures(lease: Lease, now_s: float) -> dict[str, Any]:
    """A lease as JSON has it."""
    return {
        "lease": lease.name,
        "job_id": lease.job.job_id,
        "user": lease.job.user,
        "pool": lease.pool,
        "gpus": lease.gpus,
        "state": "running" if lease.job.runs else "waiting",
        "until": instant(lease.until_s),
        "outlived_forecast": bool(lease.job.runs and lease.until_s < now_s),
        "versions": lease.versions,
    }


def instant(at_s: float) -> str | None:
    """An instant, seconds from the epoch, as ISO 8601; None where there is none."""
    return datetime.fromtimestamp(at_s, UTC).isoformat() if isfinite(at_s) else None


def _action(action: Action) -> dict[str, Any]:
    named = {"job_id": action.what} if action.job is not None else {"qos": action.what}
    rest = {"until": instant(action.until_s), "back_to": action.qos, "preempts": list(action.others)}
    return {
        "do": action.do,
        **named,
        "pool": action.pool,
        "gpus": action.gpus,
        **{key: value for key, value in rest.items() if value},
        "why": action.why,
    }
