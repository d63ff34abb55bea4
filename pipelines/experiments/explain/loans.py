"""A job on spare GPUs: in which window it was let in, whose GPUs it took, what had been forecast and who then came."""

from typing import Any

import numpy as np

from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast
from jobcast.pipelines.experiments.explain.phrases import MOST
from jobcast.pipelines.experiments.explain.reservations import MINUTE_S, Answers, Reservations
from jobcast.pipelines.experiments.explain.sharing_rules import Sharing


class Loans:
    """Explains starts on spare GPUs.

    Parameters
    ----------
    past, answers, reservations : of the run
    sharing : how its policy lends GPUs
    """

    def __init__(self, past: ClusterPast, answers: Answers, reservations: Reservations, sharing: Sharing) -> None:
        self._past, self._answers, self._reservations = past, answers, reservations
        self._sharing = sharing

    def window_min(self, job: int) -> float | None:
        """Window, in minutes, that a spare job was started in: the shortest that its bin allows and that had room.

        None where the policy knows no windows.
        """
        table = self._past.table
        label = None if table.bins is None else table.bins[job]
        windows = self._answers.windows_of(label)
        if self._sharing is not Sharing.WINDOWS or self._answers.bin_index(label) is None or not windows:
            return None
        at_s = float(table.start_s[job])
        left = [float(self._reservations.usable(horizon_min, at_s)[0]) for horizon_min in windows]
        fitting = [horizon_min for horizon_min, gpus in zip(windows, left, strict=True) if gpus >= 0]
        return fitting[0] if fitting else windows[int(np.argmax(left))]

    def to_job(self, job: int, pool: int) -> dict[str, Any]:
        """What had been forecast of one owner of GPUs when a job started on spare ones."""
        horizon_min, at_s = self.window_min(job), float(self._past.table.start_s[job])
        told: dict[str, Any] = {"at_s": at_s, "window_min": horizon_min}
        if horizon_min is None:
            return told
        owner = self._reservations.of_pool(pool, horizon_min, at_s)
        return told | {"until_s": at_s + MINUTE_S * horizon_min, "owner": owner}

    def lenders(self, job: int) -> dict[str, Any]:
        """Pools whose unused quota a job runs on, those that lent most first, and who came there before it ended."""
        table, past = self._past.table, self._past
        horizon_min, at_s = self.window_min(job), float(table.start_s[job])
        pools = []
        for pool in range(len(table.pools)):
            if horizon_min is not None:
                told = self._reservations.of_pool(pool, horizon_min, at_s)
            else:
                unused = (
                    float(past.quota(pool) - past.allocated(pool, at_s)) if self._sharing is Sharing.SHARED else None
                )
                unused = float(past.unused(pool, at_s)) if unused is None else unused
                told = {"pool": table.pools[pool], "unused_quota_gpus": unused, "lent_gpus": unused}
            if told["lent_gpus"] > 0:
                pools.append(told | {"before_its_end": self._arrivals(pool, at_s, float(table.end_s[job]))})
        pools.sort(key=lambda told: -told["lent_gpus"])
        return {"at_s": at_s, "window_min": horizon_min, "lenders": pools[:MOST], "count": len(pools)}

    def _arrivals(self, pool: int, from_s: float, until_s: float) -> dict[str, Any]:
        table = self._past.table
        came = np.flatnonzero((table.pool == pool) & (table.submit_s > from_s) & (table.submit_s <= until_s))
        first = None if not len(came) else {"job_id": table.job_ids[came[0]], "at_s": float(table.submit_s[came[0]])}
        return {"jobs": len(came), "gpus": int(table.gpus[came].sum()), "first": first}
