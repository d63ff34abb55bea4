"""Which scheduler to run: choices from what was replayed, window after window, a switch only where it pays for sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from jobcast.pipelines.experiments.backtest import CellResult
from jobcast.pipelines.report.gains import DAYS_A_WEEK, HOUR_S, paired_gains
from jobcast.simulator.log import Floats
from jobcast.simulator.metrics import is_slowed

FUTURE = "reads the future, which cannot be had"
NOT_ALL = "could not be replayed in every window"
OTHER_LAW = "its jobs run under another law ({law}), by which times cannot be compared; --law puts all under one"
HARM = "slows {pct:.3g} % of jobs, more than the {limit:g} % that are allowed"
UNSURE = "not faster than {now} beyond doubt"


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """One row of the matrix over all windows, a seed.

    Attributes
    ----------
    label : of the row
    jct_s, base_jct_s, submit_s : by window, of the jobs that ran under every row and the baseline
    days : length of each window
    future : whether it reads the future
    """

    label: str
    policy: str
    forecasts: str | None
    settings: Mapping[str, str]
    jct_s: Sequence[Floats]
    base_jct_s: Sequence[Floats]
    submit_s: Sequence[Floats]
    days: Sequence[float]
    future: bool

    def slowed_pct(self, windows: Sequence[int]) -> float:
        """Share of jobs that end later than under the baseline."""
        ours, base = (np.concatenate([of[w] for w in windows]) for of in (self.jct_s, self.base_jct_s))
        return 100.0 * float(np.mean(is_slowed(ours, base)))

    def slowdown_h(self, windows: Sequence[int]) -> float:
        """Hours by which those are later, in all."""
        late_s = [np.maximum(self.jct_s[w] - self.base_jct_s[w], 0.0) for w in windows]
        return float(sum(late.sum() for late in late_s)) / HOUR_S

    def saved_h(self, windows: Sequence[int]) -> float:
        """Hours that jobs end sooner than under the baseline, in all."""
        return float(sum((self.base_jct_s[w] - self.jct_s[w]).sum() for w in windows)) / HOUR_S


def rows_of(results: Sequence[CellResult], windows: int, now: str) -> tuple[list[Replays], dict[str, str]]:
    """The rows that were replayed in all windows under the law of `now`, first seed of each; why others were left."""
    first: dict[str, dict[int, CellResult]] = {}
    for one in results:
        first.setdefault(one.cell.label, {}).setdefault(one.cell.window, one)
    laws = {label: next(iter(by_window.values())).log.law for label, by_window in first.items()}
    left = {label: OTHER_LAW.format(law=law) for label, law in laws.items() if law != laws[now]}
    left |= {label: NOT_ALL for label, by_window in first.items() if len(by_window) < windows}
    whole = {label: [by_window[w] for w in range(windows)] for label, by_window in first.items() if label not in left}
    # Jobs that never ran somewhere can be compared with nobody.
    known = [
        np.logical_and.reduce(
            [
                cells[w].counted & np.isfinite(cells[w].log.jct_s) & np.isfinite(cells[w].base_jct_s)
                for cells in whole.values()
            ]
        )
        for w in range(windows)
    ]
    rows = [
        Replays(
            label,
            cells[0].cell.policy,
            cells[0].forecasts,
            dict(cells[0].cell.settings),
            [one.log.jct_s[ok] for one, ok in zip(cells, known, strict=True)],
            [one.base_jct_s[ok] for one, ok in zip(cells, known, strict=True)],
            [one.log.submit_s[ok] for one, ok in zip(cells, known, strict=True)],
            [one.days for one in cells],
            cells[0].run.future,
        )
        for label, cells in whole.items()
    ]
    return rows, left


def choose(
    rows: Sequence[Replays],
    now: str,
    slowed_pct: float,
    *,
    seed: int = 0,
    left: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Walk over the windows, choosing for each by those before it, then for the time to come by all.

    A row may be chosen where it does not read the future, slows at most `slowed_pct` % of the jobs of the windows seen
    so far against the baseline, and is faster than what is in use, the lower bound of the paired interval above 1. Of
    several that with the highest lower bound.

    Parameters
    ----------
    rows : of the same jobs, `now` among them
    now : label of the scheduler in use, the baseline of all rows
    slowed_pct : jobs that may end later than under it
    seed : of the intervals' draws
    left : labels that were left out, and why, for the record

    Returns
    -------
    dict
        `choice` : what to run, with its settings; `switch` whether that is another than now.
        `candidates` : each row against now over all windows, and why it was not chosen.
        `windows` : what the walk used in each, what it saved, and what the best row in hindsight saved.
        `regret_h_week` : hours a week that the best row in hindsight, kept throughout, saves beyond the walk.
    """
    by_label = {row.label: row for row in rows}
    windows = list(range(len(by_label[now].days)))
    used, steps = now, []
    for window in windows:
        used = _next(by_label, used, windows[:window], slowed_pct, seed)
        steps.append(used)
    choice = _next(by_label, used, windows, slowed_pct, seed)
    allowed = [row for row in rows if not row.future and row.slowed_pct(windows) <= slowed_pct]
    best = max(allowed, key=lambda row: row.saved_h(windows))
    weeks = [days / DAYS_A_WEEK for days in by_label[now].days]
    walked_h = sum(by_label[label].saved_h([w]) for w, label in enumerate(steps))
    chosen = by_label[choice]
    return {
        "choice": {
            "label": choice, "policy": chosen.policy, "forecasts": chosen.forecasts, "settings": dict(chosen.settings)
        },
        "now": now,
        "switch": choice != now,
        "candidates": [_candidate(row, by_label[now], choice, windows, slowed_pct, seed) for row in rows]
        + [{"label": label, "why": why} for label, why in left.items()],
        "windows": [
            {
                "window": w,
                "used": label,
                "saved_h_week": by_label[label].saved_h([w]) / weeks[w],
                "slowed_pct": by_label[label].slowed_pct([w]),
                "best_saved_h_week": best.saved_h([w]) / weeks[w],
            }
            for w, label in enumerate(steps)
        ],
        "best_in_hindsight": best.label,
        "walk_saved_h_week": walked_h / sum(weeks),
        "regret_h_week": (best.saved_h(windows) - walked_h) / sum(weeks),
    }  # fmt: skip


def _next(by_label: Mapping[str, Replays], used: str, seen: Sequence[int], slowed_pct: float, seed: int) -> str:
    """What to run after some windows."""
    if not seen:
        return used
    bounds = {
        label: _gain(row, by_label[used], seen, seed)["low"]
        for label, row in by_label.items()
        if label != used and not row.future and row.slowed_pct(seen) <= slowed_pct
    }
    sure = {label: low for label, low in bounds.items() if low is not None and low > 1.0}
    return max(sure, key=sure.__getitem__) if sure else used


def _gain(row: Replays, other: Replays, windows: Sequence[int], seed: int) -> dict[str, float | None]:
    """Speedup of a row over another on the same jobs, with its paired interval."""
    ours, theirs, submit_s = (
        np.concatenate(columns)
        for columns in zip(*((row.jct_s[w], other.jct_s[w], row.submit_s[w]) for w in windows), strict=True)
    )
    found = paired_gains(ours, theirs, submit_s, seed=seed).to_dict()
    return {"speedup": found["speedup"], "low": found["speedup_low"], "high": found["speedup_high"]}


def _candidate(
    row: Replays, now: Replays, choice: str, windows: Sequence[int], limit: float, seed: int
) -> dict[str, Any]:
    pct, gain = row.slowed_pct(windows), _gain(row, now, windows, seed)
    why = None
    if row.future:
        why = FUTURE
    elif pct > limit:
        why = HARM.format(pct=pct, limit=limit)
    elif row.label not in (choice, now.label):
        sure = gain["low"] is not None and gain["low"] > 1.0
        why = f"not faster than {choice} beyond doubt" if sure else UNSURE.format(now=now.label)
    return {
        "label": row.label,
        **gain,
        "saved_h_week": row.saved_h(windows) * DAYS_A_WEEK / sum(row.days),
        "slowed_pct": pct,
        "slowdown_h": row.slowdown_h(windows),
        "why": why,
    }
