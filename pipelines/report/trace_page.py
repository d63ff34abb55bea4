"""The character of a trace as a page and as a table for the terminal.

The figures of a trace's pools as columns: one list of them for the page and for the terminal.

What a trace's figures say, in sentences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jobcast.pipelines.report.charts import ZOOM, Chart
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.formatting import UNKNOWN, counted, duration, moment, number, share, shown_zone
from jobcast.pipelines.report.layout import Drawing, Finding, Table, in_terminal, render
from jobcast.pipelines.report.trace_plots import trace_plots
from jobcast.traces.trace_stats import CLOCKWORK

Row = Mapping[str, Any]
"""Figures of a pool, as `traces.trace_stats.Figures` in JSON."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a pool.

    Attributes
    ----------
    head : its name, unit included
    key : what `Figures` calls it
    show : how it is shown
    short : its name in a terminal, empty = not shown there
    on_page : whether a page shows it
    """

    head: str
    key: str
    show: Callable[[Any], str]
    short: str = ""
    on_page: bool = True


def gpus(value: float | None) -> str:
    """A number of GPUs, whole where it is.

    >>> gpus(8.0), gpus(2.5)
    ('8', '2.50')
    """
    return number(int(value) if value is not None and value == int(value) else value)


COLUMNS = (
    Column("jobs", "jobs", number, "jobs"),
    Column("GPU-hours", "gpu_hours", number),
    Column("quota (GPUs)", "quota", number, "quota"),
    Column("load (GPUs)", "load_gpus", number, "load", on_page=False),
    Column("utilisation", "utilization_mean", share, "util."),
    Column("mean width (GPUs)", "gpus_mean", number, "mean GPUs"),
    Column("median run time", "duration_p50_s", duration, "median"),
    Column("99th percentile of run times", "duration_p99_s", duration, "p99"),
    Column("median wait", "wait_p50_s", duration),
    Column("90th percentile of waits", "wait_p90_s", duration),
    Column("variation of gaps", "interarrival_cv", number, "CV gaps"),
    Column("largest burst (GPUs)", "burst_gpus", gpus, "burst"),
    Column("completions followed", "followed_after_completion", share),
    Column("followed at random", "followed_at_random", share),
)
UNITS = "quota, load, burst: GPUs; median, p99: run times; CV gaps: deviation / mean between submissions"
NOTE = (
    "Gaps are the times between submissions; their variation = standard "
    "deviation over mean, 1 = at random. A burst is what arrives within five minutes. Followed = by an arrival in the "
    "pool within five minutes."
)


def pool_table(description: Mapping[str, Any], terminal: bool = False) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the pools and of all together; on a page, columns that no pool fills are left out."""
    # A list: a pool may be called as all of them are.
    pools: list[tuple[str, Row]] = [*description["pools"].items(), ("all", description["total"])]
    columns = [column for column in COLUMNS if column.short] if terminal else _filled([its for _, its in pools])
    heads = ["pool", *(column.short if terminal else column.head for column in columns)]
    rows = [[name, *(column.show(its.get(column.key)) for column in columns)] for name, its in pools]
    return heads, rows


def _filled(rows: Sequence[Row]) -> Sequence[Column]:
    shown = [column for column in COLUMNS if column.on_page]
    return [column for column in shown if any(column.show(its.get(column.key)) != UNKNOWN for its in rows)]


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
    rows = [*_idleness(total), *_waits(total), *_people(description), *_clockwork(pools)]
    rows += _over(pools, "burst_share", 1.0, "the largest burst of five minutes asks for more GPUs than the pool has")
    rows += _over(pools, "duration_spread", LONG_TAIL, "the 99th percentile of durations is over 10 times the median")
    return Finding(lead, [*rows, *_loop(total)])


def clockwork_pools(pools: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Pools whose arrivals run like clockwork: a program submits them."""
    return {name: its for name, its in pools.items() if (its.get("clockwork_share") or 0.0) >= CLOCKWORK}


def _clockwork(pools: Mapping[str, Any]) -> list[str]:
    found = clockwork_pools(pools)
    named = sorted(found, key=lambda name: (-found[name]["clockwork_share"], name))[:MOST_NAMED]
    rows = [
        f"Pool {name} runs like clockwork: {share(found[name]['clockwork_share'])} of its submissions come about "
        f"{duration(found[name]['clockwork_gap_s'])} after the one before, as a program makes them, not people."
        for name in named
    ]
    more = len(found) - len(named)
    return [*rows, *([f"So do {counted(more, 'other pool')}."] if more else [])]


def _idleness(total: Mapping[str, Any]) -> list[str]:
    mean = total.get("utilization_mean")
    if mean is None:
        return []
    # More than all GPUs cannot be at work.
    if mean > 1:
        return [
            f"In the mean the jobs hold {number(mean)} times the GPUs that the pools pay for: the quotas are too small "
            "for this trace, or it does not tell when its jobs waited."
        ]
    return [f"{share(mean)} of the GPUs that the pools pay for are at work in the mean."]


def _waits(total: Mapping[str, Any]) -> list[str]:
    # Traces without starts tell no waits, and zeros would look like none.
    if not total.get("waits_known"):
        return []
    half, tenth = duration(total["wait_p50_s"]), duration(total["wait_p90_s"])
    if total["wait_p90_s"] == 0:
        return ["At least nine in ten jobs start as soon as they are submitted."]
    return [f"Half of the jobs wait at most {half}, one in ten longer than {tenth}."]


def _people(description: Mapping[str, Any]) -> list[str]:
    users = (description.get("shares") or {}).get("user")
    work = description["total"]["gpu_hours"]
    # A single user has all of the work: nothing to tell.
    if not users or users["count"] < 2 or not work:
        return []
    top = users["top"][0]
    part = share(top["gpu_hours"] / work)
    return [f"{counted(users['count'], 'user')}; the busiest, {top['name']}, has {part} of the work."]


def _over(pools: Mapping[str, Any], figure: str, most: float, what: str) -> list[str]:
    """In how many of the pools that have a figure it is above a bound."""
    known = [its[figure] for its in pools.values() if its.get(figure) is not None]
    over = sum(one > most for one in known)
    return [f"In {over} of {len(known)} pools {what}."] if known else []


def _loop(total: Mapping[str, Any]) -> list[str]:
    after, random = total.get("followed_after_completion"), total.get("followed_at_random")
    if after is None or random is None:
        return []
    text = f"{share(after)} of completions are followed by an arrival in their pool within five minutes"
    # Busy hours alone make arrivals follow completions more often than once.
    if after > CLOSED_LOOP * random:
        return [f"{text}, against {share(random)} at random instants: people wait for results before they submit more."]
    much = "hardly more than chance" if after > random else "no more than chance"
    return [f"{text}, against {share(random)} at random instants: {much}."]


SECTIONS = (
    ("When jobs come", ("weeks_jobs", "weeks_work", "hour_of_week", "arrivals")),
    ("How long they run, how wide they are, how long they wait", ("widths", "duration_s", "wait_s")),
    ("How busy the pools are", ("utilization", "utilization_hourly")),
    ("How bursty and skewed it is", ("interarrival_s", "interarrival_cv", "burst_share", "duration_spread")),
)
"""Plots in the order in which the page shows them."""
WIDE_PLOTS = frozenset({"weeks_jobs", "weeks_work", "hour_of_week", "arrivals", "utilization", "widths"})
CAPTIONS = {
    "weeks_jobs": "A bar a week, from Monday to Sunday; the first and the last may be cut.",
    "weeks_work": "Work counts in the week in which it was submitted. Pools by their work, the busiest first.",
    "hour_of_week": "Mean number of jobs submitted in each hour of the week, all pools together.",
    "duration_s": "Over all jobs.",
    "wait_s": "Over the jobs whose start is known; waits of 0 s count but do not show.",
    "utilization_hourly": "The further left, the more GPUs are paid for and idle: room to share. SIA, Figure 2.",
    "interarrival_s": "Gaps between submissions, all pools together; gaps of 0 s count but do not show.",
    "interarrival_cv": "1 = arrivals at random (a Poisson process); more = in bursts. SIA, Figure 3a.",
    "burst_share": "Right of 1, a burst asks for more than the pool has. SIA, Figure 3b.",
    "duration_spread": "Long tails: how much longer the longest hundredth runs than the middle. SIA, Figure 3c.",
    "widths": "What jobs ask for, in the pools with most jobs.",
    "arrivals": f"When jobs were submitted: {ZOOM}.",
    "utilization": "GPUs at work, cut at 100 %; where the trace does not say when jobs ran, from their submission on.",
}
SHARE_CAPTIONS = {
    "user": "Busiest users",
    "tag": "Busiest tags (experiments, job names)",
    "state": "How jobs ended",
    "gpu_type": "Kinds of GPU",
    "model": "Models",
}
SHARE_HEAD = ("jobs", "of all jobs", "GPU-hours", "of all work")


def render_description(description: Mapping[str, Any], plots: Mapping[str, Chart]) -> str:
    """A self-contained HTML page of `traces.describe.Description.to_dict()` and the plots of `trace_plots`."""
    heads, rows = pool_table(description)
    shares = description.get("shares") or {}
    return render(
        "description.html.j2",
        title=f"The trace {description['name']}",
        finding=finding(description),
        tiles=_tiles(description),
        sections=[
            (title, [Drawing(plots[name], CAPTIONS[name], narrow=name not in WIDE_PLOTS) for name in names])
            for title, shown in SECTIONS
            if (names := [name for name in shown if name in plots])
        ],
        pools_table=Table("Pools", heads, rows, note=f"{NOTE}{_quota_note(description)}"),
        share_tables=[_share_table(name, its, description["total"]) for name, its in shares.items()],
        facts=_facts(description),
        dropped=[f"{number(count)}: {reason}" for reason, count in (description.get("dropped") or {}).items() if count],
        notes=list(description.get("notes") or ()),
    )


def write_description(description: Mapping[str, Any], path: Path, submit_s: ArrayLike | None = None) -> None:
    """Write the page; `submit_s`, the submit times of all jobs, adds the plot of arrivals over time."""
    write_text(path, render_description(description, trace_plots(description, submit_s)))


def description_table(description: Mapping[str, Any]) -> str:
    """Pools of a trace for a terminal, at most 100 columns wide."""
    heads, rows = pool_table(description, terminal=True)
    total = description["total"]
    lines = [f"{description['name']}: {counted(total['jobs'], 'job')}, {_span(total)}"]
    lines += [f"note: {note}" for note in description.get("notes", ())]
    lines += [f"left out: {number(count)} {reason}" for reason, count in description.get("dropped", {}).items()]
    return "\n".join([*lines, "", in_terminal(heads, rows), "", UNITS])


def _tiles(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Headline figures: what, how much; unknown ones are left out."""
    total = description["total"]
    users, busy = (description.get("shares") or {}).get("user") or {}, total.get("utilization_mean")
    tiles = [
        ("jobs", number(total["jobs"])),
        ("GPU-hours", number(total["gpu_hours"])),
        ("pools", number(len(description["pools"]))),
        ("users", number(users.get("count"))),
        ("of time", duration(total["span_s"])),
        ("GPUs", number(total.get("quota"))),
        ("of them at work" if (busy or 0.0) <= 1.0 else "of them held", share(busy)),
        ("median run time", duration(total["duration_p50_s"])),
        ("median wait", duration(total.get("wait_p50_s"))),
        ("widest job (GPUs)", gpus(max(map(int, total["widths"])))),
    ]
    return [(name, value) for name, value in tiles if value != UNKNOWN]


def _share_table(name: str, its: Mapping[str, Any], total: Mapping[str, Any]) -> Table:
    """Those with most work, the others together, and what part of all that is."""
    others = f"({number(its['count'] - len(its['top']))} others)"
    shown = [*its["top"], *([its["others"] | {"name": others}] if its.get("others") else [])]
    rows = [
        [
            one["name"],
            number(one["jobs"]),
            share(one["jobs"] / total["jobs"]),
            number(one["gpu_hours"]),
            share(one["gpu_hours"] / total["gpu_hours"]) if total["gpu_hours"] else UNKNOWN,
        ]
        for one in shown
    ]
    return Table(SHARE_CAPTIONS.get(name, name), (name.replace("_", " "), *SHARE_HEAD), rows)


def _quota_note(description: Mapping[str, Any]) -> str:
    if not description["total"].get("quota"):
        return " Without quotas there is no utilisation; give them with --pools."
    changes = description.get("quota_changes") or 0
    return f" Quotas change {changes} times; the last ones are shown." if changes else ""


def _span(total: Mapping[str, Any]) -> str:
    first, last = (moment(total[key]) for key in ("first_submit_s", "last_submit_s"))
    return f"{first} to {last} {shown_zone()} ({duration(total['span_s'])})"


def _facts(description: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    total, source = description["total"], description.get("source") or {}
    facts = [
        ("file", str(source.get("path", ""))),
        ("SHA-256", str(source.get("sha256", ""))),
        ("rows in the file", number(source.get("rows"))),
        ("jobs", number(total["jobs"])),
        ("submitted", _span(total)),
    ]
    return [(name, value) for name, value in facts if value not in ("", UNKNOWN)]
