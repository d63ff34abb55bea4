"""How a cluster ranks and limits jobs: priority weights, accounts with their shares, QOS, partitions; after Slurm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from jobcast.domain.clock import DAY_S

ROOT = ""
"""Name of the account above all others."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an account, those below it, or a QOS may hold at once; infinite where there is no limit.

    Attributes
    ----------
    grp_gpus, grp_jobs : GPUs and running jobs in all (GrpTRES=gres/gpu, GrpJobs)
    user_gpus, user_jobs : the same of each user in it (MaxTRESPerUser, MaxJobsPerUser)
    """

    grp_gpus: float = inf
    grp_jobs: float = inf
    user_gpus: float = inf
    user_jobs: float = inf


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Account:
    """An account.

    Attributes
    ----------
    parent : the account above it
    shares : of what its parent's shares bring, against its siblings (RawShares)
    users : user -> shares, of those with another number than 1
    """

    parent: str = ROOT
    shares: float = 1.0
    users: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Qos:
    """A quality of service; its priority counts against the largest of all."""

    priority: float = 0.0
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class PriorityWeights:
    """Of multifactor priority: points that a factor of 1 brings, and what the factors go by.

    Attributes
    ----------
    age, fairshare, job_size, qos, partition : points (PriorityWeightAge, ...)
    max_age_s : of waiting, from which on the age factor is 1 (PriorityMaxAge)
    half_life_s : after which use counts half, infinite for ever (PriorityDecayHalfLife)
    period_s : the grid of instants at which factors are computed (PriorityCalcPeriod)
    favor_small : whether narrow jobs go before wide ones (PriorityFavorSmall)
    """

    age: float = 0.0
    fairshare: float = 0.0
    job_size: float = 0.0
    qos: float = 0.0
    partition: float = 0.0
    max_age_s: float = 7.0 * DAY_S
    half_life_s: float = 7.0 * DAY_S
    period_s: float = 300.0
    favor_small: bool = False

    @property
    def any(self) -> bool:
        """Whether any factor counts."""
        return any((self.age, self.fairshare, self.job_size, self.qos, self.partition))


@dataclass(frozen=True, slots=True)
class SchedulingRules:
    """What a cluster file says of priority and limits; nothing where it has no such sections.

    Attributes
    ----------
    accounts, qos : by name
    partitions : partition -> priority (PriorityJobFactor), which counts against the largest of all
    """

    weights: PriorityWeights = PriorityWeights()
    accounts: Mapping[str, Account] = field(default_factory=dict)
    qos: Mapping[str, Qos] = field(default_factory=dict)
    partitions: Mapping[str, float] = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        """Whether anything is limited."""
        return any(one != NO_LIMITS for one in self._limits)

    @property
    def users_limited(self) -> bool:
        """Whether anything is limited by user."""
        return any(min(one.user_gpus, one.user_jobs) < inf for one in self._limits)

    @property
    def _limits(self) -> list[Limits]:
        return [*(one.limits for one in self.accounts.values()), *(one.limits for one in self.qos.values())]

    def above(self, account: str) -> tuple[str, ...]:
        """An account and those above it, the root left out; one that nobody named stands below the root."""
        found: list[str] = []
        while account != ROOT:
            found.append(account)
            account = self.accounts[account].parent if account in self.accounts else ROOT
        return tuple(found)


NO_RULES = SchedulingRules()
