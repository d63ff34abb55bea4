"""Backfilling as docs/backfill.md has it, written as plainly as can be: lists, loops, whole seconds, nothing kept.

Whatever a rule needs is worked out anew from all that has happened: use from every run, free GPUs from every running
job and reservation, shares by the published recursion of Fair Tree.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from math import floor, inf, log

from jobcast.domain.rounding import rounded
from jobcast.domain.scheduling_rules import Limits, SchedulingRules

YEAR_S = 365 * 24 * 3600
KILL_WAIT_S = 30


@dataclass
class Site:
    """What has happened, and the rule's settings."""

    jobs: list
    durations: dict
    quotas: dict
    rules: SchedulingRules
    rule: str
    multifactor: bool = False
    depth: int = 0
    renewed: bool = False
    now: int = 0
    waiting: list = field(default_factory=list)
    running: dict = field(default_factory=dict)  # seq -> start
    runs: list = field(default_factory=list)  # (job, start, end or None)
    start_s: dict = field(default_factory=dict)
    reserved: dict = field(default_factory=dict)  # seq -> start of its reservation

    def limit(self, job):
        asked = job.requirements
        return YEAR_S if asked is None else min(asked.time_limit_s, YEAR_S)

    def free(self, pool):
        return self.quotas[pool] - sum(self.jobs[seq].gpus for seq in self.running if self.jobs[seq].pool == pool)

    def expected_ends(self, pool):
        """(end, GPUs) of running jobs."""
        found = []
        for seq, start in self.running.items():
            if self.jobs[seq].pool == pool:
                end = start + self.limit(self.jobs[seq])
                found.append((end if end > self.now else self.now + KILL_WAIT_S, self.jobs[seq].gpus))
        return found

    def start(self, job):
        assert job.gpus <= self.free(job.pool)
        self.waiting.remove(job)
        self.running[job.seq] = self.start_s[job.seq] = self.now
        self.reserved.pop(job.seq, None)

    def order(self, pool):
        queue = sorted((job for job in self.waiting if job.pool == pool), key=lambda job: job.seq)
        return sorted(queue, key=lambda job: -self.priority(job)) if self.multifactor else queue

    def account(self, job):
        return (job.requirements.account if job.requirements else "") or job.pool

    def qos(self, job):
        return job.requirements.qos if job.requirements else ""

    def above(self, account):
        return () if account == "" else (account, *self.above(self.parent(account)))

    def parent(self, account):
        return self.rules.accounts[account].parent if account in self.rules.accounts else ""

    def held(self, job):
        """Whether a limit holds a job, from all that runs."""
        there = [self.jobs[seq] for seq in self.running]
        for account in self.above(self.account(job)):
            if account in self.rules.accounts:
                mine = [one for one in there if account in self.above(self.account(one))]
                if self.exceeds(self.rules.accounts[account].limits, mine, job):
                    return True
        if self.qos(job) in self.rules.qos:
            mine = [one for one in there if self.qos(one) == self.qos(job)]
            return self.exceeds(self.rules.qos[self.qos(job)].limits, mine, job)
        return False

    def exceeds(self, limits: Limits, there, job):
        own = [one for one in there if one.user == job.user]
        return (
            sum(one.gpus for one in there) + job.gpus > limits.grp_gpus
            or len(there) + 1 > limits.grp_jobs
            or sum(one.gpus for one in own) + job.gpus > limits.user_gpus
            or len(own) + 1 > limits.user_jobs
        )

    def priority(self, job):
        weights = self.rules.weights
        at = floor(self.now / weights.period_s) * weights.period_s
        total = sum(self.quotas.values())
        size = 1 - job.gpus / total if weights.favor_small else job.gpus / total
        most_qos = max([one.priority for one in self.rules.qos.values()], default=0)
        most_partition = max(self.rules.partitions.values(), default=0)
        qos = self.rules.qos[self.qos(job)].priority / most_qos if self.qos(job) in self.rules.qos and most_qos else 0
        partition = job.requirements.partition if job.requirements else ""
        of_partition = self.rules.partitions.get(partition, 0) / most_partition if most_partition else 0
        told = (
            weights.age * min(1, max(0, at - job.submit_s) / weights.max_age_s)
            + weights.fairshare * self.fair_share(at)[self.account(job), job.user]
            + weights.job_size * size
            + weights.qos * qos
            + weights.partition * of_partition
        )
        return floor(rounded(told))

    def use(self, at):
        """Decayed use by (account, user), of all runs there ever were."""
        found, half = defaultdict(float), self.rules.weights.half_life_s
        for job, start, end in [*self.runs, *((self.jobs[seq], start, inf) for seq, start in self.running.items())]:
            until = min(end, at)
            if until > start:
                gpu_s = (
                    until - start
                    if half == inf
                    else half / log(2) * (2.0 ** (-(at - until) / half) - 2.0 ** (-(at - start) / half))
                )
                found[self.account(job), job.user] += job.gpus * gpu_s
        return found

    def fair_share(self, at):
        """Slurm's fair_tree.c: ranks by depth-first visits of sorted siblings; whoever came by now is known."""
        use, users = self.use(at), defaultdict(dict)
        for name, one in self.rules.accounts.items():
            users[name] = dict(one.users)
        for job in self.jobs:
            if job.submit_s <= self.now:
                users[self.account(job)].setdefault(job.user, 1)
        accounts = list(dict.fromkeys([*self.rules.accounts, *users]))

        def children(account):
            return [("user", (account, user)) for user in users.get(account, {})] + [
                ("account", name) for name in accounts if self.parent(name) == account
            ]

        def used(kind, name):
            return use[name] if kind == "user" else sum(used(*child) for child in children(name))

        def shares(kind, name):
            if kind == "user":
                return users[name[0]][name[1]]
            return self.rules.accounts[name].shares if name in self.rules.accounts else 1

        def level(kind, name):
            siblings = children(name[0] if kind == "user" else self.parent(name))
            if not shares(kind, name):
                return 0
            if not used(kind, name):
                return inf
            norm = shares(kind, name) / sum(shares(*one) for one in siblings)
            return rounded(norm / (used(kind, name) / sum(used(*one) for one in siblings)))

        count = sum(len(each) for each in users.values())
        factors, rank, without_ties = {}, [count], [count]

        def visit(siblings, parent_tied):
            siblings = sorted(siblings, key=lambda one: (-level(*one), one[0] == "account"))
            before, at_place = None, 0
            while at_place < len(siblings):
                kind, name = siblings[at_place]
                mine = level(kind, name)
                tied = parent_tied if at_place == 0 else before == mine
                if kind == "user":
                    if not tied:
                        rank[0] = without_ties[0]
                    factors[name] = rank[0] / count
                    without_ties[0] -= 1
                else:
                    merged = children(name)
                    while at_place + 1 < len(siblings) and level(*siblings[at_place + 1]) == mine:
                        at_place += 1
                        merged += children(siblings[at_place][1])
                    visit(merged, tied)
                before = mine
                at_place += 1

        visit(children(""), False)
        return factors


def easy(site, pool, _):
    head, extra, shadow, behind = None, 0, inf, 0
    for job in site.order(pool):
        if head is not None:
            behind += 1
            if site.depth and behind > site.depth:
                break
        if site.held(job):
            continue
        if head is None and job.gpus <= site.free(pool):
            site.start(job)
        elif head is None:
            head, ends = job, site.expected_ends(pool)
            for end, _gpus in sorted(ends):
                there = site.free(pool) + sum(gpus for other, gpus in ends if other <= end)
                if there >= job.gpus:
                    shadow, extra = end, there - job.gpus
                    break
        elif job.gpus <= site.free(pool) and (site.now + site.limit(job) <= shadow or job.gpus <= extra):
            if site.now + site.limit(job) > shadow:
                extra -= job.gpus
            site.start(job)


def conservative(site, pool, ended):
    order, now = site.order(pool), site.now
    first = order[: site.depth or None]
    for job in order:
        if job not in first or site.held(job):
            site.reserved.pop(job.seq, None)
    late = any(site.reserved.get(job.seq, inf) < now for job in order) or any(
        start + site.limit(site.jobs[seq]) <= now for seq, start in site.running.items() if site.jobs[seq].pool == pool
    )
    if late or site.renewed:
        for job in order:
            site.reserved.pop(job.seq, None)
    base, begun = (site.free(pool), site.expected_ends(pool)), []
    for job in first:
        if site.held(job):
            site.reserved.pop(job.seq, None)
            continue
        if job.seq not in site.reserved or ended:
            site.reserved.pop(job.seq, None)
            others = [(site.reserved[one.seq], site.limit(one), one.gpus) for one in order if one.seq in site.reserved]
            site.reserved[job.seq] = earliest(now, *base, others + begun, job.gpus, site.limit(job))
        if site.reserved[job.seq] == now and job.gpus <= site.free(pool):
            begun.append((now, site.limit(job), job.gpus))
            site.start(job)


def earliest(now, free, ends, others, gpus, run):
    """First instant from which on so many GPUs are free for so long."""

    def there(at):
        back = sum(given for end, given in ends if end <= at)
        return free + back - sum(width for begin, length, width in others if begin <= at < begin + length)

    edges = {now, *(end for end, _ in ends), *(begin for begin, _, _ in others)}
    edges |= {begin + length for begin, length, _ in others}
    for start in sorted(edges):
        if all(there(at) >= gpus for at in edges if start <= at < start + run):
            return start
    raise AssertionError("a job is wider than its pool")


RULES = {"easy": easy, "conservative_backfill": conservative}


def reference(workload, rule, **settings):
    """Start times by seq, in whole seconds."""
    durations = {job.seq: int(one.duration_s) for job, one in zip(workload.jobs, workload.outcomes, strict=True)}
    site = Site(list(workload.jobs), durations, workload.quotas(), workload.rules, rule, **settings)
    to_come, across = list(workload.jobs), workload.rules.limited
    while to_come or site.running:
        ends = {seq: start + durations[seq] for seq, start in site.running.items()}
        site.now = int(min([job.submit_s for job in to_come[:1]] + list(ends.values())))
        ended = {site.jobs[seq].pool for seq, end in ends.items() if end == site.now}
        for seq in [seq for seq, end in ends.items() if end == site.now]:
            site.runs.append((site.jobs[seq], site.running.pop(seq), site.now))
        arrived = [job for job in to_come if job.submit_s == site.now]
        site.waiting += arrived
        to_come = to_come[len(arrived) :]
        looked_at = site.quotas if across else ended | {job.pool for job in arrived}
        for pool in sorted(looked_at):
            RULES[rule](site, pool, bool(ended) if across else pool in ended)
    return [site.start_s[job.seq] for job in workload.jobs]
