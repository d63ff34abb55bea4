"""What a trace's figures say, in sentences."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.headline import Finding
from jobcast.pipelines.wording import counted, duration, number, share
from jobcast.traces.rhythm import CLOCKWORK

CLOSED_LOOP = 1.2
"""So many times as often as at random, arrivals after completions are more than chance and busy hours."""
MOST_NAMED = 3
"""So many pools that run like clockwork are named."""
LONG_TAIL = 10.0
"""The 99th percentile over the median from which on durations count as skewed; SIA, Figure 3c."""


def finding(description: Mapping[str, Any]) -> Finding:
    """The trace in a sentence, and what is remarkable about it."""
    total, pools = description["total"], description["pools"]
    lead = (
        f"{counted(total['jobs'], 'job')} of {counted(len(pools), 'pool')} in {duration(total['span_s'])}, "
        f"{number(total['gpu_hours'])} GPU-hours of work."
    )
    told = [*_idleness(total), *_waits(total), *_people(description), *_clockwork(pools)]
    return Finding(lead, [*told, *_bursts(pools), *_spread(pools), *_loop(total)])


def clockwork_pools(pools: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Pools whose arrivals run like clockwork: a program submits them."""
    return {name: its for name, its in pools.items() if (its.get("clockwork_share") or 0.0) >= CLOCKWORK}


def _clockwork(pools: Mapping[str, Any]) -> list[str]:
    found = clockwork_pools(pools)
    named = sorted(found, key=lambda name: (-found[name]["clockwork_share"], name))[:MOST_NAMED]
    told = [
        f"Pool {name} runs like clockwork: {share(found[name]['clockwork_share'])} of its submissions come about "
        f"{duration(found[name]['clockwork_gap_s'])} after the one before, as a program makes them, not people."
        for name in named
    ]
    more = len(found) - len(named)
    return [*told, *([f"So do {counted(more, 'other pool')}."] if more else [])]


def _idleness(total: Mapping[str, Any]) -> list[str]:
    mean = total.get("utilization_mean")
    return [f"{share(mean)} of the GPUs that the pools pay for are at work in the mean."] if mean is not None else []


def _waits(total: Mapping[str, Any]) -> list[str]:
    if not total.get("waits_known"):
        return []
    half, tenth = duration(total["wait_p50_s"]), duration(total["wait_p90_s"])
    return [f"Half of the jobs wait at most {half}, one in ten longer than {tenth}."]


def _people(description: Mapping[str, Any]) -> list[str]:
    users = (description.get("shares") or {}).get("user")
    work = description["total"]["gpu_hours"]
    if not users or users["count"] < 2 or not work:
        return []
    top = users["top"][0]
    part = share(top["gpu_hours"] / work)
    return [f"{counted(users['count'], 'user')}; the busiest, {top['name']}, has {part} of the work."]


def _bursts(pools: Mapping[str, Any]) -> list[str]:
    shares = [its["burst_share"] for its in pools.values() if its.get("burst_share") is not None]
    over = sum(one > 1 for one in shares)
    told = f"In {over} of {len(shares)} pools the largest burst of five minutes asks for more GPUs than the pool has."
    return [told] if shares else []


def _spread(pools: Mapping[str, Any]) -> list[str]:
    spreads = [its["duration_spread"] for its in pools.values() if its.get("duration_spread") is not None]
    over = sum(one > LONG_TAIL for one in spreads)
    told = f"In {over} of {len(spreads)} pools the 99th percentile of durations is over 10 times the median."
    return [told] if spreads else []


def _loop(total: Mapping[str, Any]) -> list[str]:
    after, random = total.get("followed_after_completion"), total.get("followed_at_random")
    if after is None or random is None:
        return []
    told = f"{share(after)} of completions are followed by an arrival in their pool within five minutes"
    if after > CLOSED_LOOP * random:
        return [f"{told}, against {share(random)} at random instants: people wait for results before they submit more."]
    return [f"{told}, against {share(random)} at random instants: hardly more than chance."]
