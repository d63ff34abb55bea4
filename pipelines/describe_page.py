"""The character of a trace as a page and as a table for the terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from jobcast.pipelines.files import write_text
from jobcast.pipelines.headline import Finding
from jobcast.pipelines.page import Drawing, Table, render
from jobcast.pipelines.plots_trace import trace_plots
from jobcast.pipelines.report import in_terminal
from jobcast.pipelines.times import iso
from jobcast.pipelines.wording import UNKNOWN, counted, duration, number, share

WIDE_PLOTS = ("arrivals", "utilization", "widths")

CAPTIONS = {
    "utilization_hourly": "The further left, the more GPUs are paid for and idle: room to share. SIA, Figure 2.",
    "interarrival_s": "Gaps between submissions, all pools together; gaps of 0 s count but do not show.",
    "interarrival_cv": "1 = arrivals at random (a Poisson process); more = in bursts. SIA, Figure 3a.",
    "burst_share": "Right of 1, a burst asks for more than the pool has. SIA, Figure 3b.",
    "duration_spread": "Long tails: how much longer the longest hundredth runs than the middle. SIA, Figure 3c.",
    "widths": "What jobs ask for, in the pools with most jobs.",
    "arrivals": "When jobs were submitted.",
    "utilization": "GPUs at work, cut at 100 %; where the trace does not say when jobs ran, from their submission on.",
}

LOAD_COLUMNS = (
    "pool", "jobs", "quota (GPUs)", "load (GPUs)", "utilisation", "mean width (GPUs)", "median duration",
    "99th percentile", "99th percentile / median (×)",
)  # fmt: skip
ARRIVAL_COLUMNS = (
    "pool", "median gap", "99th percentile", "variation of gaps", "largest burst (GPUs)", "burst / quota (×)",
    "completions followed by an arrival", "the same at random",
)  # fmt: skip
ARRIVAL_NOTE = (
    "Gaps are the times between submissions; their variation = standard deviation over mean, 1 = at random. Bursts and "
    "followed completions: within five minutes."
)
CLOSED_LOOP = 1.2
"""So many times as often as at random, arrivals after completions are more than chance and busy hours."""
TERMINAL_COLUMNS = ("pool", "jobs", "quota", "load", "util.", "median", "p99", "mean GPUs", "CV gaps", "burst")


def render_description(description: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """A self-contained HTML page of `traces.describe.Description.to_dict()` and the plots of `trace_plots`."""
    pools = {**description["pools"], "all": description["total"]}
    tables = [
        Table("Load and durations", LOAD_COLUMNS, [_load_row(*pool) for pool in pools.items()], note=_load_note(pools)),
        Table("Arrivals", ARRIVAL_COLUMNS, [_arrival_row(*pool) for pool in pools.items()], note=ARRIVAL_NOTE),
    ]
    drawings = [
        Drawing(svg, CAPTIONS.get(name, name), narrow=name not in WIDE_PLOTS)
        for name, svg in sorted(plots.items(), key=lambda item: item[0] not in WIDE_PLOTS)
    ]
    return render(
        "description.html.j2",
        title=f"The trace {description['name']}",
        finding=_finding(description),
        facts=_facts(description),
        pool_tables=tables,
        figures=drawings,
    )


def write_description(description: Mapping[str, Any], path: Path, submit_s: ArrayLike | None = None) -> None:
    """Write the page; `submit_s`, the submit times of all jobs, adds the plot of arrivals over time."""
    write_text(path, render_description(description, trace_plots(description, submit_s)))


def description_table(description: Mapping[str, Any]) -> str:
    """Pools of a trace for a terminal, at most 100 columns wide."""
    from rich import box
    from rich.table import Table as RichTable

    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in TERMINAL_COLUMNS:
        table.add_column(name, justify="left" if name == "pool" else "right", overflow="fold")
    for name, figures in [*description["pools"].items(), ("all", description["total"])]:
        table.add_row(*_terminal_row(name, figures))
    total = description["total"]
    lines = [f"{description['name']}: {counted(total['jobs'], 'job')}, {_span(total)}"]
    lines += [f"note: {note}" for note in description.get("notes", ())]
    lines += [f"left out: {number(count)} {reason}" for reason, count in description.get("dropped", {}).items()]
    return "\n".join([*lines, "", in_terminal(table)])


def _terminal_row(name: str, its: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        number(its["jobs"]),
        number(its.get("quota")),
        number(its.get("load_gpus")),
        share(its.get("utilization_mean")),
        duration(its.get("duration_p50_s")),
        duration(its.get("duration_p99_s")),
        number(its.get("gpus_mean")),
        number(its.get("interarrival_cv")),
        number(_gpus(its.get("burst_gpus"))),
    )


def _load_row(name: str, its: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        number(its["jobs"]),
        number(its.get("quota")),
        number(its.get("load_gpus")),
        share(its.get("utilization_mean")),
        number(its.get("gpus_mean")),
        duration(its.get("duration_p50_s")),
        duration(its.get("duration_p99_s")),
        number(its.get("duration_spread")),
    )


def _arrival_row(name: str, its: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        duration(its.get("interarrival_p50_s")),
        duration(its.get("interarrival_p99_s")),
        number(its.get("interarrival_cv")),
        number(_gpus(its.get("burst_gpus"))),
        number(its.get("burst_share")),
        share(its.get("followed_after_completion")),
        share(its.get("followed_at_random")),
    )


def _gpus(value: float | None) -> float | int | None:
    """A number of GPUs, whole where it is."""
    return int(value) if value is not None and value == int(value) else value


def _load_note(pools: Mapping[str, Mapping[str, Any]]) -> str:
    quotas = "" if pools["all"].get("quota") else " Without quotas there is no utilisation and no burst / quota."
    return f"Load = GPU-time over the span of the trace.{quotas}"


def _span(total: Mapping[str, Any]) -> str:
    first, last = (iso(round(total[key])) for key in ("first_submit_s", "last_submit_s"))
    return f"{first} to {last} ({duration(total['span_s'])})"


def _facts(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    total, source = description["total"], description.get("source") or {}
    dropped = [f"{number(count)} {reason}" for reason, count in (description.get("dropped") or {}).items() if count]
    facts = [
        ("file", str(source.get("path", ""))),
        ("SHA-256", str(source.get("sha256", ""))),
        ("rows in the file", number(source.get("rows"))),
        ("jobs", number(total["jobs"])),
        ("span", _span(total)),
        ("work", f"{number(total['gpu_hours'])} GPU-hours"),
        ("pools", number(len(description["pools"]))),
        ("notes", "; ".join(description.get("notes") or ())),
        ("left out", "; ".join(dropped)),
    ]
    return [(name, value) for name, value in facts if value not in ("", UNKNOWN)]


def _finding(description: Mapping[str, Any]) -> Finding:
    total, pools = description["total"], description["pools"]
    lead = (
        f"{counted(total['jobs'], 'job')} of {counted(len(pools), 'pool')} in {duration(total['span_s'])}, "
        f"{number(total['gpu_hours'])} GPU-hours of work."
    )
    return Finding(lead, [*_idleness(total), *_bursts(pools), *_spread(pools), *_loop(total)])


def _idleness(total: Mapping[str, Any]) -> list[str]:
    mean = total.get("utilization_mean")
    return [f"{share(mean)} of the GPUs that the pools pay for are at work in the mean."] if mean is not None else []


def _bursts(pools: Mapping[str, Any]) -> list[str]:
    shares = [its["burst_share"] for its in pools.values() if its.get("burst_share") is not None]
    over = sum(one > 1 for one in shares)
    told = f"In {over} of {len(shares)} pools the largest burst of five minutes asks for more GPUs than the pool has."
    return [told] if shares else []


def _spread(pools: Mapping[str, Any]) -> list[str]:
    spreads = [its["duration_spread"] for its in pools.values() if its.get("duration_spread") is not None]
    over = sum(one > 10 for one in spreads)
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
