"""What a policy over pools needs to know of a scenario's jobs: looked at before it runs; what they lack is told."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Pool
from jobcast.domain.scheduling_rules import NO_RULES
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.accounting import Accounting, account_of
from jobcast.schedulers.policies import STARTS, TIME_LIMITS, PolicySpec
from jobcast.schedulers.pool_policies import BackfillSettings
from jobcast.simulator.workload import Workload

ENRICHED = "`jobcast trace enrich --facts limits` supplies them by a declared rule"


def prepared(rule: PolicySpec, own: Any, scenario: RigidScenario) -> tuple[RigidScenario, tuple[str, ...]]:
    """The scenario as a policy meets it, and notes on what its jobs do not tell. `own`: the policy's settings.

    Raises ConfigError and TraceError for what the policy cannot do without.
    """
    notes = list[str]()
    if TIME_LIMITS in rule.needs:
        notes += _limits_told(rule, scenario)
    if issubclass(rule.settings, BackfillSettings):
        notes += _rules_told(rule, own, scenario)
    elif scenario.workload.rules != NO_RULES:
        notes.append(f"{rule.name} knows no accounts: priority and limits of the cluster file are left aside")
    if STARTS in rule.needs:
        workload, result = _as_held(rule, scenario)
        return replace(scenario, workload=workload), (*notes, *result)
    return scenario, tuple(notes)


def _limits_told(rule: PolicySpec, scenario: RigidScenario) -> list[str]:
    jobs = scenario.workload.jobs
    limits_s = np.array([inf if job.requirements is None else job.requirements.time_limit_s for job in jobs])
    if np.isinf(limits_s).all():
        raise ConfigError(
            f"policy {rule.name} needs time limits, and {scenario.trace.source.path} has none (column time_limit_s); "
            f"{ENRICHED}, or take easy_forecast, which goes by forecast run times"
        )
    duration_s = np.array([outcome.duration_s for outcome in scenario.workload.outcomes])
    beyond = int((duration_s > limits_s + tolerance.LATER_S).sum())
    counts = {
        "have no time limit; they count as if it were a year": int(np.isinf(limits_s).sum()),
        "ran beyond their time limit in the trace; they do so here": beyond,
    }
    return [f"{count:,} of {len(jobs):,} jobs {what}" for what, count in counts.items() if count]


def _rules_told(rule: PolicySpec, own: Any, scenario: RigidScenario) -> list[str]:
    jobs, rules = scenario.workload.jobs, scenario.workload.rules
    if own.priority == "multifactor" and not rules.weights.any:
        raise ConfigError(
            f"policy {rule.name}: priority=multifactor needs weights; give --cluster FILE with "
            "priority: {age: 1000, fairshare: 10000}, or leave it out"
        )
    books = Accounting(rules, ranked=False)
    rooms = books.rooms(np.array([books.number(job) for job in jobs]))
    stuck = np.flatnonzero(np.array([job.gpus for job in jobs]) > rooms)
    if len(stuck):
        job = jobs[int(stuck[0])]
        raise TraceError(
            f"{scenario.trace.source.path}: job {job.job_id} asks for {job.gpus} GPUs, and limits of its account or "
            f"QOS leave it {max(0.0, rooms[stuck[0]]):g} at most ({len(stuck)} such jobs); raise them, or drop the jobs"
        )
    unknown = sorted({account_of(job) for job in jobs} - rules.accounts.keys()) if rules.accounts else []
    return [f"accounts: {_some(unknown)} not in the cluster file; 1 share each, no limits"] if unknown else []


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} others" if len(names) > most else "")


def _as_held(rule: PolicySpec, scenario: RigidScenario) -> tuple[Workload, list[str]]:
    """The workload with quotas that hold what the trace held, for a policy that replays its starts."""
    workload = scenario.workload
    untold = sum(isnan(outcome.start_s) for outcome in workload.outcomes)
    if untold == len(workload.jobs):
        raise ConfigError(
            f"policy {rule.name} needs recorded starts, and {scenario.trace.source.path} has none (column start_time); "
            "add it, or choose a policy that decides by itself"
        )
    result = [f"{untold:,} of {len(workload.jobs):,} jobs tell no start; they start when submitted"] if untold else []
    most = {pool.name: most_held(workload, pool.name) for pool in workload.pools}
    over = [(held - pool.quota, pool, held, at_s) for pool in workload.pools for held, at_s in [most[pool.name]]]
    over = sorted((one for one in over if one[0] > 0), key=lambda one: -one[0])
    if over:
        _, pool, held, at_s = over[0]
        result.append(
            f"{rule.name}: the trace held more than the quota in {len(over)} of {len(most)} pools, most in {pool.name}"
            f", {held} GPUs of {pool.quota} at {iso(at_s)}; here the quotas are what was held"
        )
    pools = [Pool(pool.name, max(pool.quota, most[pool.name][0])) for pool in workload.pools]
    return replace(workload, pools=pools), result


def most_held(workload: Workload, pool: str) -> tuple[int, float]:
    """The most GPUs that a pool's jobs held at once by their recorded starts, and when first; seconds."""
    rows = [
        (job.submit_s if isnan(outcome.start_s) else outcome.start_s, outcome.duration_s, job.gpus)
        for job, outcome in zip(workload.jobs, workload.outcomes, strict=True)
        if job.pool == pool
    ]
    if not rows:
        return 0, -inf
    start_s, duration_s, gpus = np.array(rows).T
    # An end within dust of a start comes before it, as in the engine.
    at_s = np.concatenate([start_s + duration_s - tolerance.EVENT_S, start_s])
    order = np.argsort(at_s, kind="stable")
    held = np.cumsum(np.concatenate([-gpus, gpus])[order])
    first = int(np.argmax(held))
    return int(held[first]), float(at_s[order][first])
