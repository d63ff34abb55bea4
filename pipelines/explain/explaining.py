"""What a job held, why it waited, was helped or was slowed: everything that `jobcast explain --json` writes."""

from typing import Any

from jobcast.domain.bad_answers import bad_lines
from jobcast.pipelines.explain.cluster_past import ClusterPast
from jobcast.pipelines.explain.helped import Helped
from jobcast.pipelines.explain.holdings import Holdings
from jobcast.pipelines.explain.kinds import Sharing, sharing_of
from jobcast.pipelines.explain.loans import Loans
from jobcast.pipelines.explain.mentions import Mentions, finite
from jobcast.pipelines.explain.reservations import Answers, Reservations
from jobcast.pipelines.explain.run_table import RunTable
from jobcast.pipelines.explain.slowed import Slowed
from jobcast.pipelines.explain.waits import Waits, totals
from jobcast.simulator.metrics import SLOWED_TOLERANCE_S
from jobcast.simulator.recording import MOST_A_JOB

HELPED, SLOWED, SAME, NEVER, UNKNOWN = "helped", "slowed", "same", "never_ran", "unknown"
TOLD = ("policy", "forecasts", "seed", "configuration", "inputs", "models", "jobcast")
RESERVES_OTHERWISE = ("sia_risk", "sia_preempt")
"""Policies that weigh what SIA's Figure 8 reserves instead of keeping all of it."""


def explain(table: RunTable, job_id: str) -> dict[str, Any]:
    """Explain one job of a run. Raises ConfigError for a job that it does not hold.

    Of any run: what it held, who held what while it held nothing, what was forecast of it. Of one that started whole
    jobs from pools' quotas: why it waited, was helped or slowed too.

    Times are seconds from the epoch (`_s` at the end of a key), None where there are none.
    """
    job, answers = table.find(job_id), Answers(table)
    holdings = Holdings(table).told(job)
    if not table.by_pools:
        return {
            "job": Mentions(table, answers).job(job) | {"preemptions": int(table.preemptions[job])},
            "summary": _times(table, job),
            **holdings,
            "run": _run(table, answers, Sharing.UNKNOWN),
            "notes": [*table.notes, *_left_out(table)],
        }
    past = ClusterPast(table)
    windows = table.bins is not None
    sharing = sharing_of(past, windows)
    reservations, mentions = Reservations(past, answers), Mentions(table, answers)
    loans = Loans(past, answers, reservations, sharing)
    waits = Waits(past, answers, reservations, mentions, sharing)
    stretches = waits.stretches(job)
    summary = _summary(past, job, sharing)
    return {
        "job": mentions.job(job) | {"preemptions": int(table.preemptions[job])},
        "summary": summary,
        **holdings,
        "waits": waits.told(job, stretches),
        "wait_by_reason": totals(stretches),
        "helped": Helped(past, mentions, loans, sharing).told(job) if summary["verdict"] == HELPED else None,
        "slowed": Slowed(past, mentions, loans, sharing).told(job) if summary["verdict"] == SLOWED else None,
        "run": _run(table, answers, sharing),
        "notes": [*table.notes, *_left_out(table), *_notes(table, answers, sharing)],
    }


def _left_out(table: RunTable) -> list[str]:
    """That not all answers about jobs were kept."""
    count = 0 if table.record is None else table.record.told.get("answers_left_out") or 0
    return [f"forecasts of jobs: {count:,} answers were not kept, {MOST_A_JOB} a job at most"] if count else []


def _summary(past: ClusterPast, job: int, sharing: Sharing) -> dict[str, Any]:
    table = past.table
    submit_s, start_s = float(table.submit_s[job]), float(table.start_s[job])
    due_s = None if sharing is Sharing.UNKNOWN else finite(past.fcfs_s(int(table.pool[job]))[job])
    ran = finite(start_s) is not None
    verdict, sooner_s = (UNKNOWN if ran else NEVER), None
    if due_s is not None and ran:
        sooner_s = due_s - start_s
        verdict = SAME if abs(sooner_s) <= SLOWED_TOLERANCE_S else HELPED if sooner_s > 0 else SLOWED
    return {
        **_times(table, job),
        "fcfs_started_s": due_s,
        "fcfs_wait_s": None if due_s is None else due_s - submit_s,
        "fcfs_jct_s": None if due_s is None else due_s - submit_s + float(table.duration_s[job]),
        "earlier_than_fcfs_s": sooner_s,
        "verdict": verdict,
    }


def _times(table: RunTable, job: int) -> dict[str, Any]:
    submit_s, start_s, end_s = (float(column[job]) for column in (table.submit_s, table.start_s, table.end_s))
    return {
        "submitted_s": submit_s,
        "started_s": finite(start_s),
        "ended_s": finite(end_s),
        "wait_s": finite(start_s - submit_s),
        "jct_s": finite(end_s - submit_s),
    }


def _run(table: RunTable, answers: Answers, sharing: Sharing) -> dict[str, Any]:
    told = {} if table.record is None else table.record.told
    return {
        "log": str(table.path),
        "jobs": len(table),
        "sharing": str(sharing),
        "horizons_min": list(answers.horizons_min),
        "record": table.record is not None,
        **{key: told.get(key) for key in TOLD},
    }


def _notes(table: RunTable, answers: Answers, sharing: Sharing) -> list[str]:
    told = {} if table.record is None else table.record.told
    notes = [f"bad forecasts, {line}" for line in bad_lines(told.get("bad_forecasts") or {})]
    if sharing is Sharing.WINDOWS and not answers.known:
        notes.append("no forecasts about pools are recorded: reservations count pending jobs alone")
    if table.policy in RESERVES_OTHERWISE:
        notes.append(f"{table.policy} weighs reservations: the GPUs told as reserved are those of SIA's Figure 8")
    if table.on_servers:
        notes.append(
            "a run on servers: GPUs count by number, so that unused and idle ones may have been too far apart for a "
            "job; fcfs is worked out without servers"
        )
    return notes
