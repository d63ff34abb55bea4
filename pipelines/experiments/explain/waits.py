"""Why a job waited: stretches of its wait, and why it started neither on its quota nor on other GPUs.

Limits of accounts, QOS and users in them count as they stood at any instant of the run: which of them held a job back.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast, Level, Sharing, ahead_of, level
from jobcast.pipelines.experiments.explain.phrases import Mentions, finite
from jobcast.pipelines.experiments.explain.reservations import Answers, Reservations


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


# Why not on its pool's quota:
QUOTA, LENT, AHEAD, ORDER, UNKNOWN = "quota_full", "quota_lent", "behind_others", "not_chosen", "unknown"
LIMIT = "limit"
# Why not on other GPUs:
FEW_IDLE, TOO_LONG, RESERVED, CLOCK = "too_few_idle", "too_long", "reserved", "reserved_for_virtual_starts"
DETAILED = 6
"""Stretches that are told in detail, the longest ones; of the others the reasons alone."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a wait with one reason.

    Attributes
    ----------
    from_s, until_s : seconds from the epoch
    quota_reason : why the job did not start on its pool's quota
    spare_reason : why not on other GPUs; None where the policy lends none, or for the same reason
    at_s : instant that stands for the stretch: the beginning of its longest piece without any event
    """

    from_s: float
    until_s: float
    quota_reason: str
    spare_reason: str | None
    at_s: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.until_s - self.from_s


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What jobs of a run are explained by; `sharing`: how its policy lends GPUs."""

    _past: ClusterPast
    _answers: Answers
    _reservations: Reservations
    _mentions: Mentions
    _limits: Limits
    _sharing: Sharing


class Waits(Evidence):
    """Explains the wait of jobs of one run."""

    def stretches(self, job: int) -> list[Stretch]:
        """Stretches in which a job was pending, in order of time, as far as the run tells."""
        table = self._past.table
        begin_s, found = float(table.known_s[job]), []
        spans = self._past.spans_of(job)
        last_s = float(self._past.events_s[-1])
        # A job that never ran waits to the end of the log.
        for start_s, end_s in spans or [(last_s, np.inf)]:
            if start_s > begin_s:
                found += self._between(job, begin_s, start_s)
            begin_s = end_s
        return found

    def report(self, job: int, stretches: list[Stretch]) -> list[dict[str, Any]]:
        """All stretches as data, the longest with details."""
        longest = sorted(stretches, key=lambda stretch: -stretch.seconds)[:DETAILED]
        detailed = {id(stretch) for stretch in longest}
        return [
            {
                "from_s": stretch.from_s,
                "until_s": stretch.until_s,
                "seconds": stretch.seconds,
                "quota_reason": stretch.quota_reason,
                "spare_reason": stretch.spare_reason,
                "details": self._details(job, stretch) if id(stretch) in detailed else None,
            }
            for stretch in stretches
        ]

    def _between(self, job: int, begin_s: float, end_s: float) -> list[Stretch]:
        # A reason changes only with the cluster or with what is forecast.
        changes = np.concatenate([self._past.events_s, self._answers.instants_s])
        inner = changes[(changes > begin_s) & (changes < end_s)]
        at_s = np.unique(np.concatenate([[begin_s], inner]))
        lengths = np.diff(np.append(at_s, end_s))
        reasons = list(zip(self._quota_reasons(job, at_s), self._spare_reasons(job, at_s), strict=True))
        found, first = [], 0
        for index in range(1, len(at_s) + 1):
            # Pieces with one reason are one stretch.
            if index < len(at_s) and reasons[index] == reasons[first]:
                continue
            # The longest piece stands for the stretch: details are of its beginning.
            longest = first + int(np.argmax(lengths[first:index]))
            until_s = float(at_s[index]) if index < len(at_s) else end_s
            found.append(Stretch(float(at_s[first]), until_s, *reasons[first], at_s=float(at_s[longest])))
            first = index
        return found

    def _quota_reasons(self, job: int, at_s: Floats) -> list[str]:
        table, past = self._past.table, self._past
        ahead = self._ahead_count(job, at_s) > 0
        if self._sharing is Sharing.UNKNOWN:
            return list(map(str, np.where(ahead, AHEAD, UNKNOWN)))
        width, pool = table.gpus[job], int(table.pool[job])
        full, scarce = width > past.unused(pool, at_s), width > past.idle(at_s)
        if self._sharing in (Sharing.SHARED, Sharing.CLOCK):
            # Quotas bound nobody there: a full one matters only if nothing is idle.
            full = full & scarce
        rest = CLOCK if self._sharing is Sharing.CLOCK else np.where(ahead, AHEAD, ORDER)
        found = np.where(full, QUOTA, np.where(scarce, LENT, rest))
        # Whoever is held by a limit would not have started on any GPUs.
        return list(map(str, np.where(self._limits.over(job, at_s), LIMIT, found)))

    def _spare_reasons(self, job: int, at_s: Floats) -> list[str | None]:
        if self._sharing not in (Sharing.WINDOWS, Sharing.SPARE):
            return [None] * len(at_s)
        width = self._past.table.gpus[job]
        scarce = width > self._past.idle(at_s)
        if self._sharing is Sharing.SPARE:
            ahead = self._ahead_count(job, at_s) > 0
            return list(map(str, np.where(scarce, FEW_IDLE, np.where(ahead, AHEAD, ORDER))))
        windows = self._answers.windows_of(self._past.table.bin_of(job))
        if not windows:
            return [TOO_LONG] * len(at_s)
        fits = np.zeros(len(at_s), dtype=np.bool_)
        for horizon_min in windows:
            fits |= self._reservations.usable(horizon_min, at_s) >= width
        return list(map(str, np.where(scarce, FEW_IDLE, np.where(fits, ORDER, RESERVED))))

    def _ahead_count(self, job: int, at_s: Floats) -> Floats:
        table, ahead = self._past.table, ahead_of(self._past.table, job)
        return level(table.submit_s[ahead], table.start_s[ahead], np.ones(len(ahead), dtype=np.int64)).at(at_s)

    def _details(self, job: int, stretch: Stretch) -> dict[str, Any]:
        past, table, at_s = self._past, self._past.table, stretch.at_s
        pool = int(table.pool[job])
        ahead = ahead_of(table, job)
        ahead = ahead[(table.submit_s[ahead] <= at_s) & (table.start_s[ahead] > at_s)]
        # Whoever is held by a limit blocks nobody.
        ahead = np.array([one for one in ahead.tolist() if not self._limits.over(one, at_s)], dtype=np.int64)
        result: dict[str, Any] = {"at_s": at_s, "jobs_ahead": len(ahead)}
        if table.quotas is not None:
            result |= {
                "quota_gpus": int(past.quota(pool)),
                "unused_quota_gpus": max(0.0, float(past.unused(pool, at_s))),
                "idle_gpus": float(past.idle(at_s)),
            }
        if len(ahead):
            result["head"] = self._mentions.job(int(ahead[0]))
        if stretch.quota_reason == LIMIT:
            result["limit"] = self._limits.report(job, at_s)
        if stretch.quota_reason in (QUOTA, UNKNOWN, AHEAD):
            result["held_by"] = self._holders(stretch, own=pool)
        if stretch.quota_reason == LENT:
            result["held_by"] = self._holders(stretch, own=None, but=pool)
        if RESERVED in (stretch.spare_reason, stretch.quota_reason) or stretch.spare_reason == ORDER:
            windows, width = self._answers.windows_of(table.bin_of(job)), int(table.gpus[job])
            result["windows"] = [self._reservations.window(horizon_min, at_s, width) for horizon_min in windows]
        if stretch.quota_reason == ORDER:
            result["made_way"] = self._made_way(job, stretch.from_s)
        if stretch.quota_reason == CLOCK:
            result["virtual"] = self._virtual(job, at_s)
        return result

    def _holders(self, stretch: Stretch, own: int | None, but: int = -1) -> dict[str, Any]:
        """Jobs that run at the instant of a stretch: those of a pool's quota, or those on GPUs of others."""
        table, past = self._past.table, self._past
        running = past.running_at(stretch.at_s)
        if own is not None:
            chosen = running[(table.pool[running] == own) & table.dedicated[running]]
        else:
            chosen = borrowers(past, running, stretch.at_s, but)
        return self._mentions.most(chosen, past.gpu_seconds(stretch.from_s, stretch.until_s))

    def _made_way(self, job: int, at_s: float) -> dict[str, Any]:
        """Jobs before a job that went to spare GPUs at an instant: quotas had been served before that."""
        table, ahead = self._past.table, ahead_of(self._past.table, job)
        gone = ahead[(table.start_s[ahead] == at_s) & ~table.dedicated[ahead]]
        return self._mentions.first(gone.tolist())

    def _virtual(self, job: int, at_s: float) -> dict[str, Any]:
        """Whom GPUs were kept for: the instant of the job's run time at which they would not have sufficed."""
        past, table = self._past, self._past.table
        starts = np.nanmax([past.fcfs_s(pool) for pool in range(len(table.pools))], axis=0)
        until_s = at_s + float(table.duration_s[job])
        waits = table.start_s > at_s
        first = waits & ((starts < starts[job]) | ((starts == starts[job]) & (np.arange(len(table)) < job)))
        begin = np.where(first, starts, table.start_s)
        counted = first | ((table.start_s <= at_s) & (table.end_s > at_s))
        use = level(begin[counted], (begin + table.duration_s)[counted], table.gpus[counted])
        instants = np.unique(np.append(begin[counted & (begin > at_s) & (begin < until_s)], at_s))
        short = use.at(instants) + table.gpus[job] > past.total
        when_s = float(instants[np.argmax(short)]) if short.any() else at_s
        kept = np.flatnonzero(first & (begin <= when_s) & (begin + table.duration_s > when_s))
        return {
            "at_s": when_s,
            "gpus_left": float(past.total - use.at(when_s)),
            "reserved_for": self._mentions.most(kept, table.gpus.astype(np.float64)),
        }


def borrowers(past: ClusterPast, running: Any, at_s: float, but: int) -> Any:
    """Of the running jobs those that a pool's unused quota was missing for: spare ones, or of pools beyond their quota.

    `but` is the pool that misses it.
    """
    table = past.table
    spare = running[~table.dedicated[running]]
    # Spare jobs go first: they are the ones that must give way.
    if len(spare):
        return spare
    over = [p for p in range(len(table.pools)) if p != but and past.allocated(p, at_s) > past.quota(p)]
    return running[np.isin(table.pool[running], over)]


def totals(stretches: list[Stretch]) -> list[dict[str, Any]]:
    """Seconds of the wait by reason, most first."""
    lengths = defaultdict[tuple[str, str | None], list[float]](list)
    for stretch in stretches:
        lengths[stretch.quota_reason, stretch.spare_reason].append(stretch.seconds)
    return [
        {"quota_reason": quota, "spare_reason": spare, "seconds": sum(seconds), "stretches": len(seconds)}
        for (quota, spare), seconds in sorted(lengths.items(), key=lambda item: -sum(item[1]))
    ]
