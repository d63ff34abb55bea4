"""A drift report as a page and as a table for the terminal.

Plots of drift: weeks on the x axis, limits as thin lines.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.pipelines.lifecycle.drift_rules import PSI_LIMIT, SwitchRule
from jobcast.pipelines.lifecycle.drift_verdict import FINE, cost_in_words
from jobcast.pipelines.lifecycle.standards import judged
from jobcast.pipelines.report.charts import Axis, Chart, bands, curves, line_at, shade
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.formatting import UNKNOWN, brief, counted, instant, listed, number
from jobcast.pipelines.report.layout import Drawing, Finding, Table, in_terminal, render

TOP_INPUTS = 12
"""Inputs whose shift is drawn, the most moved of any week."""
SHARES = frozenset(
    {
        *("base_rate", "miss_rate", "coverage", "coverage_nonzero", "accuracy", "chosen_under", "bias"),
        *("coverage_90", "skill", "mae", "mape", "crps", "slowed"),
    }
)
UNITS = {
    "mean_load": "GPUs",
    "over": "times the load",
    "log_loss": "nats",
    "ece": "mean |forecast − share|",
    "regime_error": "% of the epochs",
    "speedup": "times as fast",
}
SIGNS = dict.fromkeys(("coverage", "accuracy", "coverage_90", "skill", "speedup"), -1.0)
"""Figures that are off where they are low."""


def drift_plots(result: Mapping[str, Any]) -> dict[str, Chart]:
    """All plots of `drift.drift`'s result, by name: figures by week, then shifts of inputs and misses by pool."""
    weeks = [week["from"] for week in result["weeks"]]
    plots = {}
    for figure, title in judged(result["predictor"]).drawn.items():
        blocks = result["weeks"][0]["blocks"]
        series = {block: [week["blocks"][block].get(figure) for week in result["weeks"]] for block in blocks}
        titled = title.replace("by week", f"by {_period(result)}")
        plots[figure] = by_week(titled, weeks, series, figure, _lines(result, figure))
    inputs = _inputs(result)
    if inputs:
        plots["inputs"] = heatmap("Shift of inputs against training (stability index)", weeks, inputs, PSI_LIMIT)
    for block, misses in _misses(result).items():
        title = f"Windows with arrivals missed by pool and week, {block} (%)"
        plots[f"misses_{block}"] = heatmap(title, weeks, misses, 100.0)
    return plots


def by_week(
    title: str, weeks: Sequence[str], series: Mapping[str, Sequence[float | None]], figure: str, lines: Sequence[float]
) -> Chart:
    """A figure by week, a line a horizon; thin lines where it is to be watched and where it has drifted.

    Rows of a file without a calendar, such as "curve 21", stand where they are in it.
    """
    instants = [_seconds(week) for week in weeks]
    at = [float(week.split()[-1]) if at_s is None else at_s for week, at_s in zip(weeks, instants, strict=True)]
    x = Axis(f"from {weeks[0].split()[0]}", "count") if None in instants else Axis("week from", "time")
    points = {label: (at, [np.nan if value is None else value for value in values]) for label, values in series.items()}
    y = Axis(UNITS.get(figure, ""), "share" if figure in SHARES else "number")
    beside = [line_at("y", *lines)] if lines else []
    return curves(title, points, x, y, interpolate="linear", dots=True, beside=beside, height=200)


def heatmap(title: str, weeks: Sequence[str], rows: Mapping[str, Sequence[float | None]], least_top: float) -> Chart:
    """A number a row and week as a colour, darker = less; the scale reaches to `least_top` at least."""
    cells = [(name, week, value) for name, row in rows.items() for week, value in zip(weeks, row, strict=True)]
    names, of_week, values = zip(*cells, strict=True)
    top = max([least_top, *(value for value in values if value is not None)])
    return bands(
        title,
        list(rows),
        {"row": names, "week": map(_day, of_week), "value": values},
        {"type": "rect"},
        {"shorthand": "week:O", "title": "week from"},
        color=shade("", top),
        tooltip=["row:N", "week:O", {"field": "value", "type": "quantitative", "format": ",.3~r"}],
    )


def _lines(result: Mapping[str, Any], figure: str) -> list[float]:
    """Where a figure is to be watched and where it has drifted."""
    limits = result["limits"].get(figure)
    if limits is None:
        return []
    base = result["nominal"].get(figure, 0.0)
    both = [base + SIGNS.get(figure, 1.0) * limits[name] for name in ("watch", "drifted")]
    # A bias may be off to either side.
    return [*both, *(-line for line in both)] if figure == "bias" else both


def _inputs(result: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The inputs that moved most in any week."""
    weeks = [week["inputs"]["by_feature"] for week in result["weeks"]]
    most = {name: max(week.get(name, 0.0) for week in weeks) for week in weeks for name in week}
    names = sorted(most, key=lambda name: (-most[name], name))[:TOP_INPUTS]
    return {name: [week.get(name) for week in weeks] for name in names}


def _misses(result: Mapping[str, Any]) -> dict[str, dict[str, list[float | None]]]:
    """Miss rates in percent by horizon, pool and week."""
    blocks = result["weeks"][0]["blocks"]
    if not any("miss_rate" in block for block in blocks.values()):
        return {}

    def percent(week: Mapping[str, Any], block: str, pool: str) -> float | None:
        rate = week["blocks"][block]["by_pool"][pool]["miss_rate"]
        return None if rate is None else 100.0 * rate

    return {
        block: {pool: [percent(week, block, pool) for week in result["weeks"]] for pool in result["pools"]}
        for block in blocks
    }


WIDE_PLOTS = ("inputs", "misses_")
CAPTIONS = {
    "base_rate": "What the version must foretell; a step here is a change of what people do.",
    "bias": "Above 0 the version expects more arrivals than come. Dashed: limits of watch and retrain.",
    "ece": "How far probabilities lie from shares that came true. Dashed: limits, where there are any.",
    "miss_rate": "Jobs that came where the gate had declared the window idle. Dashed: limits of watch and retrain.",
    "coverage": "Dashed: limits of watch and retrain, below what the version was made for.",
    "coverage_nonzero": "Without the windows in which nothing came, whose load any estimate reaches.",
    "mean_load": "What the version must foretell; a step here is a change of what people do.",
    "over": "GPUs told for each one that came: what safety costs whoever could have borrowed them.",
    "accuracy": "Dashed: limits of watch and retrain, below the version's own validation.",
    "log_loss": "Dashed: limits of watch and retrain, above the version's own validation.",
    "chosen_under": "Jobs that outlast the bin that was told; what was lent on its word comes back late.",
    "mae_log10": "0.3 is a factor of two. Dashed: limits of watch and retrain, above the version's own validation.",
    "coverage_90": "Dashed: limits of watch and retrain, below the 90 % that intervals promise.",
    "skill": "Below 0 the rule that learns nothing is better. Dashed: limits of watch and retrain.",
    "crps": "Mean score of the distribution of the time left, as a share of a job's run time; less is better.",
    "regime_error": "Dashed: limits of watch and retrain, above the version's own validation.",
    "mae": "Shares of a curve's range. Dashed: limits of watch and retrain, above the version's own validation.",
    "mape": "Dashed: limits of watch and retrain, above the version's own validation.",
    "speedup": "Geometric mean over jobs, each week replayed from an empty cluster. Dashed: limits, below 1.",
    "slowed": "Jobs that end later with what was learned than under the heuristic.",
    "inputs": "0 = distributed as in training; from 0.25 on a shift is large (Siddiqi, 2006).",
}
MISSES = "Misses of the gate; empty where no window of the pool had arrivals."
GLOSSARY = (
    ("fine", "no figure is off by more than matters and by more than chance. Inputs that moved alone change nothing."),
    ("watch", "a figure is off beyond doubt, but not by much: look again next week."),
    ("retrain", "it is off by much: train a version on what has come since."),
    ("roll back", "the same, and the champion of before forecasts these weeks better."),
    ("check the data", "an input has gone missing, or nothing was submitted for far longer than ever in training."),
    (
        "beyond doubt",
        "intervals come from day totals and hold together, for all figures, horizons and weeks, with 95 % confidence.",
    ),
    ("expected", "what the forecasts' own probabilities say of a figure, before the truth of all rows is known."),
    ("surprise", "log loss less what the forecasts expect of it, nats; above 0 they are surer than they may be."),
    (
        "shift of an input",
        "population stability index, ten bins of equal share in training, the largest over horizons; moved: above 0.25 "
        "and above that of every week of the training time.",
    ),
    ("miss rate", "share of the windows with arrivals that the gate had declared idle."),
)


def write_drift(result: Mapping[str, Any], path: Path) -> None:
    """Write the page."""
    write_text(path, render_drift(result))


def render_drift(result: Mapping[str, Any]) -> str:
    """A self-contained HTML page of `drift.drift`'s result."""
    drawings = [
        Drawing(drawn, MISSES if name.startswith("misses_") else CAPTIONS[name], narrow=not name.startswith(WIDE_PLOTS))
        for name, drawn in drift_plots(result).items()
    ]
    first, *most = _columns(result)
    head = [first, "verdict", *most[:-1], "inputs moved", "most moved", "index"]
    return render(
        "drift.html.j2",
        title=f"Drift of {result['predictor']} version {result['version']}",
        finding=_finding(result),
        todo=_todo(result),
        facts=_facts(result),
        estimates_table=_estimates_table(result),
        weeks_table=Table(f"{_period(result).title()} by {_period(result)}", head, _rows(result, page=True), words=2),
        switches_table=_switches_table(result),
        figures=drawings,
        glossary=GLOSSARY,
    )


def drift_table(result: Mapping[str, Any]) -> str:
    """Weeks of a drift report for a terminal."""
    head = _columns(result)
    table = in_terminal(head, _rows(result), (0, head.index("verdict")))
    lines = [f"{result['predictor']} version {result['version']}: {_lead(result)}", "", table]
    worst = [f"{name:<8}{text}" for name, text in _todo(result)]
    estimates = _estimates_table(result)
    if estimates:
        worst += ["", estimates.caption, in_terminal(estimates.head, estimates.rows, (0, 1, 2)), ""]
    off = [one for one in result["switches"] if not one["sharing"]]
    if result["switch_rule"]:
        worst.append(f"sharing switched off {counted(len(off), 'time')}: {_rule(result)}")
    return "\n".join([*lines, "", *worst])


def _columns(result: Mapping[str, Any]) -> list[str]:
    return [
        f"{_period(result)} from",
        "jobs",
        "horizon",
        *(name.replace("_", " ") for name in judged(result["predictor"]).drawn),
        "verdict",
    ]


def _rows(result: Mapping[str, Any], page: bool = False) -> list[list[str]]:
    """A row a week and horizon; what is of the whole week stands in its first. A page has the inputs too."""
    rows = []
    for week in result["weeks"]:
        inputs, lead = week["inputs"], [_week_name(week), number(week["jobs"])]
        last = [week["verdict"]]
        if page:
            lead.insert(1, week["verdict"])
            last = [number(len(inputs["moved"])), inputs["feature"] or UNKNOWN, number(inputs["psi"])]
        for block, figures in week["blocks"].items():
            shown = [brief(figures.get(name)) for name in judged(result["predictor"]).drawn]
            rows.append([*lead, block, *shown, *last])
            # What is of the whole week is told once.
            lead, last = [""] * len(lead), [""] * len(last)
    return rows


def _week_name(week: Mapping[str, Any]) -> str:
    return _day(week["from"]) + ("" if week["complete"] else " (part)")


def _switches_table(result: Mapping[str, Any]) -> Table | None:
    rows = [
        [one["pool"], f"{one['horizon_min']:g} min", _clock(one["from"]), "on" if one["sharing"] else "off"]
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
        ("trained", _span(trained) if trained["from"] else ""),
        ("looked at", _span(window)),
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
    fine = [week["verdict"] for week in weeks].count(FINE)
    return (
        f"{result['verdict']}, as of {_clock(result['as_of'])}; {fine} of {counted(len(weeks), _period(result))} fine."
    )


def _span(window: Mapping[str, str]) -> str:
    return f"{_clock(window['from'])} to {_clock(window['until'])}"


def _seconds(told: str) -> float | None:
    """An instant that a result tells, seconds from the epoch; None of rows of a file without a calendar."""
    try:
        return datetime.fromisoformat(told).timestamp()
    except ValueError:
        return None


def _clock(told: str) -> str:
    """What a result tells of when, on the clock that is shown.

    >>> _clock("2024-01-21T23:44:30.067569Z"), _clock("curve 21")
    ('2024-01-21T23:44:30Z', 'curve 21')
    """
    at_s = _seconds(told)
    return told if at_s is None else instant(at_s)


def _day(told: str) -> str:
    return _clock(told).partition("T")[0]


def _period(result: Mapping[str, Any]) -> str:
    """What figures are told by: weeks, or groups of rows of a file without a calendar."""
    return "group" if _seconds(result["as_of"]) is None else "week"


def _todo(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What happened, since when, what it costs, what to do."""
    told = result["advice"]
    since = told["since"] and _clock(told["since"])
    words = [("what", told["what"]), ("since", since), ("a week", cost_in_words(told["cost"]))]
    return [(name, text) for name, text in (*words, ("do", told["do"]), ("type", told["command"])) if text]


def _estimates_table(result: Mapping[str, Any]) -> Table | None:
    """Expected figures beside those that came, of weeks from which truth is missing, or of the last one."""
    told = [week for week in result["weeks"] if week["estimated"]]
    late = [week for week in told if any(one["known"] < one["rows"] for one in week["estimated"].values())]
    rows = [
        [
            *(_week_name(week), block, name.replace("_", " ")),
            *(brief(figure) for figure in (value, one["realised"][name], one["error"][name])),
            f"{number(one['known'])} of {number(one['rows'])}",
        ]
        for week in late or told[-1:]
        for block, one in week["estimated"].items()
        for name, value in one["expected"].items()
    ]
    if not rows:
        return None
    head = (f"{_period(result)} from", "horizon", "figure", "expected", "came true", "error", "known")
    title = f"Expected before the truth is known, as of {_clock(result['as_of'])}"
    note = "Came true, and the expectation's error, on the rows whose truth is known; expected, on all."
    return Table(title, head, rows, words=3, note=note)
