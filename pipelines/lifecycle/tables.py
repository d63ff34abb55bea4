"""A walk of retraining and a comparison of two versions as tables for a terminal.

A walk of retraining as a table for a terminal: a line a week and block, then all weeks together.

A comparison of two versions as a table for a terminal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jobcast.pipelines.lifecycle.comparison import CANDIDATE, CHAMPION
from jobcast.pipelines.lifecycle.lives import judged
from jobcast.pipelines.lifecycle.retraining import NAMES
from jobcast.pipelines.report.formatting import UNKNOWN, between, brief, number, signed
from jobcast.pipelines.report.layout import in_terminal

SHORT_BELOW = 10.0


def retraining_table(result: Mapping[str, Any]) -> str:
    """What `train --retrain` says to a person: each figure of the retrained version, then of the first one."""
    names, rows = judged(result["predictor"]).columns, []
    for week in result["weeks"]:
        when = week["scored"]["from"][:10]
        for block in week[NAMES[0]] or (UNKNOWN,):
            ours, theirs = (week[name].get(block, {}) for name in NAMES)
            rows.append([when, str(week["version"]), block, *_cells(ours, theirs, names)])
    pooled = result["pooled"]
    for block, told in (pooled or {"blocks": {}})["blocks"].items():
        rows.append(["all", "", block, *_cells(told[NAMES[0]], told[NAMES[1]], names)])
    head = ("scored from", "no.", "", "n", *(name.replace("_", " ") for name in names))
    lines = [
        f"{result['predictor']}: no. = version of the week; each figure of it / of the first version, never retrained"
    ]
    return "\n".join([*lines, "", in_terminal(head, rows, (0, 2)), *_difference(pooled)])


def _cells(ours: Mapping[str, Any], theirs: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [number(ours.get("n")), *(f"{_short(ours.get(name))} / {_short(theirs.get(name))}" for name in names)]


def _short(value: float | None) -> str:
    """A figure around 1 with three decimals, a larger one with fewer, so that eight columns fit a terminal."""
    return UNKNOWN if value is None else f"{value:.3f}" if abs(value) < SHORT_BELOW else number(value)


def _difference(pooled: Mapping[str, Any] | None) -> list[str]:
    if pooled is None:
        return ["", "nothing was scored: the window ends with the first training"]
    better = "less" if pooled["less_is_better"] else "more"
    low, high = pooled["interval"] or (None, None)
    told = f"{signed(pooled['difference'])} ({between(low, high, signed)}, {100 * pooled['confidence']:g} % by days)"
    return ["", f"retrained less first, mean {pooled['figure']} ({better} is better): {told}"]


LABEL_COLUMNS = 30
BACKTEST_ROWS: Mapping[str, str] = {
    "speedup_gmean": "speedup (geometric mean)",
    "slowed_pct": "jobs slowed (%)",
    "slowdown_total_min": "total slowdown (min)",
    "mean_jct_s": "mean JCT (s)",
}


def promotion_table(told: Mapping[str, Any]) -> str:
    """What `models promote` says to a person; the last line says where the alias points."""
    lines = _compared(told) if told["compared"] else []
    if told["forced"]:
        lines.append(f"worse, promoted by --force: {'; '.join(told['reasons'])}")
    if told["promoted"]:
        lines.append(f"{told['model']}: {told['alias']} is version {told['version']}")
    return "\n".join(lines)


def _compared(told: Mapping[str, Any]) -> list[str]:
    figures, window = told["figures"], told.get("window")
    where = f"{window['from']} to {window['until']}" if window else told["inputs"]["trace"]["path"]
    lines = [f"{told['model']}, {where}, which neither saw"]
    if told["overlap_allowed"]:
        lines[0] = lines[0].replace("which neither saw", "WHICH A MODEL HAS SEEN (--allow-overlap)")
    lines.append(_row("", f"version {told['version']}", f"{told['alias']} {told['against']}", "difference"))
    for block, both in figures["blocks"].items():
        for name in judged(told["model"]).columns:
            ours, theirs = both[CANDIDATE].get(name), both[CHAMPION].get(name)
            extra = _interval(both["interval"]) if name == figures["figure"] else ""
            lines.append(_row(f"{block} {name}", brief(ours), brief(theirs), _change(ours, theirs) + extra))
    mean = signed(figures["difference"]) + _interval(figures["interval"])
    lines.append(_row(f"mean {figures['figure']}", "", "", mean))
    replays = [line for backtest in told["backtests"].values() for line in _backtest(backtest)]
    return [*lines, *replays, *told["notes"]]


def _backtest(backtest: Mapping[str, Any]) -> list[str]:
    ours, theirs, gains = backtest[CANDIDATE], backtest[CHAMPION], backtest["gains"]
    lines = [f"backtest of {backtest['policy']} on {ours['jobs']:,} jobs; quotas {backtest['quotas']}"]
    bounded = {figure: bound["label"] for figure, bound in backtest["bounds"].items()}
    for key, label in {**bounded, **BACKTEST_ROWS}.items():
        lines.append(
            _row(label, number(ours.get(key)), number(theirs.get(key)), _change(ours.get(key), theirs.get(key)))
        )
    paired = f"{number(gains['ratio'])} ({between(gains['low'], gains['high'])})"
    lines.append(_row("times as fast, job by job", "", "", paired))
    lines += [f"dropped {count:,}: {why}" for why, count in backtest["dropped"].items() if count]
    return lines


def _row(label: str, ours: str, theirs: str, difference: str) -> str:
    return f"{label:<{LABEL_COLUMNS}}{ours:>14}{theirs:>14}  {difference}".rstrip()


def _change(ours: float | None, theirs: float | None) -> str:
    return "" if ours is None or theirs is None else signed(float(ours - theirs), brief)


def _interval(interval: Sequence[float] | None) -> str:
    return f" ({between(interval[0], interval[1], signed)})" if interval else ""
