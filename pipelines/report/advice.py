"""What to run, in words that a manager understands: the first screen of a report, from a choice and its candidates."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jobcast.domain.clock import HOUR_S
from jobcast.pipelines.report.backtest_charts import (
    ALLOWED,
    FUTURE,
    NOW,
    RECOMMENDED,
    REFUSED,
    gain_against_risk,
    weekly_walk,
)
from jobcast.pipelines.report.backtest_tables import skipped_table
from jobcast.pipelines.report.formatting import (
    UNKNOWN,
    between,
    counted,
    duration,
    forecasts_in_words,
    number,
    percent,
    signed,
)
from jobcast.pipelines.report.layout import Drawing, Table, render
from jobcast.schedulers.registry import POLICIES

READING = (
    "Each point is a policy with its forecasts and settings, replayed on the same jobs: higher is sooner for people, "
    "further right is more harm to those who end later. Point at one to see what it is, click it for the command."
)
Choice = Mapping[str, Any]
"""As `experiments.choice.choose` tells it."""
Where = Mapping[str, str]
"""By policy the options of `simulate` that name trace, cluster and world."""
NOWHERE: Where = MappingProxyType({})
IN_ONE_GO = "It replays in one go what stands above in {windows} windows, each begun anew, so its figures differ."


@dataclass(frozen=True, slots=True)
class Advice:
    """The first screen.

    Attributes
    ----------
    lead : what to do, and what it brings, in one sentence
    tiles : (name, value) of the headline figures
    sentences : the reason, who pays, what a bolder choice would bring
    command : that carries the choice out in a replay; empty where there is none
    aside : how that replay differs from those above; empty where it does not
    drawing : gain against risk
    """

    lead: str
    tiles: Sequence[tuple[str, str]]
    sentences: Sequence[str]
    command: str
    aside: str
    drawing: Drawing


def advice(choice: Choice, versions: Mapping[str, int] | None = None, where: Where = NOWHERE) -> Advice:
    """The first screen of a choice.

    Parameters
    ----------
    choice : of `experiments.choice.choose`
    versions : of the chosen row's predictors, where registered ones answered
    where : by policy the options that name trace, cluster and world, for commands
    """
    known = [one for one in choice["candidates"] if "saved_h_week" in one]
    by_label = {one["label"]: one for one in known}
    taken, now = by_label[choice["choice"]["label"]], by_label[choice["now"]]
    sentences = _reason(choice, taken, known), _payers(choice, taken), _bolder(choice, taken, known), in_money(choice)
    return Advice(
        _lead(choice, taken),
        _tiles(choice, taken, versions or {}),
        [one for one in sentences if one],
        _command(taken, where),
        IN_ONE_GO.format(windows=len(choice["windows"])) if len(choice["windows"]) > 1 else "",
        Drawing(gain_against_risk([_point(one, taken, now, choice, where) for one in known]), READING),
    )


def in_words(one: Mapping[str, Any]) -> str:
    """A row in a sentence.

    >>> in_words({"policy": "sia", "forecasts": "registry", "settings": {"slack": "2"}})
    "sia with the champion's forecasts (slack=2)"
    >>> in_words({"policy": "mmfs", "forecasts": None, "settings": {}})
    'mmfs'
    """
    text: str = one["policy"] + (f" with {forecasts_in_words(one['forecasts'])}" if one["forecasts"] else "")
    settings = ", ".join(f"{name}={value}" for name, value in one["settings"].items())
    return text + (f" ({settings})" if settings else "")


def in_money(choice: Choice) -> str:
    """What energy and lateness cost a week, which no choice goes by; empty where neither is priced."""
    names = choice["choice"]["label"], choice["now"]
    priced = [one for one in choice["candidates"] if "eur_week" in one and (one["can_be_had"] or one["label"] in names)]
    taken = next((one for one in priced if one["label"] == names[0]), None)
    if taken is None:
        return ""
    least = min(priced, key=lambda one: (one["eur_week"], one is not taken))
    text = (
        f"In money: the choice goes by waiting alone; energy and lateness cost {number(taken['eur_week'])} EUR a week"
    )
    if least is taken:
        return f"{text}, no more than under any other." if len(priced) > 1 else f"{text}."
    slowed = percent(least["slowed_pct"])
    return f"{text}, under {in_words(least)} {number(least['eur_week'])} EUR, with {slowed} of the jobs ending later."


def regret_in_words(choice: Choice) -> str:
    """What the best in hindsight saves beyond the walk, which may save more: it changes from window to window.

    >>> [regret_in_words({"regret_h_week": hours}) for hours in (2.0, 0.0, -144.0)]
    ['2.00 h/week more', 'no more', '144 h/week less than that']
    """
    hours = choice["regret_h_week"]
    if hours < 0.0:
        return f"{number(-hours)} h/week less than that"
    return f"{number(hours)} h/week more" if hours else "no more"


def _lead(choice: Choice, taken: Mapping[str, Any]) -> str:
    now, limit = choice["now"], f"{choice['slowed_pct']:g} %"
    if not choice["switch"]:
        return (
            f"Stay with {now}: nothing that was replayed is faster beyond doubt, slows at most {limit} of the jobs and "
            "saves hours in all."
        )
    harm = f"{percent(taken['slowed_pct'])} of the jobs end later" if taken["slowed_pct"] else "no job ends later"
    saved = number(taken["saved_h_week"])
    return f"Run {in_words(taken)} instead of {now}: people wait {saved} hours a week less for results, and {harm}."


def _tiles(choice: Choice, taken: Mapping[str, Any], versions: Mapping[str, int]) -> list[tuple[str, str]]:
    people = f"{number(taken['people_slowed'])} of {number(taken['people'])}" if taken["people"] else UNKNOWN
    tiles = [
        ("policy", taken["policy"]),
        ("forecasts", forecasts_in_words(taken["forecasts"]) if taken["forecasts"] else UNKNOWN),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items()) or UNKNOWN),
        ("setting", ", ".join(f"{name}={value}" for name, value in taken["settings"].items()) or "default"),
    ]
    if choice["switch"]:
        tiles += [
            ("hours saved a week", number(taken["saved_h_week"])),
            ("times as fast", number(taken["speedup"])),
            ("jobs slowed", percent(taken["slowed_pct"])),
            ("people slowed on the whole", people),
        ]
    if choice["switch"] and taken["slowed_pct"]:
        tiles += [
            ("a slowed job ends later by, in the middle", duration(HOUR_S * taken["slowed_median_h"])),
            ("and at worst by", duration(HOUR_S * taken["slowed_worst_h"])),
        ]
    return [(name, value) for name, value in tiles if value != UNKNOWN]


def _reason(choice: Choice, taken: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> str:
    limit, now = f"{choice['slowed_pct']:g} %", choice["now"]
    of = f"Of {counted(len(known), 'way')} to schedule, replayed on the same {counted(taken['jobs'], 'job')},"
    others = [one for one in known if _kind(one, choice) == ALLOWED and one is not taken]
    if choice["switch"]:
        able = f"{number(1 + len(others))} can be had and slow at most {limit} of them, its gain being the surest"
        alone = f"only this one can be had, slows at most {limit} of them and is faster beyond doubt"
        low = taken["low"]
        sure = "" if low is None else f": above {number(low, 4)} times as fast in 97.5 of 100 draws of days"
        return f"Why this one: {of} {able if others else alone}{sure}."
    best = max(others, key=lambda one: (one["saved_h_week"] >= 0.0, one["speedup"] or 0.0), default=None)
    if best is None:
        return f"Why: {of} none but {now} can be had and slows at most {limit} of them."
    if best["saved_h_week"] < 0.0:
        longer = number(-best["saved_h_week"])
        return f"Why: {of} {in_words(best)} slows few as well, but people would wait {longer} hours a week more in all."
    interval = f" (95 % interval {between(best['low'], best['high'])})" if best["low"] else ""
    chance = "an interval that reaches 1 may be chance" if best["low"] else "too few days for an interval"
    return (
        f"Why: {of} the best that slows few is {in_words(best)}, {number(best['speedup'])} times as fast"
        f"{interval}: {chance}."
    )


def _payers(choice: Choice, taken: Mapping[str, Any]) -> str:
    if not choice["switch"] or not taken["slowed_pct"]:
        return ""
    text = f"Who pays: the slowed jobs end {number(taken['slowdown_h_week'])} hours a week later in all"
    if not taken["people"]:
        return f"{text}; the trace does not tell whose they are."
    if not taken["people_slowed"]:
        return f"{text}; nobody's jobs end later on the whole ({counted(taken['people'], 'user')})."
    who = f"{counted(taken['people_slowed'], 'user')} of {number(taken['people'])}"
    return f"{text}; on the whole later: {who}, at worst {number(taken['people_slowed_worst_h'])} h."


def _bolder(choice: Choice, taken: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> str:
    """What the boldest that could be run would bring beyond the choice, and at which price."""
    able = [one for one in known if one is not taken and _kind(one, choice) == REFUSED]
    best = max(able, key=lambda one: one["saved_h_week"], default=None)
    if best is None or best["saved_h_week"] <= taken["saved_h_week"]:
        return ""
    more = number(best["saved_h_week"] - taken["saved_h_week"])
    return (
        f"Bolder: {in_words(best)} would save {more} hours a week more, but slows {percent(best['slowed_pct'])} of the "
        f"jobs, by {number(best['slowdown_h_week'])} hours a week."
    )


def _kind(one: Mapping[str, Any], choice: Choice) -> str:
    if one["label"] == choice["now"]:
        return NOW
    if not one["can_be_had"]:
        return FUTURE
    return REFUSED if one["slowed_pct"] > choice["slowed_pct"] else ALLOWED


def _point(
    one: Mapping[str, Any], taken: Mapping[str, Any], now: Mapping[str, Any], choice: Choice, where: Where
) -> dict[str, Any]:
    # Where nothing else is to be run, what is in use is what is recommended.
    kind = RECOMMENDED if one is taken and one is not now else _kind(one, choice)
    keys = ("label", "policy", "saved_h_week", "slowdown_h_week", "slowed_pct", "speedup")
    return {**{key: one[key] for key in keys}, "kind": kind, "command": _command(one, where)}


def _command(one: Mapping[str, Any], where: Where) -> str:
    """A replay of one row; none for forecasts that are no source of the command line."""
    forecasts = one["forecasts"]
    if forecasts and " " in forecasts:
        return ""
    place, words = where.get(one["policy"], "--trace FILE"), ["--policy", one["policy"]]
    words += ["--forecasts", forecasts] if forecasts else []
    words += [word for name, value in one["settings"].items() for word in ("--set", f"{name}={value}")]
    return f"jobcast simulate {place} {shlex.join(words)}"


def candidates_table(choice: Choice) -> Table:
    """Every row with what it brings, whom it slows, and why it was not chosen; the most hours saved first."""
    head = (
        "policy, forecasts, settings", "verdict", "hours saved (h/week)", "speedup (×)", "95 % interval (×)",
        "jobs slowed", "slowed by (h/week)", "at worst (h)", "people slowed",
    )  # fmt: skip
    rows = []
    for one in sorted(choice["candidates"], key=lambda one: -(one.get("saved_h_week") or 0.0)):
        held = {"recommended": choice["choice"]["label"], "now": choice["now"]}
        marks = [mark for mark, label in held.items() if label == one["label"]]
        rows.append((
            one["label"],
            ", ".join(marks) or one["why"],
            signed(one.get("saved_h_week")),
            number(one.get("speedup")),
            between(one.get("low"), one.get("high")),
            percent(one.get("slowed_pct")),
            number(one.get("slowdown_h_week")),
            number(one.get("slowed_worst_h")),
            number(one.get("people_slowed")),
        ))  # fmt: skip
    note = (
        f"Each job is compared with itself under {choice['now']}. The speedup is a geometric mean over jobs, its "
        "interval draws whole days. People slowed: users all of whose jobs together end later."
    )
    kept = [place for place in range(len(head)) if place == 0 or {row[place] for row in rows} - {UNKNOWN, ""}]
    shown = [[row[place] for place in kept] for row in rows]
    return Table("All that was replayed", [head[place] for place in kept], shown, words=2, note=note)


def choice_page(choice: Choice, facts: Sequence[tuple[str, str]], where: Where, command: str) -> str:
    """A self-contained page of `jobcast choose`.

    Parameters
    ----------
    facts : what was replayed, by name
    where : by policy the options that name trace, cluster and world, for commands
    command : that makes the page again
    """
    told = advice(choice, choice.get("versions"), where)
    walk = Table(
        "Window by window",
        ("window", "from", "would have run", "hours saved (h/week)", "jobs slowed", "best in hindsight (h/week)"),
        [
            (
                number(one["window"] + 1), str(one.get("from", UNKNOWN)), one["used"], signed(one["saved_h_week"]),
                percent(one["slowed_pct"]), signed(one["best_saved_h_week"]),
            )
            for one in choice["windows"]
        ],
        words=3,
        note=f"In each window what was the surest before it. In hindsight: {choice['best_in_hindsight']}, throughout.",
    )  # fmt: skip
    saved = number(choice["walk_saved_h_week"])
    policies = dict.fromkeys(one["policy"] for one in choice["candidates"] if "policy" in one)
    return render(
        "choice.html.j2",
        title="Which scheduler to run",
        advice=told,
        table=candidates_table(choice),
        walk=walk,
        walk_figure=Drawing(weekly_walk(choice["windows"]), "The walk beside the best in hindsight, window by window."),
        regret=f"Following the rule, window after window, would have saved {saved} h/week; "
        f"{choice['best_in_hindsight']} throughout, {regret_in_words(choice)}.",
        skipped_table=skipped_table(choice["skipped"]),
        remedy=choice["remedy"],
        glossary=[(name, summary_of(name)) for name in policies],
        facts=facts,
        command=command,
    )


def summary_of(policy: str) -> str:
    """Of a policy's package, which need not be installed where a page is written again, only that it is one."""
    return (policy in POLICIES and POLICIES[policy].summary) or "a policy of another package"
