"""Whole jobs: a window's jobs that hold the GPUs that they ask for, in pools, and what tables tell of them.

What a policy over pools needs to know of them is looked at before it runs; what they lack is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.domain.hardware import FLAT_POOL, Cluster
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.scheduling_rules import NO_RULES, SchedulingRules
from jobcast.domain.settings import Settings, read_settings
from jobcast.pipelines.experiments.scaling_jobs import ScalingJobs, ScalingTables, scaled
from jobcast.pipelines.experiments.scenarios import Bare, Scenario
from jobcast.pipelines.experiments.training_jobs import planned_run_times, training_workload
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.job_table import listed
from jobcast.schedulers.accounting import Accounting, account_of, partitions_of, qos_of
from jobcast.schedulers.cells.quotas import Cells, cells_of, check_jobs, server_size, servers_for
from jobcast.schedulers.policies import STARTS, TIME_LIMITS, LocalitySite, PolicySpec
from jobcast.schedulers.pool_policies import BackfillSettings
from jobcast.schedulers.registry import local_of
from jobcast.simulator.draws import draw_key, uniform
from jobcast.simulator.workload import Workload, drop_too_wide, keep_jobs, pools_only
from jobcast.traces.table import Trace
from jobcast.traces.think_times import find_successors
from jobcast.traces.trainings import Trainings, TrainingTables

LOCALITY = "locality"
"""The setting that asks for it: `--set locality=true`."""
SERVER_GPUS = 8
"""Of each server where no cluster file tells: SIA, section 6.4."""


def asks_for_locality(settings: Mapping[str, Any]) -> bool:
    """Whether jobs are to be given cells. Raises ConfigError for a value that is neither true nor false."""
    given = {LOCALITY: settings[LOCALITY]} if LOCALITY in settings else {}
    return read_settings("the cluster", LocalitySite, given).locality


def check_locality(policy: str, baseline: str | None = None) -> None:
    """Refuse what cannot place jobs in cells, before anything is replayed. ConfigError for an unknown policy too."""
    # It raises, and says which policies do.
    local_of(policy)
    if baseline is not None:
        try:
            local_of(baseline)
        except ConfigError as error:
            raise ConfigError(f"--baseline: {error}, or none") from None


def on_servers(workload: Workload, place: Cluster) -> tuple[Workload, Cells, str]:
    """A workload on the servers of its cluster, without any on as many of eight as its quotas need.

    Returns
    -------
    the workload, the cells of all pools, those that the cluster tells among them, and what is to be noted

    Raises
    ------
    PoolsError
        The quotas cannot be had on the servers as cells.
    TraceError
        A job fits no cells of its pool's.
    """
    pools = workload.pools
    # A cluster file's nodes are taken as they are; else as many servers as quotas need.
    servers = tuple(place.node_gpus.tolist()) or servers_for(pools, SERVER_GPUS)
    cells = cells_of(pools, servers, place.cells)
    # A job that fits no cells of its pool would wait for ever.
    check_jobs(workload.jobs, cells, server_size(servers))
    note = f"locality: {len(servers)} servers of {server_size(servers)} GPUs"
    return replace(workload, servers=servers), cells, note


LOOP_NOTE = "closed loop"
"""How a note about who follows whom begins."""


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """The tables that told of the training jobs of a window, and what they told, in the order of its trace."""

    tables: TrainingTables
    trainings: Trainings


@dataclass(frozen=True, slots=True)
class WholeFacts:
    """What is known of whole jobs beside their run times.

    Attributes
    ----------
    training : of the window's training jobs, where tables told of them
    planned_s : job id -> seconds that a training job would take alone as planned, where courses were planned
    cells : by pool, GPUs of each cell that its quota is made of, where jobs are placed in cells
    scaling : of jobs that run on any number of GPUs, where tables told of them
    """

    training: TrainingFacts | None = None
    planned_s: Mapping[str, float] = field(default_factory=dict)
    cells: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    scaling: ScalingJobs | None = None


RigidScenario = Scenario[Workload, WholeFacts]


def rigid_jobs(
    cut: Bare,
    *,
    drop_wide: bool = False,
    only_pools: bool = False,
    tables: TrainingTables | None = None,
    scaling: ScalingTables | None = None,
    local: bool = False,
    max_think_s: float | None = None,
) -> RigidScenario:
    """The jobs of a window, checked against the quotas.

    Parameters
    ----------
    cut : the window
    drop_wide, only_pools : whether jobs that are wider than their pool or their limits, or of pools without capacity,
        are left out
    tables : of training jobs
    scaling : tables of jobs that run on any number of GPUs
    local : whether jobs are placed in cells of servers
    max_think_s : jobs follow others where somebody thought no longer than that; see `find_successors`

    Raises
    ------
    TraceError
        A job is wider than its pool, none is left, or tables do not tell of one.
    PoolsError
        A pool has no capacity, or quotas cannot be had as cells.
    ConfigError
        Jobs scale and nodes are of several sizes.
    """
    # A cluster without quotas is one pool, whatever pools the trace tells.
    place, window = cut.place, in_one_pool(cut.trace, cut.place.rules) if cut.place.flat else cut.trace
    jobs, durations = window.to_jobs()
    result = zip(durations.tolist(), window.recorded_start_s.tolist(), strict=True)
    outcomes = [Outcome(duration_s, start_s=start_s) for duration_s, start_s in result]
    workload = Workload(jobs, outcomes, place.pools, rules=place.rules, begin=cut.begin)
    facts, notes = WholeFacts(), list[str]()
    if tables is not None:
        workload, trainings = training_workload(workload, window, tables)
        facts = WholeFacts(TrainingFacts(tables, trainings), planned_run_times(window, tables))
        notes += trainings.notes
    # After the tables, whose jobs keep their place, and before anything counts on who is there.
    workload, dropped = _kept(workload, drop_wide, only_pools)
    _check(workload, cut.trace.source.path)
    notes += [f"quotas: {place.origin}", _unlike(window, workload)]
    if max_think_s is not None:
        # People are told apart by the trace's own pools, also on a flat cluster.
        workload, note = _closed(workload, cut.trace, max_think_s)
        notes.append(note)
    if local:
        workload, cells, note = on_servers(workload, place)
        facts = replace(facts, cells=cells)
        notes.append(note)
    if scaling is not None:
        # Last: its run times replace those of the trace, which all the rest goes by.
        workload, scales, note = scaled(workload, window, scaling, place)
        facts = replace(facts, scaling=scales)
        notes.append(note)
    return cut.of(workload, facts, *notes, listed=listed(workload), dropped=dropped)


def in_one_pool(trace: Trace, rules: SchedulingRules) -> Trace:
    """The same jobs, all of the pool of a cluster without quotas.

    Where accounts count, the pool that a job had stands for its account if it names none.
    """
    jobs = trace.jobs
    if rules.accounts or rules.weights.fairshare:
        jobs = jobs.with_columns(account=pl.coalesce("account", "pool") if "account" in jobs.columns else "pool")
    return replace(trace, jobs=jobs.with_columns(pool=pl.lit(FLAT_POOL)))


def _unlike(window: Trace, workload: Workload) -> str:
    """A line where pools ask for GPUs of different types, which no policy over pools looks at; empty elsewhere."""
    if "gpu_type" not in window.jobs.columns:
        return ""
    there = window.jobs.filter(pl.col("pool").is_in([pool.name for pool in workload.pools if pool.quota]))
    asked = there.drop_nulls("gpu_type").group_by("pool").agg(pl.col("gpu_type").unique().sort().str.join("+"))
    by_type = asked.group_by("gpu_type").agg(pl.col("pool").sort().str.join(", ")).sort("gpu_type")
    if by_type.height < 2:
        return ""
    told = "; ".join(f"{kind}: {pools}" for kind, pools in by_type.iter_rows())
    return (
        f"gpu_type: pools ask for different GPUs ({told}), which policies that lend take to be alike; to know what "
        "lending brings, keep pools of one type in --pools and pass --pools-only"
    )


def _kept(workload: Workload, drop_wide: bool, only_pools: bool) -> tuple[Workload, dict[str, int]]:
    """The workload without what is to be left out, and how many that are, by reason."""
    dropped = {}
    for asked, rule, reason in (
        (only_pools, pools_only, "of pools without capacity"),
        (drop_wide, drop_too_wide, "wider than their pool"),
        # Under all policies, so that those that know accounts meet the same jobs as those that do not.
        (drop_wide and workload.rules != NO_RULES, _within_limits, "wider than limits of their account or QOS"),
    ):
        if asked:
            workload, dropped[reason] = rule(workload)
    return workload, dropped


def _within_limits(workload: Workload) -> tuple[Workload, int]:
    rooms = _rooms(Accounting(workload.rules, ranked=False), workload.jobs)
    room = {job.seq: room for job, room in zip(workload.jobs, rooms.tolist(), strict=True)}
    return keep_jobs(workload, lambda job: job.gpus <= room[job.seq])


def _rooms(books: Accounting, jobs: Sequence[Job]) -> Floats:
    """GPUs that limits of accounts and QOS leave to each job where nobody runs, (n,)."""
    return books.rooms(np.array([books.number(job) for job in jobs], dtype=np.int64))


def _check(workload: Workload, path: str) -> None:
    """Refuse jobs that can never run, naming the trace that they come from."""
    try:
        workload.check()
    except (PoolsError, TraceError) as error:
        # The same kind of error, so that commands go on to tell a bad pools file from a bad trace.
        raise type(error)(f"{path}: {error}") from None
    if not workload.jobs:
        raise TraceError(f"{path}: no job of the window is left to replay; check the pools file")


def _closed(workload: Workload, window: Trace, max_think_s: float) -> tuple[Workload, str]:
    """The workload with who follows whom among its jobs, and that in words; pools are those of the trace."""
    # Nobody follows a job that is not replayed.
    kept = [job.job_id for job in workload.jobs]
    found = find_successors(replace(window, jobs=window.jobs.filter(pl.col("job_id").is_in(kept))), max_think_s)
    text = (
        f"{LOOP_NOTE}: {len(found.successions):,} of {len(kept):,} jobs follow others, after at most {max_think_s:g} s "
        f"of thought; {found.timers} users keep to a timer"
    )
    return replace(workload, successions=found.successions), text


PREEMPTIBLE_SHARE, RESUME_S = "preemptible_share", "resume_s"


def scenario_workload(workload: Workload, own: Settings, seed: int) -> Workload:
    """The workload as a policy's settings have it.

    `preemptible_share` draws the jobs that may be stopped, each by (seed, job id), in place of what the trace says;
    `resume_s` is lost by a job that goes on.
    """
    given = own.given()
    share = given.get(PREEMPTIBLE_SHARE)
    if share is not None:
        # By (seed, job id): a job stays the same when others are left out, and larger shares only add.
        jobs = [
            replace(job, preemptible=uniform(draw_key(seed, "preemptible", job.job_id)) < share)
            for job in workload.jobs
        ]
        workload = replace(workload, jobs=jobs)
    return replace(workload, resume_s=given[RESUME_S]) if RESUME_S in given else workload


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
    rooms = _rooms(books, jobs)
    stuck = np.flatnonzero(np.array([job.gpus for job in jobs]) > rooms)
    if len(stuck):
        job = jobs[int(stuck[0])]
        raise TraceError(
            f"{scenario.trace.source.path}: job {job.job_id} asks for {job.gpus} GPUs, and limits of its account or "
            f"QOS leave it {max(0.0, rooms[stuck[0]]):g} at most ({len(stuck)} such jobs); raise them, or pass "
            "--drop-too-wide"
        )
    named = {
        "accounts": (rules.accounts, {account_of(job) for job in jobs}, "1 share each, no limits"),
        "qos": (rules.qos, {qos_of(job) for job in jobs} - {""}, "priority 0, no limits"),
        "partitions": (rules.partitions, {name for job in jobs for name in partitions_of(job)}, "priority 0"),
    }
    result = [
        f"{section}: {_some(unknown)} not in the cluster file; {meaning}"
        for section, (there, asked, meaning) in named.items()
        if there and (unknown := sorted(asked - there.keys()))
    ]
    nameless = sum(not job.user for job in jobs)
    if nameless and (rules.users_limited or rules.weights.fairshare):
        result.append(
            f"users: {nameless:,} of {len(jobs):,} jobs name none; limits and shares of users take them for one"
        )
    return result


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
