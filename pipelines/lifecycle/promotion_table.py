"""A comparison of two versions as a table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobcast.pipelines.lifecycle.retraining_table import COLUMNS
from jobcast.pipelines.lifecycle.verdict import CANDIDATE, CHAMPION
from jobcast.pipelines.wording import between, brief, number, signed

LABEL_COLUMNS = 30
BACKTEST_ROWS: Mapping[str, str] = {
    "speedup_gmean": "speedup (geometric mean)",
    "slowed_pct": "jobs slowed (%)",
    "slowdown_total_min": "total slowdown (min)",
    "mean_jct_s": "mean JCT (s)",
}


def promotion_table(told: Mapping[str, Any]) -> str:
    """What `models promote` says to a person; the last line says where the alias points."""
    lines = [*_compared(told)] if told["compared"] else []
    if told["forced"]:
        lines.append(f"worse, promoted by --force: {'; '.join(told['reasons'])}")
    if told["promoted"]:
        lines.append(f"{told['model']}: {told['alias']} is version {told['version']}")
    return "\n".join(lines)


def _compared(told: Mapping[str, Any]) -> list[str]:
    figures, window = told["figures"], told["window"]
    lines = [f"{told['model']}, {window['from']} to {window['until']}, which neither saw"]
    if told["overlap_allowed"]:
        lines[0] = lines[0].replace("which neither saw", "WHICH A MODEL HAS SEEN (--allow-overlap)")
    lines.append(_row("", f"version {told['version']}", f"{told['alias']} {told['against']}", "difference"))
    for block, both in figures["blocks"].items():
        for name in COLUMNS[told["model"]]:
            ours, theirs = both[CANDIDATE].get(name), both[CHAMPION].get(name)
            extra = _interval(both["interval"]) if name == figures["figure"] else ""
            lines.append(_row(f"{block} {name}", brief(ours), brief(theirs), _change(ours, theirs) + extra))
    mean = signed(figures["difference"]) + _interval(figures["interval"])
    lines.append(_row(f"mean {figures['figure']}", "", "", mean))
    return [*lines, *_backtest(told["backtest"]), *told["notes"]]


def _backtest(backtest: Mapping[str, Any] | None) -> list[str]:
    if backtest is None:
        return []
    ours, theirs, gains = backtest[CANDIDATE], backtest[CHAMPION], backtest["gains"]
    lines = [f"backtest of {backtest['policy']} on {ours['jobs']:,} jobs; quotas {backtest['quotas']}"]
    for key, label in BACKTEST_ROWS.items():
        lines.append(_row(label, number(ours[key]), number(theirs[key]), _change(ours[key], theirs[key])))
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
