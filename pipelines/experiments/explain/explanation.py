"""What a job held, why it waited, was helped or was slowed: everything that `jobcast explain --json` writes.

Why a job started earlier than it would have without sharing: whose GPUs it took, or who made room in its pool.

Why a job started later than without sharing: who held the GPUs that it was due, and which forecast let them in.
"""

from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.bad_answers import bad_lines
from jobcast.domain.clock import MINUTE_S
from jobcast.pipelines.experiments.explain.cluster_history import WHOLE_CLUSTER, ClusterPast, Sharing, sharing_of
from jobcast.pipelines.experiments.explain.holdings import holdings_of
from jobcast.pipelines.experiments.explain.phrases import Mentions, finite
from jobcast.pipelines.experiments.explain.reservations import MOST, Answers, Reservations
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.pipelines.experiments.explain.waits import Evidence, Limits, Waits, borrowers, totals
from jobcast.pipelines.experiments.forecast_recording import MOST_A_JOB


class Loans(Evidence):
    """Explains starts on spare GPUs."""

    def window_min(self, job: int) -> float | None:
        """Window, in minutes, that a spare job was started in: the shortest that its bin allows and that had room.

        None where the policy knows no windows.
        """
        table = self._past.table
        label = table.bin_of(job)
        windows = self._answers.windows_of(label)
        if self._sharing is not Sharing.WINDOWS or self._answers.bin_index(label) is None or not windows:
            return None
        at_s = float(table.start_s[job])
        left = [float(self._reservations.usable(horizon_min, at_s)[0]) for horizon_min in windows]
        fitting = [horizon_min for horizon_min, gpus in zip(windows, left, strict=True) if gpus >= 0]
        # Rounding may leave none with room: then the one that had most.
        return fitting[0] if fitting else windows[int(np.argmax(left))]

    def to_job(self, job: int, pool: int) -> dict[str, Any]:
        """What had been forecast of one owner of GPUs when a job started on spare ones."""
        horizon_min, at_s = self.window_min(job), float(self._past.table.start_s[job])
        result: dict[str, Any] = {"at_s": at_s, "window_min": horizon_min}
        if horizon_min is None:
            return result
        owner = self._reservations.of_pool(pool, horizon_min, at_s)
        return result | {"until_s": at_s + MINUTE_S * horizon_min, "owner": owner}

    def lenders(self, job: int) -> dict[str, Any]:
        """Pools whose unused quota a job runs on, those that lent most first, and who came there before it ended."""
        table, past = self._past.table, self._past
        horizon_min, at_s = self.window_min(job), float(table.start_s[job])
        pools = []
        for pool in range(len(table.pools)):
            if horizon_min is not None:
                value = self._reservations.of_pool(pool, horizon_min, at_s)
            else:
                held = past.allocated if self._sharing is Sharing.SHARED else past.dedicated
                unused = float(past.quota(pool) - held(pool, at_s))
                value = {"pool": table.pools[pool], "unused_quota_gpus": unused, "lent_gpus": unused}
            if value["lent_gpus"] > 0:
                pools.append(value | {"before_its_end": self._arrivals(pool, at_s, float(table.end_s[job]))})
        pools.sort(key=lambda value: -value["lent_gpus"])
        return {"at_s": at_s, "window_min": horizon_min, "lenders": pools[:MOST], "count": len(pools)}

    def _arrivals(self, pool: int, from_s: float, until_s: float) -> dict[str, Any]:
        table = self._past.table
        came = np.flatnonzero((table.pool == pool) & (table.submit_s > from_s) & (table.submit_s <= until_s))
        first = None if not len(came) else {"job_id": table.job_ids[came[0]], "at_s": float(table.submit_s[came[0]])}
        return {"jobs": len(came), "gpus": int(table.gpus[came].sum()), "first": first}


class Helped(Loans):
    """Explains helped jobs of one run."""

    def report(self, job: int) -> dict[str, Any]:
        """Why, as data: loans of other pools, and earlier jobs of its pool that did not take their quota."""
        table, past = self._past.table, self._past
        pool, at_s = int(table.pool[job]), float(table.start_s[job])
        due_s = past.fcfs_s(pool)
        quota, held = past.quota(pool), float(past.allocated(pool, at_s))
        # Where GPUs are one pile nothing marks a loan but a pool beyond its quota.
        borrowed = not table.dedicated[job] or (self._sharing in (Sharing.SHARED, Sharing.CLOCK) and held > quota)
        result: dict[str, Any] = {
            "due_s": float(due_s[job]),
            "earlier_s": float(due_s[job]) - at_s,
            "on_spare_gpus": not table.dedicated[job],
            "allocated_gpus": held,
            "dedicated_gpus": float(past.dedicated(pool, at_s)),
            "quota_gpus": int(quota),
            "loan": self.lenders(job) if borrowed else None,
        }
        return result | self._room(job, at_s, due_s)

    def _room(self, job: int, at_s: float, due_s: Floats) -> dict[str, Any]:
        """Earlier jobs of the pool that without sharing would have held its quota, or waited for it, at an instant."""
        table, past = self._past.table, self._past
        mine = past.members(int(table.pool[job]))
        mine = mine[mine < job]
        # Without sharing these would still have held or awaited the quota.
        mine = mine[due_s[mine] + table.duration_s[mine] > at_s]
        on_spare = (table.start_s[mine] <= at_s) & (table.end_s[mine] > at_s) & ~table.dedicated[mine]
        done, waiting = table.end_s[mine] <= at_s, table.start_s[mine] > at_s
        widths = table.gpus.astype(np.float64)
        return {
            "earlier_jobs_on_spare": self._mentions.most(mine[on_spare], widths),
            "earlier_jobs_done": self._mentions.most(mine[done], widths),
            "overtook": self._mentions.most(mine[waiting], widths),
        }


class Slowed(Loans):
    """Explains slowed jobs of one run.

    A job may be late because jobs of its own pool before it were: those are followed back to one that was kept from
    its quota by others.
    """

    def report(self, job: int) -> dict[str, Any]:
        """Why, as data: the chain of late jobs, the first of them, and who held its GPUs when it was due."""
        chain = self.chain(job)
        root = chain[-1]
        pool = int(self._past.table.pool[root])
        due_s, start_s = self._due_s(root), float(self._past.table.start_s[root])
        result: dict[str, Any] = {
            "due_s": self._due_s(job),
            "later_s": float(self._past.table.start_s[job]) - self._due_s(job),
            "chain": [self._late(late) for late in chain[1:]],
            "first_late": self._late(root),
            "at_s": due_s,
            "quota_gpus": int(self._past.quota(pool)),
            "allocated_gpus": float(self._past.allocated(pool, due_s)),
            "unused_quota_gpus": max(0.0, float(self._past.unused(pool, due_s))),
            "idle_gpus": float(self._past.idle(due_s)),
            "limit": self._limits.report(root, due_s),
            "overtaken_by": self._mentions.most(*self._overtakers(root, due_s, start_s)),
        }
        held = self._culprits(pool, due_s)
        seconds = self._past.gpu_seconds(due_s, start_s)
        result["held_by"] = self._mentions.most(held, seconds)
        # The same order as that of the mentions.
        order = held[np.argsort(-seconds[held], kind="stable")][:MOST]
        for mention, culprit in zip(result["held_by"]["jobs"], order.tolist(), strict=True):
            mention["let_in"] = self.to_job(culprit, pool) if not mention["dedicated"] else None
        if self._sharing in (Sharing.SHARED, Sharing.CLOCK):
            result["pools_beyond_quota"] = self._beyond(pool, due_s)
        return result

    def chain(self, job: int) -> list[int]:
        """A job, then the late job of its pool that it waited for, and so on to the first."""
        chain = [job]
        # Back to the first that others kept from its quota: the rest are late because of it.
        while not self._kept_away(chain[-1]) and (late := self._late_before(chain[-1])) is not None:
            chain.append(late)
        return chain

    def _due_s(self, job: int) -> float:
        return float(self._past.fcfs_s(int(self._past.table.pool[job]))[job])

    def _kept_away(self, job: int) -> bool:
        """Whether, when a job was due, others held the GPUs of its unused quota, or later jobs came first."""
        table, due_s, pool = self._past.table, self._due_s(job), int(self._past.table.pool[job])
        if self._sharing is Sharing.PRIVATE:
            return bool(len(self._overtakers(job, due_s, float(table.start_s[job]))[0]))
        return bool(self._past.idle(due_s) < table.gpus[job] <= self._past.unused(pool, due_s))

    def _late_before(self, job: int) -> int | None:
        """The first job of the pool that was late and therefore still waited, or ran, when a job was due."""
        table, past = self._past.table, self._past
        pool, due_s = int(table.pool[job]), self._due_s(job)
        starts = past.fcfs_s(pool)
        mine = past.members(pool)
        mine = mine[mine < job]
        late = table.start_s[mine] - starts[mine] > tolerance.LATER_S
        waits = table.start_s[mine] > due_s
        # Late ones that should be over by now and still run.
        overdue = (table.end_s[mine] > due_s) & (starts[mine] + table.duration_s[mine] <= due_s)
        found = mine[late & (waits | overdue)]
        return int(found[0]) if len(found) else None

    def _culprits(self, pool: int, due_s: float) -> Ints:
        """Jobs on GPUs that are not their pool's own at an instant."""
        running = self._past.running_at(due_s)
        if self._sharing is Sharing.PRIVATE:
            return running[:0]
        culprits: Ints = borrowers(self._past, running, due_s, pool)
        return culprits

    def _overtakers(self, job: int, due_s: float, start_s: float) -> tuple[Ints, Floats]:
        """Later jobs of the queue that started before a job and ran while it was overdue; GPU-seconds by job."""
        table, past = self._past.table, self._past
        mine = np.arange(len(table)) if table.policy in WHOLE_CLUSTER else past.members(int(table.pool[job]))
        mine = mine[(mine > job) & (table.start_s[mine] < start_s) & (table.end_s[mine] > due_s)]
        return mine[table.dedicated[mine]], past.gpu_seconds(due_s, start_s)

    def _late(self, job: int) -> dict[str, Any]:
        due_s = self._due_s(job)
        return {**self._mentions.job(job), "due_s": due_s, "later_s": float(self._past.table.start_s[job]) - due_s}

    def _beyond(self, pool: int, at_s: float) -> list[dict[str, Any]]:
        """Pools that hold more than their quota at an instant, by how much more."""
        table, past = self._past.table, self._past
        held = {other: float(past.allocated(other, at_s)) for other in range(len(table.pools)) if other != pool}
        beyond = {other: gpus - past.quota(other) for other, gpus in held.items() if gpus > past.quota(other)}
        return [
            {"pool": table.pools[other], "quota_gpus": int(past.quota(other)), "allocated_gpus": held[other]}
            for other in sorted(beyond, key=lambda other: -beyond[other])[:MOST]
        ]


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
    mentions, holdings = Mentions(table, answers), holdings_of(table, job)
    about = mentions.job(job) | {"preemptions": int(table.preemptions[job])}
    if not table.by_pools:
        return {
            "job": about,
            "summary": _times(table, job),
            **holdings,
            "run": _run(table, answers, Sharing.UNKNOWN),
            "notes": [*table.notes, *_left_out(table)],
        }
    past = ClusterPast(table)
    sharing = sharing_of(past, windows=table.bins is not None)
    evidence = past, answers, Reservations(past, answers), mentions, Limits(past, mentions), sharing
    waits, summary = Waits(*evidence), _summary(past, job, sharing)
    stretches = waits.stretches(job)
    return {
        "job": about,
        "summary": summary,
        **holdings,
        "waits": waits.report(job, stretches),
        "wait_by_reason": totals(stretches),
        "helped": Helped(*evidence).report(job) if summary["verdict"] == HELPED else None,
        "slowed": Slowed(*evidence).report(job) if summary["verdict"] == SLOWED else None,
        "run": _run(table, answers, sharing),
        "notes": [*table.notes, *_left_out(table), *_notes(table, answers, sharing)],
    }


def _left_out(table: RunTable) -> list[str]:
    """That not all answers about jobs were kept."""
    count = table.figures.get("answers_left_out") or 0
    return [f"forecasts of jobs: {count:,} answers were not kept, {MOST_A_JOB} a job at most"] if count else []


def _summary(past: ClusterPast, job: int, sharing: Sharing) -> dict[str, Any]:
    table = past.table
    submit_s, start_s = float(table.submit_s[job]), float(table.start_s[job])
    # Without quotas nothing is known of a run without sharing.
    due_s = None if sharing is Sharing.UNKNOWN else finite(past.fcfs_s(int(table.pool[job]))[job])
    ran = finite(start_s) is not None
    verdict, sooner_s = (UNKNOWN if ran else NEVER), None
    if due_s is not None and ran:
        sooner_s = due_s - start_s
        # Times in tables are rounded: a microsecond makes nobody slowed.
        verdict = SAME if abs(sooner_s) <= tolerance.LATER_S else HELPED if sooner_s > 0 else SLOWED
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
    return {
        "log": str(table.path),
        "jobs": len(table),
        "sharing": str(sharing),
        "horizons_min": list(answers.horizons_min),
        "record": table.record is not None,
        **{key: table.figures.get(key) for key in TOLD},
    }


def _notes(table: RunTable, answers: Answers, sharing: Sharing) -> list[str]:
    notes = [f"bad forecasts, {line}" for line in bad_lines(table.figures.get("bad_forecasts") or {})]
    if sharing is Sharing.WINDOWS and not answers.known:
        notes.append("no forecasts about pools are recorded: reservations count pending jobs alone")
    if table.policy in RESERVES_OTHERWISE:
        notes.append(f"{table.policy} weighs reservations: the GPUs told as reserved are those of SIA's Figure 8")
    # Jobs were given cells of these.
    if table.figures.get("servers"):
        notes.append(
            "a run on servers: GPUs count by number, so that unused and idle ones may have been too far apart for a "
            "job; fcfs is worked out without servers"
        )
    return notes
