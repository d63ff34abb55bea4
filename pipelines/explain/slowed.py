"""Why a job started later than without sharing: who held the GPUs that it was due, and which forecast let them in."""

from typing import Any

import numpy as np

from jobcast.pipelines.explain.cluster_past import ClusterPast
from jobcast.pipelines.explain.kinds import WHOLE_CLUSTER, Sharing
from jobcast.pipelines.explain.loans import Loans
from jobcast.pipelines.explain.mentions import MOST, Mentions
from jobcast.pipelines.explain.waits import borrowers
from jobcast.simulator.log import Floats, Ints
from jobcast.simulator.metrics import SLOWED_TOLERANCE_S


class Slowed:
    """Explains slowed jobs of one run.

    A job may be late because jobs of its own pool before it were: those are followed back to one that was kept from
    its quota by others.

    Parameters
    ----------
    past, mentions, loans : of the run
    sharing : how its policy lends GPUs
    """

    def __init__(self, past: ClusterPast, mentions: Mentions, loans: Loans, sharing: Sharing) -> None:
        self._past, self._mentions, self._loans, self._sharing = past, mentions, loans, sharing

    def told(self, job: int) -> dict[str, Any]:
        """Why, as data: the chain of late jobs, the first of them, and who held its GPUs when it was due."""
        chain = self.chain(job)
        root = chain[-1]
        pool = int(self._past.table.pool[root])
        due_s, start_s = self._due_s(root), float(self._past.table.start_s[root])
        told: dict[str, Any] = {
            "due_s": self._due_s(job),
            "later_s": float(self._past.table.start_s[job]) - self._due_s(job),
            "chain": [self._late(late) for late in chain[1:]],
            "first_late": self._late(root),
            "at_s": due_s,
            "quota_gpus": int(self._past.quota(pool)),
            "allocated_gpus": float(self._past.allocated(pool, due_s)),
            "unused_quota_gpus": max(0.0, float(self._past.unused(pool, due_s))),
            "idle_gpus": float(self._past.idle(due_s)),
            "overtaken_by": self._mentions.most(*self._overtakers(root, due_s, start_s)),
        }
        held = self._culprits(pool, due_s)
        seconds = self._past.gpu_seconds(due_s, start_s)
        told["held_by"] = self._mentions.most(held, seconds)
        order = held[np.argsort(-seconds[held], kind="stable")][:MOST]
        for mention, culprit in zip(told["held_by"]["jobs"], order.tolist(), strict=True):
            mention["let_in"] = self._loans.to_job(culprit, pool) if not mention["dedicated"] else None
        if self._sharing in (Sharing.SHARED, Sharing.CLOCK):
            told["pools_beyond_quota"] = self._beyond(pool, due_s)
        return told

    def chain(self, job: int) -> list[int]:
        """A job, then the late job of its pool that it waited for, and so on to the first."""
        chain = [job]
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
        late = table.start_s[mine] - starts[mine] > SLOWED_TOLERANCE_S
        waits = table.start_s[mine] > due_s
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
