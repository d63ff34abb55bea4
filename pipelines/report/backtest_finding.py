"""The finding of a backtest in words, computed from its figures."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jobcast.pipelines.report.backtest_tables import Slowed, Summary, named_counts
from jobcast.pipelines.report.formatting import (
    between,
    counted,
    duration,
    forecasts_in_words,
    listed,
    number,
    percent,
    share,
    unit_for,
)
from jobcast.pipelines.report.gains import CONFIDENCE
from jobcast.pipelines.report.layout import Finding
from jobcast.schedulers.policies import ARRIVALS, CLUSTER
from jobcast.schedulers.registry import POLICIES

REGISTRY = "registry"
FOR_COMPARISON = ("random", "conservative")
"""Sources that nobody would schedule by."""
ALIKE_SPEEDUP = 0.9
"""Random forecasts that reach this share of the speedup of others ..."""
ALIKE_SLOWED_PCT = 0.1
"""... and slow at most so many more percent of the jobs show that the window tells nothing apart."""
MOST_FASTER = 2
"""Faster configurations that are told with their price."""
CAREFUL_PCT = 1.0
"""Who slows no more of the jobs is called careful."""


def lead_of(summaries: Sequence[Summary], baselines: Mapping[str, str]) -> Summary | None:
    """The configuration that a page is about: the first with registered forecasts, else the fastest that can be had.

    Among versions the first one, whichever did best here: choosing by the test would flatter it.

    Parameters
    ----------
    baselines : by law what its rows are compared with, the law that comes first goes first
    """

    def rank(one: Summary) -> tuple[bool, bool, int, float]:
        registered = one.source == REGISTRY
        # Versions are not ranked by what they did here: the sort keeps the first that was asked for.
        jct_s = 0.0 if registered else one.get("mean_jct_s") or math.inf
        return not registered, not _to_be_had(one), list(baselines).index(one.law), jct_s

    measured = [one for one in summaries if one.get("speedup_gmean") is not None and one.law in baselines]
    return min((one for one in measured if one.label != baselines[one.law]), key=rank, default=None)


def _to_be_had(one: Summary) -> bool:
    """Whether somebody could schedule by it, and would."""
    return not one.future and one.source not in FOR_COMPARISON


def find(
    summaries: Sequence[Summary],
    gains: Sequence[Mapping[str, Any]],
    baselines: Mapping[str, str],
    slowed: Slowed | None = None,
    lead: Summary | None = None,
) -> Finding:
    """What the figures say: hours saved, who pays for them, what better forecasts or another policy would change.

    Parameters
    ----------
    baselines : by law what its rows are compared with
    slowed : whom the leading configuration slows, where that is known
    lead : the configuration that it is about; None = that of `lead_of`
    """
    lead = lead or lead_of(summaries, baselines)
    if lead is None:
        return Finding("Nothing was measured against a baseline.", ())
    baseline = baselines[lead.law]
    # Rows of other laws are compared with nobody here; they have sentences of their own.
    others = [one for one in summaries if one.law == lead.law and one.label not in (baseline, lead.label)]
    rows = [
        _hours(lead, baseline),
        _slowed_jobs(lead, slowed),
        f"It {_rough(lead)}." if _rough(lead) else "",
        *_future(lead, others),
        *_faster(lead, others),
        *_best_of(lead, others),
        *_versions(lead, gains, others),
        *_warning(lead, others),
        *_other_laws(lead, summaries, baselines),
    ]
    base = next((one for one in summaries if one.label == baseline), None)
    return Finding(_lead_sentence(lead, base, baseline, gains), tuple(filter(None, rows)))


def _rough(one: Summary) -> str:
    """What a configuration does to jobs and pools beside slowing some."""
    return listed(["stops jobs that run"] * one.preempts + ["ignores quotas"] * (one.scope == CLUSTER))


def named(one: Summary) -> str:
    """A configuration in a sentence."""
    if not one.kind:
        return one.policy
    if one.kind == "oracle" and not (one.policy in POLICIES and ARRIVALS in POLICIES[one.policy].asks):
        return f"{one.policy} with exact forecasts"  # which are coarse only where windows and bins are asked for
    if one.source == REGISTRY and " " in one.kind:
        return f"{one.policy} with the {one.forecasts} forecasts"
    return f"{one.policy} with {forecasts_in_words(one.kind)}"


def _lead_sentence(lead: Summary, base: Summary | None, baseline: str, gains: Sequence[Mapping[str, Any]]) -> str:
    """Mean completion times where both are known, then the speedup with its interval."""
    gain = next((one for one in gains if (one["label"], one["against"]) == (lead.label, baseline)), {})
    interval = between(gain.get("low"), gain.get("high"))
    known = f"; {100 * CONFIDENCE:g} % interval {interval}" if gain.get("low") else ""
    ratio = lead.get("speedup_gmean") or 1.0
    speedup = f"{'slower, ' * (ratio < 1)}{number(ratio)} times as fast (geometric mean{known})"
    before, after = (one.get("mean_jct_s") if one else None for one in (base, lead))
    if before is None or after is None:
        return f"Under {named(lead)}, jobs end beside {baseline} {speedup}."
    # One unit for both means, or nobody could compare them at a glance.
    unit, unit_s = unit_for([before])
    means = f"after {number(after / unit_s)} {unit} on average instead of {number(before / unit_s)} {unit}"
    return f"Under {named(lead)}, jobs end {means} under {baseline}: {speedup}."


def _hours(one: Summary, baseline: str) -> str:
    hours, gpu_hours = one.get("saved_h_week"), one.get("saved_gpu_h_week")
    if hours is None or gpu_hours is None:
        return ""
    verb = "saves" if hours >= 0 else "costs"
    return (
        f"It {verb} {number(abs(hours))} h of waiting for results a week against {baseline} (JCT-hours, each job "
        f"counted once); times the GPUs that jobs asked for, {number(gpu_hours)} GPU-hours of waiting."
    )


def _slowed_jobs(lead: Summary, slowed: Slowed | None) -> str:
    """How many jobs pay, by how much, and whose they are."""
    pct = lead.get("slowed_pct")
    if pct is None:
        return ""
    # Told before the table of jobs is looked at, which may not be there.
    if pct == 0:
        return "It slows no job."
    # Jobs of a backtest that is read again may be lost; the share of its figures is not.
    if slowed is None or not slowed.jobs:
        return f"It slows {percent(pct)} of the jobs."
    hit = [f"{who} {named_counts(names)}" for who, names in (("pools", slowed.pools), ("users", slowed.users)) if names]
    where = f"; hit most: {'; '.join(hit)}" if hit else ""
    who = f"{number(slowed.jobs)} of {counted(slowed.of, 'job')} ({share(slowed.jobs / slowed.of)})"
    late = f"by {duration(slowed.median_s)} in the median and {duration(slowed.worst_s)} at worst"
    return f"It slows {who}, {late}{where}."


def _future(lead: Summary, others: Sequence[Summary]) -> list[str]:
    """The bound that exact forecasts set, or a warning that the lead itself cannot be had."""
    if lead.future:
        return [f"Its forecasts are read off the trace: {named(lead)} is a bound, nothing that can be had."]
    if not lead.kind:
        return _bound(lead, others)
    exact = next((one for one in others if one.policy == lead.policy and one.source == "oracle"), None)
    ours, bound = (one.get("saved_h_week") if one else None for one in (lead, exact))
    # A bound that saves nothing makes no share of it.
    if exact is None or ours is None or not bound or bound <= 0:
        return []
    told = f"Knowing the future, which nobody does, {lead.policy} would save {number(bound)} h a week"
    if ours > bound:  # by loans that knowing better would not have given
        slowed = [percent(one.get("slowed_pct")) for one in (exact, lead)]
        return [f"{told} and slow {slowed[0]} of the jobs: {named(lead)} saves more, and slows {slowed[1]}."]
    return [f"{told}: {named(lead)} gets {share(ours / bound)} of what better forecasts could give it."]


def _bound(lead: Summary, others: Sequence[Summary]) -> list[str]:
    """What a policy would reach that is told the future."""
    best = _fastest([one for one in others if one.future])
    jct_s, ours = (one.get("mean_jct_s") if one else None for one in (best, lead))
    if best is None or not jct_s or not ours or jct_s >= ours:
        return []
    return [f"{named(best)}, which nobody has, would end jobs after {duration(jct_s)} on average."]


def _best_of(lead: Summary, others: Sequence[Summary]) -> list[str]:
    """The fastest of those that do not do to jobs and pools what the lead does: that keep quotas, that slow few."""
    rows = []
    gain = [one for one in others if _to_be_had(one) and (one.get("speedup_gmean") or 0.0) > 1.0]
    # The lead among them: if it is careful itself there is nothing to tell.
    few = [one for one in (lead, *gain) if (one.get("slowed_pct") or 0.0) <= CAREFUL_PCT]
    for group, who in (
        ([one for one in gain if not _rough(one)] if _rough(lead) else [], "keep to quotas and stop no job"),
        ([] if lead in few else few, f"slow at most {CAREFUL_PCT:g} % of the jobs"),
    ):
        if best := _fastest(group):
            rows.append(
                f"Of those that {who} {named(best)} is the fastest: jobs end after "
                f"{duration(best.get('mean_jct_s') or 0.0)} on average, {percent(best.get('slowed_pct'))} are slowed."
            )
    return rows


def _other_laws(lead: Summary, summaries: Sequence[Summary], baselines: Mapping[str, str]) -> list[str]:
    """Of each other law the fastest that can be had beside whoever came first."""
    rows = []
    for law, baseline in baselines.items():
        group = [one for one in summaries if one.law == law]
        base = next((one for one in group if one.label == baseline), None)
        # Where none can be had, the fastest of those that read the future is still told.
        able = [one for one in group if one.label != baseline]
        best = _fastest([one for one in able if _to_be_had(one)]) or _fastest(able)
        if law != lead.law and base and best:
            unit, unit_s = unit_for([base.get("mean_jct_s")])
            means = [f"{number((one.get('mean_jct_s') or 0.0) / unit_s)} {unit}" for one in (best, base)]
            rough = f" It {_rough(best)}." if _rough(best) else ""
            rows.append(
                f"Where jobs progress by {law}, they end after {means[0]} on average under {named(best)} instead of "
                f"{means[1]} under {named(base)}; {percent(best.get('slowed_pct'))} are slowed.{rough}"
            )
    return rows


def _fastest(known: Sequence[Summary]) -> Summary | None:
    return min(
        (one for one in known if one.get("mean_jct_s")), key=lambda one: one.get("mean_jct_s") or 0.0, default=None
    )


def _faster(lead: Summary, others: Sequence[Summary]) -> list[str]:
    """What ends jobs sooner still, and what that costs."""
    ours = lead.get("mean_jct_s")
    able = [one for one in others if _to_be_had(one) and one.policy != lead.policy]
    known = [(one.get("mean_jct_s"), one) for one in able]
    faster = sorted(((jct, one) for jct, one in known if jct and ours and jct < ours), key=lambda value: value[0])
    return [
        f"{named(one)} ends jobs after {duration(jct)} on average{_price(one, lead)}."
        for jct, one in faster[:MOST_FASTER]
    ]


def _price(one: Summary, lead: Summary) -> str:
    """What a configuration does that the lead does not."""
    slows, ours = one.get("slowed_pct") or 0.0, lead.get("slowed_pct") or 0.0
    prices = [
        f"slows {percent(slows)} of the jobs instead of {percent(ours)}, by {number(_total_h(one))} h in all "
        f"instead of {number(_total_h(lead))} h"
        if slows > ours
        else "",
        "stops jobs that run" if one.preempts and not lead.preempts else "",
        "ignores quotas" if one.scope == CLUSTER != lead.scope else "",
    ]
    result = listed([price for price in prices if price])
    return f", but {result}" if result else f", and slows no more jobs than {named(lead)}"


def _total_h(one: Summary) -> float:
    return (one.get("slowdown_total_min") or 0.0) / 60.0


def _versions(lead: Summary, gains: Sequence[Mapping[str, Any]], others: Sequence[Summary]) -> list[str]:
    """How the lead's forecasts do beside other registered ones of its policy, on the same jobs."""
    rivals = {one.label: one for one in others if one.policy == lead.policy and one.source == REGISTRY}
    clear, open_ones = [], []
    for gain in gains:
        rival = rivals.get(gain["against"])
        # Without an interval a gain tells nothing apart.
        if gain["label"] != lead.label or rival is None or not gain["low"]:
            continue
        interval = between(gain["low"], gain["high"])
        # Holds 1: either may be the faster.
        if gain["low"] <= 1 <= gain["high"]:
            open_ones.append(f"{rival.forecasts} ({interval})")
        else:
            word = "sooner" if gain["ratio"] > 1 else "later"
            clear.append(f"Its jobs end {word} than with {rival.forecasts}: {number(gain['ratio'])} × ({interval}).")
    if open_ones:
        clear.append(f"These days do not tell it from {listed(open_ones)}.")
    return clear


def _warning(lead: Summary, others: Sequence[Summary]) -> list[str]:
    same = {one.kind: one for one in others if one.policy == lead.policy}
    # Exact forecasts are the best that a policy can have, else the lead's.
    random, best = same.get("random"), same.get("oracle", lead)
    if not lead.kind:
        return []
    if random is None:
        return ["No random forecasts were replayed beside these, so nothing shows what good forecasts are worth here."]
    speed = (random.get("speedup_gmean") or 0.0) >= ALIKE_SPEEDUP * (best.get("speedup_gmean") or 0.0)
    slowed = (random.get("slowed_pct") or 0.0) <= (best.get("slowed_pct") or 0.0) + ALIKE_SLOWED_PCT
    if speed and slowed:
        return [
            "Random forecasts do about as well as the best here: quotas hardly bind in this window, so it cannot tell "
            "good forecasts from bad ones. Choose one with more queueing."
        ]
    return []
