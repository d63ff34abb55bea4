"""What accounts, users and QOS hold and have used by now: limits, and the priorities that follow from use."""

from collections import defaultdict
from collections.abc import Iterator
from math import floor, inf
from typing import NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.jobs import Job
from jobcast.domain.policy import View
from jobcast.domain.scheduling_rules import ROOT, SchedulingRules
from jobcast.schedulers.priority import Association, age_factor, decayed_use, fair_tree, points, relative, size_factor


class Whose(NamedTuple):
    """Whose a job is, as limits and shares tell jobs apart."""

    account: str
    qos: str
    user: str


class Held(NamedTuple):
    """A job that holds GPUs, since when, and until when: infinite while it does."""

    job: Job
    from_s: float
    until_s: float = inf


class Bound(NamedTuple):
    """A limit that a job counts against: whose it is (an account's or QOS's, of a user in it), GPUs, running jobs."""

    of: tuple[str, ...]
    gpus: float
    jobs: float


def account_of(job: Job) -> str:
    """A job's account; where the trace tells none, its pool stands for one."""
    return ("" if job.requirements is None else job.requirements.account) or job.pool


def qos_of(job: Job) -> str:
    """A job's QOS, empty where the trace tells none."""
    return "" if job.requirements is None else job.requirements.qos


def partitions_of(job: Job) -> tuple[str, ...]:
    """The partitions that a job may run in; none where the trace tells none."""
    asked = "" if job.requirements is None else job.requirements.partition
    return tuple(name.strip() for name in asked.split(",") if name.strip())


class Accounting:
    """Running jobs by account, user and QOS, and the use of those that ran; kept up at each decision.

    Parameters
    ----------
    rules : weights, accounts, QOS and limits
    ranked : whether jobs have priorities, so that use counts

    Attributes
    ----------
    limited : whether the rules limit anything
    """

    def __init__(self, rules: SchedulingRules, ranked: bool) -> None:
        self.rules, self.ranked, self.limited = rules, ranked, rules.limited
        self._held: dict[int, Held] = {}
        self._ended: list[Held] = []  # since the use was added up last
        self._gpus: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._jobs: defaultdict[tuple[str, ...], int] = defaultdict(int)
        self._numbers: dict[Whose, int] = {}
        self._bounds: list[tuple[Bound, ...]] = []  # by number
        self._use: defaultdict[tuple[str, str], float] = defaultdict(float)  # by account and user
        self._at_s = -inf
        self._factors: Floats = np.zeros(0)

    @property
    def needed(self) -> bool:
        """Whether anybody asks what jobs hold and have used; else nothing is kept."""
        return self.limited or self.ranked

    def catch_up(self, view: View) -> None:
        """Note who has started and ended since the last decision."""
        # Sorted: sums of use must not hang on the order of a set.
        for seq in sorted(self._held.keys() - view.running.keys()):
            job, from_s, _ = held = self._held.pop(seq)
            self._count(job, -1)
            if self.ranked:
                self._ended.append(held._replace(until_s=from_s + view.service(job).held_s))
        for seq in sorted(view.running.keys() - self._held.keys()):
            self.start(view.running[seq].job, view.running[seq].start_s)

    def start(self, job: Job, now_s: float) -> None:
        """A job starts."""
        self._held[job.seq] = Held(job, now_s)
        self._count(job, 1)

    def _count(self, job: Job, sign: int) -> None:
        for bound in self.bounds(job):
            self._gpus[bound.of] += sign * job.gpus
            self._jobs[bound.of] += sign

    def rooms(self, whose: Ints) -> Floats:
        """GPUs that the limits of jobs leave to each of them, by whose it is, (n,); below 0 where no more may run."""
        if not self.limited:
            return np.full(len(whose), inf)
        present, places = np.unique(whose, return_inverse=True)
        return np.array([self._room(self._bounds[one]) for one in present.tolist()], dtype=np.float64)[places]

    def _room(self, bounds: tuple[Bound, ...]) -> float:
        gpus, jobs = self._gpus, self._jobs
        left = [bound.gpus - gpus[bound.of] if jobs[bound.of] + 1 <= bound.jobs else -1.0 for bound in bounds]
        return min(left, default=inf)

    def bounds(self, job: Job) -> tuple[Bound, ...]:
        """The limits that a job counts against."""
        return self._bounds[self.number(job)]

    def number(self, job: Job) -> int:
        """The number of a job's account, QOS and user, from 0 in order of appearance."""
        whose = Whose(account_of(job), qos_of(job), job.user)
        if whose not in self._numbers:
            self._numbers[whose] = len(self._numbers)
            self._bounds.append(tuple(self._found(whose)))
        return self._numbers[whose]

    def _found(self, whose: Whose) -> Iterator[Bound]:
        """The limits that jobs count against: of their account, those above it, and their QOS."""
        accounts, qos = self.rules.accounts, self.rules.qos
        above = [name for name in self.rules.above(whose.account) if name in accounts]
        limits = {("account", name): accounts[name].limits for name in above}
        if whose.qos in qos:
            limits["qos", whose.qos] = qos[whose.qos].limits
        for of, one in limits.items():
            yield Bound(of, one.grp_gpus, one.grp_jobs)
            yield Bound((*of, whose.user), one.user_gpus, one.user_jobs)

    def own_points(self, job: Job, total_gpus: float) -> float:
        """Points of the factors that do not change while a job waits: size, QOS, partition."""
        rules = self.rules
        priorities = {name: one.priority for name, one in rules.qos.items()}
        partition = max(relative(name, rules.partitions) for name in partitions_of(job) or ("",))
        return (
            rules.weights.job_size * size_factor(job.gpus, total_gpus, rules.weights.favor_small)
            + rules.weights.qos * relative(qos_of(job), priorities)
            + rules.weights.partition * partition
        )

    def priorities(self, submit_s: Floats, own: Floats, whose: Ints, now_s: float) -> Floats:
        """Priorities as of the last point of the grid, (n,): of jobs' submissions, own points, and whose they are.

        A job that was submitted after that point has waited for nothing; a user that is new since has used nothing,
        and counts among the others.
        """
        weights = self.rules.weights
        # An event that lies on the grid but for noise of its last bits is at its point.
        at_s = max(floor((now_s + tolerance.INSTANT_S) / weights.period_s) * weights.period_s, self._at_s)
        if at_s > self._at_s or len(self._factors) < len(self._numbers):
            self._add_up(at_s)
            factors = fair_tree(self._tree(ROOT))
            self._factors = np.array([factors[one.account, one.user] for one in self._numbers])
        age = age_factor(at_s - submit_s, weights.max_age_s)
        return points(weights.age * age + weights.fairshare * self._factors[whose] + own)

    def _add_up(self, at_s: float) -> None:
        """Bring the use of all associations to an instant that has passed."""
        before_s, half_life_s = self._at_s, self.rules.weights.half_life_s
        kept = 0.5 ** ((at_s - before_s) / half_life_s)  # of nothing, the first time
        for name in self._use:
            self._use[name] *= kept
        for job, from_s, until_s in (*self._ended, *self._held.values()):
            begin_s = max(from_s, before_s)
            end_s = min(until_s, at_s)
            # What was held later does not count yet; seen from before, it would grow beyond all numbers.
            if end_s > begin_s:
                self._use[account_of(job), job.user] += decayed_use(job.gpus, begin_s, end_s, at_s, half_life_s)
        self._ended = [held for held in self._ended if held.until_s > at_s]
        self._at_s = at_s

    def _tree(self, account: str) -> Association:
        """An account, the users in it that are known, and the accounts below it."""
        accounts, result = self.rules.accounts, self.rules.accounts.get(account)
        users = {} if result is None else dict(result.users)
        users |= {one.user: users.get(one.user, 1.0) for one in self._numbers if one.account == account}
        # Accounts that nobody named stand below the root, with one share.
        names = dict.fromkeys([*accounts, *(one.account for one in self._numbers)])
        below = [name for name in names if (accounts[name].parent if name in accounts else ROOT) == account]
        children = (
            *(Association((account, user), shares, self._use[account, user]) for user, shares in users.items()),
            *(self._tree(name) for name in below),
        )
        shares = 1.0 if result is None else result.shares
        return Association((account, ""), shares, sum(one.use for one in children), children)
