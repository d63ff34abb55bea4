"""A drift report as a page and as a table for the terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobcast.pipelines.files import write_text
from jobcast.pipelines.headline import Finding
from jobcast.pipelines.lifecycle.drift_plots import SHOWN, drift_plots
from jobcast.pipelines.lifecycle.drift_rules import DRIFTED, STEADY, SwitchRule
from jobcast.pipelines.page import Drawing, Table, render
from jobcast.pipelines.wording import UNKNOWN, brief, counted, listed, number, share

WIDE_PLOTS = ("inputs", "misses_")
CAPTIONS = {
    "base_rate": "What the version must foretell; a step here is a change of what people do.",
    "bias": "Above 0 the version expects more arrivals than come. Dashed: limits of watch and drifted.",
    "ece": "How far probabilities lie from shares that came true. Dashed: limits, where there are any.",
    "miss_rate": "Jobs that came where the gate had declared the window idle. Dashed: limits of watch and drifted.",
    "coverage": "Dashed: limits of watch and drifted, below what the version was made for.",
    "accuracy": "Dashed: limits of watch and drifted, below the version's own validation.",
    "log_loss": "Dashed: limits of watch and drifted, above the version's own validation.",
    "inputs": "0 = distributed as in training; from 0.25 on a shift is large (Siddiqi, 2006).",
}
MISSES = "Misses of the gate; empty where no window of the pool had arrivals."
GLOSSARY = (
    ("verdict", "steady within all limits; watch or drifted beyond them. An input that moved alone is to be watched."),
    (
        "stability index",
        "population stability index, ten bins of equal share in training; the largest over horizons.",
    ),
    ("moved", "index above 0.25 and above that of every week of the training time against the whole of it."),
    ("miss rate", "share of the windows with arrivals that the gate had declared idle."),
)


def write_drift(result: Mapping[str, Any], path: Path) -> None:
    """Write the page."""
    write_text(path, render_drift(result))


def render_drift(result: Mapping[str, Any]) -> str:
    """A self-contained HTML page of `drift.drift`'s result."""
    drawings = [
        Drawing(
            svg,
            CAPTIONS.get(name, MISSES),
            narrow=not name.startswith(WIDE_PLOTS),
        )
        for name, svg in drift_plots(result).items()
    ]
    return render(
        "drift.html.j2",
        title=f"Drift of {result['predictor']} version {result['version']}",
        finding=_finding(result),
        facts=_facts(result),
        weeks_table=_weeks_table(result),
        switches_table=_switches_table(result),
        figures=drawings,
        glossary=GLOSSARY,
    )


def drift_table(result: Mapping[str, Any]) -> str:
    """Weeks of a drift report for a terminal."""
    from rich import box
    from rich.table import Table as RichTable

    from jobcast.pipelines.report import in_terminal

    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    head, rows = _columns(result), _rows(result)
    for place, name in enumerate(head):
        table.add_column(name, justify="left" if place == 0 or name == "verdict" else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    lines = [f"{result['predictor']} version {result['version']}: {_lead(result)}", "", in_terminal(table)]
    worst = [f"{week['from'][:10]}: {'; '.join(week['reasons'])}" for week in result["weeks"] if week["reasons"]]
    off = [one for one in result["switches"] if not one["sharing"]]
    if result["switch_rule"]:
        worst.append(f"sharing switched off {counted(len(off), 'time')}: {_rule(result)}")
    return "\n".join([*lines, "", *worst])


def _columns(result: Mapping[str, Any]) -> list[str]:
    return ["week from", "jobs", "horizon", *(name.replace("_", " ") for name in SHOWN[result["predictor"]]), "verdict"]


def _rows(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for week in result["weeks"]:
        for place, (block, figures) in enumerate(week["blocks"].items()):
            first = place == 0
            shown = [brief(figures.get(name)) for name in SHOWN[result["predictor"]]]
            head = [_week_name(week), number(week["jobs"])] if first else ["", ""]
            rows.append([*head, block, *shown, week["verdict"] if first else ""])
    return rows


def _week_name(week: Mapping[str, Any]) -> str:
    return str(week["from"][:10]) + ("" if week["complete"] else " (part)")


def _weeks_table(result: Mapping[str, Any]) -> Table:
    head = ["week from", "verdict", "jobs", "horizon", *_columns(result)[3:-1], "inputs moved", "most moved", "index"]
    rows = []
    for week in result["weeks"]:
        inputs = week["inputs"]
        for place, (block, figures) in enumerate(week["blocks"].items()):
            first = place == 0
            lead = [_week_name(week), week["verdict"], number(week["jobs"])] if first else ["", "", ""]
            shown = [brief(figures.get(name)) for name in SHOWN[result["predictor"]]]
            last = [number(len(inputs["moved"])), inputs["feature"] or UNKNOWN, number(inputs["psi"])]
            rows.append([*lead, block, *shown, *(last if first else ["", "", ""])])
    return Table("Week by week", head, rows, words=2)


def _switches_table(result: Mapping[str, Any]) -> Table | None:
    rows = [
        [one["pool"], f"{one['horizon_min']:g} min", one["from"], "on" if one["sharing"] else "off"]
        for one in result["switches"]
    ]
    if not rows:
        return None
    note = f"Sharing is {_rule(result)}; else on. Each row follows from weeks that had ended."
    return Table("Switches of sharing", ("pool", "window", "from", "sharing"), rows, words=4, note=note)


def _rule(result: Mapping[str, Any]) -> str:
    return str(SwitchRule(**result["switch_rule"]))


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    trace, window, trained = result["inputs"]["trace"], result["window"], result["trained"]
    facts = [
        ("model", f"{result['predictor']} version {result['version']} ({result['algorithm']})"),
        ("trained", f"{trained['from']} to {trained['until']}"),
        ("looked at", f"{window['from']} to {window['until']}"),
        ("pools", number(len(result["pools"]))),
        ("nominal", "; ".join(f"{name} {number(value)}" for name, value in result["nominal"].items())),
        ("file", trace["path"]),
        ("SHA-256", trace["sha256"]),
        ("notes", "; ".join(result["notes"])),
    ]
    if result["overlap_allowed"]:
        facts.append(("warning", "the version has seen part of these weeks (--allow-overlap)"))
    return [(name, value) for name, value in facts if value]


def _finding(result: Mapping[str, Any]) -> Finding:
    weeks = result["weeks"]
    sentences = [f"{_week_name(week)}: {listed(week['reasons'])}." for week in weeks if week["reasons"]]
    off = {(one["pool"], one["horizon_min"]) for one in result["switches"] if not one["sharing"]}
    if off:
        sentences.append(f"Sharing is switched off at some time for {counted(len(off), 'pair')} of pool and window.")
    return Finding(_lead(result), sentences)


def _lead(result: Mapping[str, Any]) -> str:
    weeks = result["weeks"]
    verdicts = [week["verdict"] for week in weeks]
    steady, drifted = verdicts.count(STEADY), verdicts.count(DRIFTED)
    told = f"{steady} of {counted(len(weeks), 'week')} ({share(steady / len(weeks))}) within all limits"
    return f"{told}, {drifted} drifted; the last one: {verdicts[-1]}."
