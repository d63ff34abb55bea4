"""The finding of a backtest in words, computed from its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobcast.pipelines.summaries import Summary
from jobcast.pipelines.wording import between, forecasts_in_words, number, percent, share

LEAD_POLICY = "sia"
LEAD_KIND = "registry"
ALIKE_SPEEDUP = 0.9
"""Random forecasts that reach this share of the speedup of others ..."""
ALIKE_SLOWED_PCT = 0.1
"""... and slow at most so many more percent of the jobs show that the window tells nothing apart."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence that says it all, and those that put it in its place."""

    lead: str
    sentences: Sequence[str]


def find(summaries: Sequence[Summary], gains: Sequence[Mapping[str, Any]], baseline: str) -> Finding:
    """What the figures say: the champion's forecasts, the bounds above and below them, sharing without forecasts."""
    known = [one for one in summaries if one.get("speedup_gmean") is not None and one.label != baseline]
    if not known:
        return Finding("Nothing was measured against a baseline.", ())
    lead = _lead(known)
    others = {one.kind: one for one in known if one.policy == lead.policy and one.kind and one is not lead}
    plain = [one for one in known if not one.kind]
    told = [
        _slowdown(lead, baseline),
        *(_beside(others[kind], lead) for kind in ("oracle", "random", "conservative") if kind in others),
        *_plain_sharing(plain, lead),
        *_paired(gains, lead),
        *_warning(lead, others),
    ]
    return Finding(_lead_sentence(lead, baseline), tuple(filter(None, told)))


def _lead(known: Sequence[Summary]) -> Summary:
    """The configuration that the page is about: sia with the champion's forecasts, or what comes nearest to it."""

    def rank(one: Summary) -> tuple[bool, bool, bool, bool, float]:
        kind = one.kind or ""
        registry = one.source == LEAD_KIND
        # Among versions of a predictor the first one, whichever did best here: choosing by the test would flatter it.
        speedup = 0.0 if registry else one.get("speedup_gmean") or 0.0
        return (not kind, one.policy != LEAD_POLICY, not registry, kind != LEAD_KIND, -speedup)

    return min(known, key=rank)


def named(one: Summary) -> str:
    """A configuration in a sentence."""
    if not one.kind:
        return one.policy
    if one.source == LEAD_KIND and " " in one.kind:
        return f"{one.policy} with the {one.forecasts} forecasts"
    return f"{one.policy} with {forecasts_in_words(one.kind)}"


def _slowed(one: Summary, whom: str = "jobs") -> str:
    pct = one.get("slowed_pct")
    if pct is None:
        return "an unknown share of jobs"
    return "no job" if pct == 0 else f"{percent(pct)} of {whom}"


def _lead_sentence(lead: Summary, baseline: str) -> str:
    gain = f"{number(lead.get('speedup_gmean'))} times as fast as {baseline} (geometric mean)"
    return f"{named(lead)} finishes jobs {gain} and slows {_slowed(lead, 'them')}."


def _slowdown(lead: Summary, baseline: str) -> str:
    if not lead.get("slowed_pct"):
        return ""
    total, worst = lead.get("slowdown_total_min"), lead.get("slowdown_max_min")
    late = f"The slowed jobs end {number(total)} min later than under {baseline} in total"
    return f"{late}, the worst one {number(worst)} min."


def _beside(one: Summary, lead: Summary) -> str:
    ours, theirs = lead.get("speedup_gmean") or 0.0, one.get("speedup_gmean") or 0.0
    sentence = f"{named(one)}: {number(theirs)} times as fast, slowing {_slowed(one)}"
    if one.kind == "oracle" and theirs and lead.kind != "oracle":
        return f"{sentence}; {named(lead)} reaches {share(ours / theirs)} of that speedup."
    total = one.get("slowdown_total_min")
    return f"{sentence}, by {number(total)} min in total." if one.get("slowed_pct") and total else f"{sentence}."


def _plain_sharing(plain: Sequence[Summary], lead: Summary) -> list[str]:
    """What sharing yields without forecasts and without knowledge of durations."""
    told = "Sharing without forecasts (mmfs) is"
    return [
        f"{told} {number(one.get('speedup_gmean'))} times as fast and slows {_slowed(one)}."
        for one in plain
        if one.policy == "mmfs" and one is not lead
    ]


def _paired(gains: Sequence[Mapping[str, Any]], lead: Summary) -> list[str]:
    return [
        f"On the same jobs, {gain['a']} is {number(gain['speedup'])} times as fast as {gain['b']}"
        f" ({100 * gain['confidence']:g} % interval {between(gain['speedup_low'], gain['speedup_high'])})."
        for gain in gains
        if gain["a"] == lead.label and gain.get("speedup") and gain.get("speedup_low")
    ]


def _warning(lead: Summary, others: Mapping[str, Summary]) -> list[str]:
    random, best = others.get("random"), others.get("oracle", lead)
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
