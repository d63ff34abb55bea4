"""Limits of accounts, QOS and users in them, as they stood at any instant of a run: which of them held a job back."""

from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast, Level, level
from jobcast.pipelines.experiments.explain.phrases import Mentions, finite
from jobcast.simulator.log import Bools, Floats, Ints


class Limit(NamedTuple):
    """What the jobs of an account, of a QOS, or of a user in one may hold at once; infinite where nothing bounds it."""

    kind: str
    name: str
    user: str | None
    gpus: float
    jobs: float


class Limits:
    """Limits that the jobs of a run counted against; none where its record tells of none.

    Parameters
    ----------
    past, mentions : of the run
    """

    def __init__(self, past: ClusterPast, mentions: Mentions) -> None:
        self._past, self._mentions = past, mentions
        self._of, self._members = defaultdict[int, list[Limit]](list), defaultdict[Limit, list[int]](list)
        for job, *limit in () if past.table.limits is None else past.table.limits.iter_rows():
            self._of[job].append(Limit(*limit))
            self._members[Limit(*limit)].append(job)
        self._levels = cache(self._held)

    def over(self, job: int, at_s: Any) -> Bools:
        """Whether a job would have gone beyond any of its limits, at each instant."""
        found: Bools = np.zeros(np.shape(at_s), dtype=np.bool_)
        for limit in self._of.get(job, ()):
            found |= self._is_over(limit, job, at_s)
        return found

    def report(self, job: int, at_s: float) -> dict[str, Any] | None:
        """The first limit that a job would have gone beyond at an instant, and who was in it; None where none."""
        limit = next((one for one in self._of.get(job, ()) if self._is_over(one, job, at_s)), None)
        if limit is None:
            return None
        running = np.intersect1d(self._past.running_at(at_s), self._members[limit])
        return {
            "of": limit.kind,
            "name": limit.name,
            "user": limit.user,
            "most_gpus": finite(limit.gpus),
            "most_jobs": finite(limit.jobs),
            "held_by": self._mentions.most(running, self._past.table.gpus.astype(np.float64)),
        }

    def _is_over(self, limit: Limit, job: int, at_s: Any) -> Bools:
        gpus, jobs = self._levels(limit)
        wide: Floats = gpus.at(at_s) + self._past.table.gpus[job]
        return np.asarray((wide > limit.gpus) | (jobs.at(at_s) >= limit.jobs))

    def _held(self, limit: Limit) -> tuple[Level, Level]:
        """GPUs that the jobs of a limit hold, and how many of them run."""
        held = self._past.table.held
        rows = np.isin(held.job, self._members[limit])
        begin_s, until_s, jobs = held.from_s[rows], held.until_s[rows], held.job[rows]
        one: Ints = np.ones(len(jobs), dtype=np.int64)
        return level(begin_s, until_s, self._past.table.gpus[jobs]), level(begin_s, until_s, one)
