"""Tables of a backtest: configurations over all windows and seeds, gains, who is slowed, pools, versions."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import groupby
from typing import Any

import numpy as np

from jobcast.domain.law import RUNTIME
from jobcast.pipelines.report.formatting import (
    UNKNOWN,
    Shown,
    between,
    iso,
    listed,
    moment,
    number,
    parse_time,
    percent,
    share,
    shown_zone,
    signed,
    unit_for,
)
from jobcast.pipelines.report.gains import CONFIDENCE
from jobcast.pipelines.report.layout import Table
from jobcast.schedulers.policies import CLUSTER, POOL
from jobcast.simulator.metrics import is_slowed, times_as_fast

PLAIN_POLICY = ""
SAVED = ("saved_h_week", "saved_gpu_h_week")
"""What a row tells beside the figures of its run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One configuration over all its windows and seeds.

    Attributes
    ----------
    label, policy : what it is called in tables, and its policy
    kind : its forecasts as they were asked for, None for a policy that uses none
    runs : number of simulations
    figures : geometric means of geometric means, the worst of the worst, means of the rest; None = unknown
    future : whether its forecasts read the trace's future, which nobody has
    law : how jobs progressed
    scope : pool, or cluster for a policy that ignores quotas
    preempts : whether the policy stops jobs that run
    versions : that answered, by predictor
    """

    label: str
    policy: str
    kind: str | None
    runs: int
    figures: Mapping[str, float | None]
    future: bool = False
    law: str = RUNTIME
    scope: str = POOL
    preempts: bool = False
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Where its forecasts come from, without alias, versions or algorithm: the first word of `kind`.

        >>> Summary("sia registry (lightgbm)", "sia", "registry (lightgbm)", 1, {}).source
        'registry'
        """
        return (self.kind or "").partition(":")[0].partition(" ")[0]

    @property
    def forecasts(self) -> str:
        """What tells it from other configurations of its policy."""
        result = self.label.removeprefix(self.policy).lstrip(", ") if self.label.startswith(self.policy) else self.label
        return result or self.kind or PLAIN_POLICY

    def get(self, figure: str) -> float | None:
        """A figure, None where it is unknown."""
        return self.figures.get(figure)


def summaries(rows: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """One summary a label, in order of appearance.

    >>> told = [{"speedup_gmean": s, "slowdown_max_min": s} for s in (1.0, 4.0)]
    >>> summaries([{"label": "sia", "policy": "sia", "forecasts": None, "figures": one} for one in told])[0].figures
    {'speedup_gmean': 2.0, 'slowdown_max_min': 4.0}
    """
    # Rows of a label are its windows and seeds.
    labels: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        labels.setdefault(row["label"], []).append(row)
    return [_summary(label, group) for label, group in labels.items()]


def by_law(known: Sequence[Summary], baseline: str) -> dict[str, list[Summary]]:
    """Configurations by how jobs progressed, the baseline's law first; in each those with the least mean JCT first."""
    home = next((one.law for one in known if one.label == baseline), None)
    # groupby needs each law's rows together, the baseline's law in front.
    ranked = sorted(known, key=lambda one: (one.law != home, one.law, one.get("mean_jct_s") or math.inf))
    return {law: list(group) for law, group in groupby(ranked, key=lambda one: one.law)}


def by_lack(skipped: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """What is lacking -> the policies that lack it, with the forecasts that do where it is theirs.

    >>> by_lack([{"policy": "edf", "lacks": "watts"}, {"policy": "ps", "lacks": "policy ps: watts"}])
    {'watts': ['edf', 'ps']}
    >>> by_lack([{"policy": "ssf", "forecasts": "registry:job-duration=9", "lacks": "a version"}])
    {'a version': ['ssf registry:job-duration=9']}
    """
    found: dict[str, list[str]] = {}
    for one in skipped:
        # Without the policy's name the same lack is the same line for all.
        who = " ".join(filter(None, (one["policy"], one.get("forecasts"))))
        found.setdefault(one["lacks"].removeprefix(f"policy {one['policy']}: "), []).append(who)
    return {lack: list(dict.fromkeys(policies)) for lack, policies in found.items()}


def _summary(label: str, group: Sequence[Mapping[str, Any]]) -> Summary:
    first = group[0]
    rows = [row["figures"] | {key: row.get(key) for key in SAVED if key in row} for row in group]
    names = [key for key, value in rows[0].items() if _is_figure(value)]
    figures = {name: _together(name, [one.get(name) for one in rows]) for name in names}
    rest = {key: first[key] for key in ("future", "law", "scope", "preempts", "versions") if key in first}
    return Summary(label, first["policy"], first["forecasts"], len(group), figures, **rest)


def _is_figure(value: Any) -> bool:
    # True and False are ints to Python, and no figures.
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _together(name: str, values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    # A mean of ratios must be geometric: halving and doubling cancel out.
    if name.startswith("speedup_g"):
        return math.exp(math.fsum(map(math.log, known)) / len(known))
    # fsum: the same mean whatever the order of windows.
    return max(known) if name.endswith("_max_min") else math.fsum(known) / len(known)


Jobs = Mapping[str, Mapping[str, Any]]


PREEMPTS, NO_QUOTAS, FUTURE = "†", "‡", "*"
"""Marks of policies and forecasts in tables."""
MARKS = {
    PREEMPTS: f"{PREEMPTS} stops jobs that run, or takes GPUs from them.",
    NO_QUOTAS: f"{NO_QUOTAS} ignores quotas: all GPUs are one pool.",
    FUTURE: f"{FUTURE} reads the future off the trace: a bound, which cannot be had.",
}
LAWS_IN_WORDS = {
    "runtime": "each runs its time on the GPUs that it asked for",
    "speedup": "each as fast as its speedup on the GPUs that it holds",
    "epochs": "epoch by epoch, by type and number of GPUs",
    "goodput": "by throughput and statistical efficiency on the GPUs that it holds",
    "tasks": "graphs of tasks on servers",
}
OWN_FIGURES: Mapping[str, tuple[str, Shown]] = {
    "worst_ftf": ("worst finish-time fairness", number),
    "deadline_ratio": ("deadlines met", share),
    "accuracy_mean": ("mean accuracy", number),
    "bandwidth_tb": ("bandwidth (TB)", number),
    "energy_kwh": ("energy (kWh)", number),
    "total_eur": ("total cost (EUR)", number),
}
"""What the papers of some policies report: shown where a policy has it."""
READING = (
    "Saved are the hours by which people have results sooner, counted once a job (h) and times the GPUs that it asked "
    "for (GPU-h); the speedup is a geometric mean; slowed jobs end later, by so many hours in all."
)
MOST_NAMED = 3


def named_policy(one: Summary) -> str:
    """A policy with its marks."""
    return one.policy + PREEMPTS * one.preempts + NO_QUOTAS * (one.scope == CLUSTER)


def marks_of(known: Sequence[Summary]) -> list[str]:
    """What the marks of some configurations mean."""
    shown = "".join(named_policy(one) + FUTURE * one.future for one in known)
    return [meaning for mark, meaning in MARKS.items() if mark in shown]


def source_of(one: Summary) -> str:
    """Its forecasts, with the mark of those that read the future, and the versions that answered."""
    # What is pinned stands in the label already.
    open_ones = [f"{name} {version}" for name, version in one.versions.items() if f"{name}=" not in one.forecasts]
    versions = f" ({', '.join(open_ones)})" if open_ones else ""
    return f"{one.forecasts or UNKNOWN}{FUTURE * one.future}{versions}"


def main_tables(
    known: Sequence[Summary], gains: Sequence[Mapping[str, Any]], baseline: str, baselines: Mapping[str, str]
) -> list[Table]:
    """Every configuration, a table a law, that of the baseline first, in each the fastest first.

    `baselines`: by law what its rows are compared with.
    """
    laws = by_law(known, baseline)
    tables = [_main_table(law, group, gains, baselines.get(law), len(laws) > 1) for law, group in laws.items()]
    how_to_read = " ".join([READING, *marks_of(known)])
    return [replace(one, note=f"{one.note} {how_to_read}".strip()) for one in tables[:1]] + tables[1:]


def _main_table(
    law: str, known: Sequence[Summary], gains: Sequence[Mapping[str, Any]], baseline: str | None, several: bool
) -> Table:
    unit, unit_s = unit_for(one.get("mean_jct_s") for one in known)
    # Against the law's baseline alone; other comparisons have a table of their own.
    interval = {gain["label"]: gain for gain in gains if gain["against"] == baseline}

    def column(figure: str, show: Shown = number, scale: float = 1.0) -> list[str]:
        return [show(_scaled(one.get(figure), scale)) for one in known]

    columns = {
        "policy": [named_policy(one) + " (baseline)" * (one.label == baseline) for one in known],
        "forecasts": [source_of(one) for one in known],
        f"mean JCT ({unit})": column("mean_jct_s", scale=unit_s),
        "saved h/week": column("saved_h_week", signed),
        "saved GPU-h/week": column("saved_gpu_h_week", signed),
        "speedup": column("speedup_gmean"),
        f"{100 * CONFIDENCE:g} % interval": [
            between(gain.get("low"), gain.get("high")) for gain in (interval.get(one.label, {}) for one in known)
        ],
        "slowed": column("slowed_pct", percent),
        "by (h)": column("slowdown_total_min", scale=60.0),
        "at worst (h)": column("slowdown_max_min", scale=60.0),
        **{head: column(figure, show) for figure, (head, show) in OWN_FIGURES.items()},
        "utilisation": column("utilization", share),
        "CPU (s)": column("cpu_s"),
        "runs": [number(one.runs) if one.runs > 1 else UNKNOWN for one in known],
    }
    # Columns that nobody fills are noise.
    shown = {head: cells for head, cells in columns.items() if head == "policy" or set(cells) != {UNKNOWN}}
    caption = "Policies and forecasts" + (f": law {law}, {LAWS_IN_WORDS.get(law, law)}" if several else "")
    rows = list(zip(*shown.values(), strict=True))
    words = 1 + ("forecasts" in shown)
    return Table(caption, tuple(shown), rows, words=words, note=_main_note(known, baseline))


def _main_note(known: Sequence[Summary], baseline: str | None) -> str:
    sentences = [
        f"Each job is compared with itself under {baseline}."
        if baseline
        else "No hours saved and no speedups: nobody here is a baseline, and a job is not the same under another law.",
        "Runs are windows × seeds of forecasts that draw; figures are means over them, the worst is the worst of all."
        if any(one.runs > 1 for one in known)
        else "",
    ]
    return " ".join(filter(None, sentences))


def skipped_table(skipped: Sequence[Mapping[str, str]]) -> Table | None:
    """Policies that cannot run, and why."""
    rows = [(", ".join(policies), lack) for lack, policies in by_lack(skipped).items()]
    return Table("Policies that cannot run here", ("policies", "what they lack"), rows, words=2) if rows else None


def matrix_table(known: Sequence[Summary], gains: Sequence[Mapping[str, Any]]) -> Table | None:
    """What each version and source is worth to each policy: times as fast as the baseline of the policy's law."""
    policies, cells = {one.label: one.policy for one in known}, dict[str, dict[str, str]]()
    for one in known:
        # Against another policy: its baseline, whatever that is called.
        over = (gain for gain in gains if gain["label"] == one.label and policies[gain["against"]] != one.policy)
        gain = next(over, None)
        if one.forecasts and gain and gain["ratio"]:
            cells.setdefault(one.policy, {})[one.forecasts] = _with_interval(gain)
    # One source alone is a row of the main table.
    several = {policy: described for policy, described in cells.items() if len(described) > 1}
    note = "Times as fast as the baseline of the policy's law, geometric mean, with 95 % interval."
    return _by_policy("Versions and sources by policy", several, note) if several else None


def _by_policy(caption: str, cells: Mapping[str, Mapping[str, str]], note: str) -> Table:
    """A row a policy, a column for whatever any of them is told by."""
    names = list(dict.fromkeys(name for described in cells.values() for name in described))
    lines = [(policy, *(described.get(name, UNKNOWN) for name in names)) for policy, described in cells.items()]
    return Table(caption, ("policy", *names), lines, note=note)


def _with_interval(gain: Mapping[str, Any]) -> str:
    interval = between(gain["low"], gain["high"])
    return number(gain["ratio"]) + ("" if interval == UNKNOWN else f" ({interval})")


def versions_table(known: Sequence[Summary], gains: Sequence[Mapping[str, Any]]) -> Table | None:
    """Forecasts against one another, a row a policy: what each version is worth to each."""
    rows, policies = {one.label: one for one in known}, {one.label: one.policy for one in known}
    cells: dict[str, dict[str, str]] = {}
    for gain in gains:
        a, b = gain["label"], gain["against"]
        if policies[a] == policies[b] and gain["ratio"]:
            pair = f"{rows[a].forecasts or 'plain'} over {rows[b].forecasts or 'plain'}"
            cells.setdefault(policies[a], {})[pair] = _with_interval(gain)
    note = "Times as fast, geometric mean, with 95 % interval: one that holds 1 tells nothing apart."
    # Of one policy the list of gains tells more.
    return _by_policy("What versions and sources are worth, by policy", cells, note) if len(cells) > 1 else None


def gains_table(gains: Sequence[Mapping[str, Any]]) -> Table | None:
    """Paired comparisons with their intervals."""
    lines = [gain for gain in gains if gain["ratio"]]
    if not lines:
        return None
    unit, unit_s = unit_for(gain["mean_jct_change_s"] for gain in lines)
    interval = f"{100 * lines[0]['confidence']:g} % interval"
    head = (
        "configuration", "compared with", "times as fast (×)", interval, "change in jobs slowed (percentage points)",
        interval, f"change in mean JCT ({unit})", interval, "jobs", "days",
    )  # fmt: skip

    def change(gain: Mapping[str, Any], figure: str, scale: float) -> tuple[str, str]:
        value, low, high = (_scaled(gain.get(f"{figure}{end}"), scale) for end in ("", "_low", "_high"))
        return signed(value), between(low, high, signed)

    rows = [
        (
            gain["label"],
            gain["against"],
            number(gain["ratio"]),
            between(gain["low"], gain["high"]),
            *change(gain, "slowed_change_pct", 1.0),
            *change(gain, "mean_jct_change_s", unit_s),
            number(gain["jobs"]),
            number(gain["days"]),
        )
        for gain in lines
    ]
    return Table("Paired gains", head, rows, words=2)


@dataclass(frozen=True, slots=True)
class Slowed:
    """Who ends later than under the baseline.

    Attributes
    ----------
    jobs, of : how many, of how many that ran under both
    median_s, worst_s : by how much they end later
    pools, users : (name, jobs slowed) of those hit most, most first; without users where the trace tells of none
    """

    jobs: int
    of: int
    median_s: float
    worst_s: float
    pools: Sequence[tuple[str, int]]
    users: Sequence[tuple[str, int]]


def slowed_of(jobs: Jobs, label: str, baseline: str) -> Slowed | None:
    """Who is slowed under a configuration; None where it has no jobs to compare."""
    if label not in jobs or baseline not in jobs:
        return None
    jct_s, base_s = jct_of(jobs, label, baseline), np.asarray(jobs[baseline]["jct_s"], dtype=float)
    later_s, slowed = jct_s - base_s, is_slowed(jct_s, base_s)
    # A median of nothing would be NaN, and warn.
    late_s = later_s[slowed] if slowed.any() else np.zeros(1)

    def most(column: str) -> list[tuple[str, int]]:
        names = np.asarray(jobs[baseline].get(column, ()), dtype=object)
        hit = Counter(str(name) for name in names[slowed] if name) if len(names) else Counter()
        # Ties by name: the same page each time.
        return sorted(hit.items(), key=lambda one: (-one[1], one[0]))[:MOST_NAMED]

    # Jobs that never ran under one of both count nowhere.
    ran = int(np.isfinite(later_s).sum())
    return Slowed(int(slowed.sum()), ran, float(np.median(late_s)), float(late_s.max()), most("pool"), most("user"))


def slowed_table(jobs: Jobs, baseline: str) -> Table | None:
    """Who is slowed, a row a configuration that slows any."""
    found = {label: result for label in jobs if (result := slowed_of(jobs, label, baseline)) and result.jobs}
    unit, unit_s = unit_for(one.median_s for one in found.values())
    rows = [
        (
            label,
            named_counts(one.pools) or UNKNOWN,
            named_counts(one.users) or UNKNOWN,
            number(one.jobs),
            *(number(late_s / unit_s) for late_s in (one.median_s, one.worst_s)),
        )
        for label, one in found.items()
    ]
    pools, users = (f"{who} hit most (jobs)" for who in ("pools", "users"))
    head = ("configuration", pools, users, "jobs slowed", f"median ({unit})", f"worst ({unit})")
    note = "Of forecasts that draw, the first seed."
    return Table(f"Who ends later than under {baseline}", head, rows, words=3, note=note) if rows else None


def named_counts(names: Sequence[tuple[str, int]]) -> str:
    """Names with their counts, as a sentence lists them.

    >>> named_counts([("vision", 12), ("speech", 3)])
    'vision (12) and speech (3)'
    """
    return listed([f"{name} ({number(count)})" for name, count in names])


def pools_table(pools: Sequence[Mapping[str, Any]], jobs: Jobs, baseline: str) -> Table | None:
    """Quotas, and how the pools fare under the baseline."""
    if not pools:
        return None
    base = jobs.get(baseline, {"pool": (), "wait_s": ()})
    of_pool, waits = np.asarray(base["pool"]).astype(str), np.asarray(base["wait_s"], dtype=float)
    # All jobs run in the only pool there is, whatever pools they name: that of a flat cluster is none of theirs.
    alone = len(pools) == 1
    mine = [np.full(len(of_pool), fill_value=True) if alone else of_pool == str(pool["name"]) for pool in pools]
    # nanmean of nothing warns.
    wait_s = [float(np.nanmean(waits[one])) if np.isfinite(waits[one]).any() else None for one in mine]
    unit, unit_s = unit_for(wait_s)
    rows = [
        (str(pool["name"]), number(pool["gpus"]), number(int(one.sum())), number(_scaled(its_s, unit_s)))
        for pool, one, its_s in zip(pools, mine, wait_s, strict=True)
    ]
    return Table("Pools", ("pool", "quota (GPUs)", "jobs replayed", f"mean wait under {baseline} ({unit})"), rows)


def pool_tables(jobs: Jobs, baseline: str) -> list[Table]:
    """Speedups and jobs slowed, a row a configuration, a column a pool; none of one pool. SIA, Table 12."""
    base = jobs.get(baseline)
    labels = [label for label in jobs if label != baseline]
    if base is None or not labels:
        return []
    base_jct, of_pool = np.asarray(base["jct_s"], dtype=float), np.asarray(base["pool"]).astype(str)
    # All jobs first, then pools by name, one of which may be called all as well.
    names = sorted(set(of_pool.tolist()))
    if len(names) < 2:
        return []
    members = [np.ones(len(of_pool), dtype=np.bool_), *(of_pool == name for name in names)]

    def rows(figure: Callable[[Any, Any], str]) -> list[tuple[str, ...]]:
        found = []
        for label in labels:
            jct = jct_of(jobs, label, baseline)
            ran = np.isfinite(jct) & np.isfinite(base_jct)
            own = [mine & ran for mine in members]
            found.append((label, *(figure(base_jct[one], jct[one]) if one.any() else UNKNOWN for one in own)))
        return found

    speedups = rows(lambda base, jct: number(float(np.exp(np.log(times_as_fast(jct, base)).mean()))))
    slowed = rows(lambda base, jct: share(float(is_slowed(jct, base).mean())))
    head = ("configuration", "all", *names)
    return [
        Table(f"Speedup over {baseline} by pool (×, geometric mean)", head, speedups),
        Table(f"Jobs slowed against {baseline} by pool", head, slowed),
    ]


def jct_of(jobs: Jobs, label: str, baseline: str) -> Any:
    """Completion times of a configuration, shape (n_jobs,), in the order of the baseline's.

    Raises
    ------
    ValueError
        It holds another number of jobs than the baseline.
    """
    jct = np.asarray(jobs[label]["jct_s"], dtype=float)
    expected = len(jobs[baseline]["jct_s"])
    if len(jct) != expected:
        raise ValueError(f"{label}: {len(jct)} jobs but {expected} under {baseline}; give the same jobs in one order")
    return jct


def models_table(models: Sequence[Mapping[str, Any]]) -> Table | None:
    """Versions of the registry that answered."""
    if not models:
        return None
    rows = [
        (
            str(model["name"]),
            ", ".join(model.get("aliases") or ()) or UNKNOWN,
            str(model.get("algorithm") or UNKNOWN),
            instant(model.get("trained_until")),
            str(model["version"]),
        )
        for model in models
    ]
    return Table("Registered versions", ("model", "aliases", "algorithm", "trained until", "version"), rows, words=4)


def instant(value: str | float | None) -> str:
    """An instant given as text or as seconds from the epoch, as given in UTC, else on the clock that is shown.

    >>> instant(86400.0), instant("2017-11-06")
    ('1970-01-02T00:00:00Z', '2017-11-06')
    """
    if shown_zone() is not UTC and value is not None:
        return f"{moment(parse_time(value) if isinstance(value, str) else value)} {shown_zone()}"
    # Whole seconds: fractions of an instant tell a reader nothing.
    return value if isinstance(value, str) else iso(None if value is None else value // 1.0) or UNKNOWN


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
