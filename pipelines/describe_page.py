"""The character of a trace as a page and as a table for the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jobcast.pipelines.describe_findings import finding
from jobcast.pipelines.describe_table import NOTE, gpus, pool_table
from jobcast.pipelines.files import write_text
from jobcast.pipelines.page import Drawing, Table, render
from jobcast.pipelines.plots_trace import trace_plots
from jobcast.pipelines.report import in_terminal
from jobcast.pipelines.times import iso
from jobcast.pipelines.wording import UNKNOWN, counted, duration, number, share

SECTIONS = (
    ("When jobs come", ("weeks", "hour_of_week", "arrivals")),
    ("How long they run, how wide they are, how long they wait", ("widths", "duration_s", "wait_s")),
    ("How busy the pools are", ("utilization", "utilization_hourly")),
    ("How bursty and skewed it is", ("interarrival_s", "interarrival_cv", "burst_share", "duration_spread")),
)
"""Plots in the order in which the page shows them."""
WIDE_PLOTS = frozenset({"weeks", "hour_of_week", "arrivals", "utilization", "widths"})
CAPTIONS = {
    "weeks": "Work counts in the week in which it was submitted. Pools by their work, the busiest first.",
    "hour_of_week": "Mean number of jobs submitted in each hour of the week, all pools together.",
    "duration_s": "Over all jobs.",
    "wait_s": "Over the jobs whose start is known; waits of 0 s count but do not show.",
    "utilization_hourly": "The further left, the more GPUs are paid for and idle: room to share. SIA, Figure 2.",
    "interarrival_s": "Gaps between submissions, all pools together; gaps of 0 s count but do not show.",
    "interarrival_cv": "1 = arrivals at random (a Poisson process); more = in bursts. SIA, Figure 3a.",
    "burst_share": "Right of 1, a burst asks for more than the pool has. SIA, Figure 3b.",
    "duration_spread": "Long tails: how much longer the longest hundredth runs than the middle. SIA, Figure 3c.",
    "widths": "What jobs ask for, in the pools with most jobs.",
    "arrivals": "When jobs were submitted.",
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


def render_description(description: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """A self-contained HTML page of `traces.describe.Description.to_dict()` and the plots of `trace_plots`."""
    pools = {**description["pools"], "all": description["total"]}
    heads, rows = pool_table(pools)
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
        share_tables=[_share_table(name, its, description["total"]) for name, its in _shares(description).items()],
        facts=_facts(description),
        dropped=[f"{number(count)}: {reason}" for reason, count in (description.get("dropped") or {}).items() if count],
        notes=list(description.get("notes") or ()),
    )


def write_description(description: Mapping[str, Any], path: Path, submit_s: ArrayLike | None = None) -> None:
    """Write the page; `submit_s`, the submit times of all jobs, adds the plot of arrivals over time."""
    write_text(path, render_description(description, trace_plots(description, submit_s)))


def description_table(description: Mapping[str, Any]) -> str:
    """Pools of a trace for a terminal, at most 100 columns wide."""
    from rich import box
    from rich.table import Table as RichTable

    heads, rows = pool_table({**description["pools"], "all": description["total"]}, terminal=True)
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in heads:
        table.add_column(name, justify="left" if name == "pool" else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    total = description["total"]
    lines = [f"{description['name']}: {counted(total['jobs'], 'job')}, {_span(total)}"]
    lines += [f"note: {note}" for note in description.get("notes", ())]
    lines += [f"left out: {number(count)} {reason}" for reason, count in description.get("dropped", {}).items()]
    return "\n".join([*lines, "", in_terminal(table)])


def _tiles(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Headline figures: what, how much; unknown ones are left out."""
    total = description["total"]
    users = (description.get("shares") or {}).get("user") or {}
    tiles = [
        ("jobs", number(total["jobs"])),
        ("GPU-hours", number(round(total["gpu_hours"]))),
        ("pools", number(len(description["pools"]))),
        ("users", number(users.get("count"))),
        ("of time", duration(total["span_s"])),
        ("GPUs", number(total.get("quota"))),
        ("of them at work", share(total.get("utilization_mean"))),
        ("median run time", duration(total["duration_p50_s"])),
        ("median wait", duration(total.get("wait_p50_s"))),
        ("widest job (GPUs)", gpus(max(map(int, total["widths"])))),
    ]
    return [(name, value) for name, value in tiles if value != UNKNOWN]


def _shares(description: Mapping[str, Any]) -> Mapping[str, Any]:
    return description.get("shares") or {}


def _share_table(name: str, its: Mapping[str, Any], total: Mapping[str, Any]) -> Table:
    """Those with most work, the others together, and what part of all that is."""
    shown = [*its["top"], *([its["others"] | {"name": _others(its)}] if its.get("others") else [])]
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


def _others(its: Mapping[str, Any]) -> str:
    return f"({number(its['count'] - len(its['top']))} others)"


def _quota_note(description: Mapping[str, Any]) -> str:
    if not description["total"].get("quota"):
        return " Without quotas there is no utilisation; give them with --pools."
    changes = description.get("quota_changes") or 0
    return f" Quotas change {changes} times; the last ones are shown." if changes else ""


def _span(total: Mapping[str, Any]) -> str:
    first, last = (iso(round(total[key])) for key in ("first_submit_s", "last_submit_s"))
    return f"{first} to {last} ({duration(total['span_s'])})"


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
