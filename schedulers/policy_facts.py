"""What tables say of a policy beside its name."""

from dataclasses import dataclass

from jobcast.schedulers.goodput_policies import GOODPUT_POLICIES
from jobcast.schedulers.round_policies import ROUND_POLICIES

POOL, CLUSTER = "pool", "cluster"
"""Scopes: one quota each, or the cluster as one, quotas ignored."""


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """Of one policy.

    Attributes
    ----------
    scope : pool or cluster
    preempts : whether it stops jobs that run, or takes GPUs from them
    summary : its rule in a line, empty where a package does not say
    """

    scope: str = POOL
    preempts: bool = False
    summary: str = ""


FACTS = {
    "fcfs": PolicyFacts(summary="each pool in order of submission, nobody overtakes"),
    "ssf": PolicyFacts(summary="each pool, the least GPUs x run time first"),
    "sjf": PolicyFacts(summary="each pool, the shortest run time first"),
    "gssf": PolicyFacts(CLUSTER, summary="the least GPUs x run time of all pools first"),
    "mmfs": PolicyFacts(summary="the pool with the smallest allocation / quota first, beyond its quota too"),
    "themis_np": PolicyFacts(CLUSTER, summary="finish-time fairness without preemption: the worst off first"),
    "hived": PolicyFacts(summary="quotas as cells; opportunistic jobs run on what is idle"),
    "sia": PolicyFacts(summary="quotas first; what no pool will need is lent to jobs that end in time"),
    "sia_vc": PolicyFacts(summary="SIA by virtual clocks: nobody ends later than in its own pool"),
    "sia_risk": PolicyFacts(summary="SIA that prices what lending may cost the lender"),
    "sia_preempt": PolicyFacts(preempts=True, summary="SIA that stops spare jobs when their GPUs are wanted back"),
    "milp": PolicyFacts(summary="the best schedule of the whole trace, by integer programming"),
}


def told_of(policy: str) -> PolicyFacts:
    """What is known of a policy; of an installed one little."""
    if policy in ROUND_POLICIES or policy in GOODPUT_POLICIES:
        return PolicyFacts(CLUSTER, preempts=True, summary="by rounds, over all GPUs as one pool")
    return FACTS.get(policy, PolicyFacts())
