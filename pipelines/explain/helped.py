"""Why a job started earlier than it would have without sharing: whose GPUs it took, or who made room in its pool."""

from typing import Any

import numpy as np

from jobcast.pipelines.explain.cluster_past import ClusterPast
from jobcast.pipelines.explain.kinds import Sharing
from jobcast.pipelines.explain.loans import Loans
from jobcast.pipelines.explain.mentions import Mentions
from jobcast.simulator.log import Floats


class Helped:
    """Explains helped jobs of one run.

    Parameters
    ----------
    past, mentions, loans : of the run
    sharing : how its policy lends GPUs
    """

    def __init__(self, past: ClusterPast, mentions: Mentions, loans: Loans, sharing: Sharing) -> None:
        self._past, self._mentions, self._loans, self._sharing = past, mentions, loans, sharing

    def told(self, job: int) -> dict[str, Any]:
        """Why, as data: loans of other pools, and earlier jobs of its pool that did not take their quota."""
        table, past = self._past.table, self._past
        pool, at_s = int(table.pool[job]), float(table.start_s[job])
        due_s = past.fcfs_s(pool)
        quota, held = past.quota(pool), float(past.allocated(pool, at_s))
        borrowed = not table.dedicated[job] or (self._sharing in (Sharing.SHARED, Sharing.CLOCK) and held > quota)
        told: dict[str, Any] = {
            "due_s": float(due_s[job]),
            "earlier_s": float(due_s[job]) - at_s,
            "on_spare_gpus": not table.dedicated[job],
            "allocated_gpus": held,
            "dedicated_gpus": float(past.dedicated(pool, at_s)),
            "quota_gpus": int(quota),
            "loan": self._loans.lenders(job) if borrowed else None,
        }
        return told | self._room(job, at_s, due_s)

    def _room(self, job: int, at_s: float, due_s: Floats) -> dict[str, Any]:
        """Earlier jobs of the pool that without sharing would have held its quota, or waited for it, at an instant."""
        table, past = self._past.table, self._past
        mine = past.members(int(table.pool[job]))
        mine = mine[mine < job]
        mine = mine[due_s[mine] + table.duration_s[mine] > at_s]
        on_spare = (table.start_s[mine] <= at_s) & (table.end_s[mine] > at_s) & ~table.dedicated[mine]
        done, waiting = table.end_s[mine] <= at_s, table.start_s[mine] > at_s
        widths = table.gpus.astype(np.float64)
        return {
            "earlier_jobs_on_spare": self._mentions.most(mine[on_spare], widths),
            "earlier_jobs_done": self._mentions.most(mine[done], widths),
            "overtook": self._mentions.most(mine[waiting], widths),
        }
