"""Which scheduler to run: choices from what was replayed, window after window, a switch only where it pays for sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.pipelines.report.gains import DAYS_A_WEEK, paired_gains
from jobcast.simulator.metrics import is_slowed

RANDOM = "random"
SEED = 0
"""Of the intervals' draws."""
MOST_SLOWED_PCT = 1.0
"""Jobs that may end later than now, in percent, unless somebody says otherwise."""
FUTURE = "reads the future, which cannot be had"
DRAWN = "its forecasts are drawn at random, for comparison"
NOT_ALL = "could not be replayed in every window"
OTHER_LAW = "its jobs run under another law ({law}), by which times cannot be compared; --law puts all under one"
HARM = "slows {pct:.3g} % of jobs, more than the {limit:g} % that are allowed"
LONGER = "people wait longer in all: {hours:.3g} h/week"
UNSURE = "not faster than {now} beyond doubt"


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """One row of the matrix over all windows, a seed.

    Attributes
    ----------
    label : of the row
    jct_s, base_jct_s, submit_s : by window, of the jobs that ran under every row and the baseline
    days : length of each window
    future, drawn : whether it reads the future; whether its forecasts are drawn at random
    users : by window, whose the jobs are; empty where the trace does not tell
    eur : by window, what energy and lateness cost; empty where neither is priced
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
    drawn: bool = False
    users: Sequence[NDArray[Any]] = ()
    eur: Sequence[float] = ()

    @property
    def refused(self) -> str | None:
        """Why nobody could run it, whatever it gains; None where somebody could."""
        return FUTURE if self.future else DRAWN if self.drawn else None

    def slowed_pct(self, windows: Sequence[int]) -> float:
        """Share of jobs that end later than under the baseline."""
        ours, base = (np.concatenate([of[w] for w in windows]) for of in (self.jct_s, self.base_jct_s))
        return 100.0 * float(np.mean(is_slowed(ours, base)))

    def slowdown_h(self, windows: Sequence[int]) -> float:
        """Hours by which those are later, in all."""
        late_s = [np.maximum(self.jct_s[w] - self.base_jct_s[w], 0.0) for w in windows]
        return float(sum(late.sum() for late in late_s)) / HOUR_S

    def slowed(self) -> dict[str, float | int | None]:
        """Who ends later than under the baseline, and by how much; people by what all their jobs come to.

        `slowed_median_h`, `slowed_worst_h` of the jobs that are slowed; `people`, how many of them are slowed on the
        whole, and the worst of these; None where the trace does not tell of people.
        """
        late_h = np.concatenate([ours - base for ours, base in zip(self.jct_s, self.base_jct_s, strict=True)]) / HOUR_S
        hit = np.concatenate([is_slowed(*pair) for pair in zip(self.jct_s, self.base_jct_s, strict=True)])
        found: dict[str, float | int | None] = dict.fromkeys(("people", "people_slowed", "people_slowed_worst_h"))
        found |= {"slowed_median_h": float(np.median(late_h[hit])) if hit.any() else 0.0}
        found |= {"slowed_worst_h": float(late_h.max(initial=0.0))}
        if self.users:
            names, of = np.unique(np.concatenate(self.users).astype(str), return_inverse=True)
            by_person = np.bincount(of, late_h, len(names))
            later = is_slowed(by_person.astype(np.float64), np.zeros(len(names)))
            found |= {"people": len(names), "people_slowed": int(later.sum())}
            found |= {"people_slowed_worst_h": float(by_person.max(initial=0.0))}
        return found

    def saved_h(self, windows: Sequence[int]) -> float:
        """Hours that jobs end sooner than under the baseline, in all."""
        return float(sum((self.base_jct_s[w] - self.jct_s[w]).sum() for w in windows)) / HOUR_S

    def allowed(self, windows: Sequence[int], slowed_pct: float) -> bool:
        """Whether it could be had, slows few enough jobs, and lets nobody wait longer in all than the baseline does.

        The last is no matter of course: what makes most jobs faster may starve a few for days.
        """
        slows_few = self.slowed_pct(windows) <= slowed_pct
        return not self.refused and slows_few and self.saved_h(windows) >= 0.0


def rows_of(jobs: pl.DataFrame, figures: Sequence[Mapping[str, Any]], now: str) -> tuple[list[Replays], dict[str, str]]:
    """The rows of a backtest in all its windows under the law of `now`, first seed of each; why others were left.

    Parameters
    ----------
    jobs : a row a job and simulation, as `backtest_results.jobs_of` tells them
    figures : a row a simulation, as `CellResult.row` tells it
    """
    told = {row["label"]: row for row in figures}
    priced = [row for row in figures if "total_eur" in row["figures"]]
    # The last that is kept is of the first seed.
    eur = {
        (row["label"], row["window"]): row["figures"]["total_eur"]
        for row in sorted(priced, key=lambda row: row["seed"], reverse=True)
    }
    law = told[now]["law"] if now in told else None
    windows = sorted({row["window"] for row in figures})
    first = pl.col("seed") == pl.col("seed").min().over("label")
    columns = ("window", "job", "submit_s", "jct_s", "user")
    table = jobs.filter(first & pl.col("counted")).with_columns(jct_s=pl.col("end_s") - pl.col("submit_s"))
    parts = {
        str(label): part.select(columns).drop_nulls("jct_s")
        for (label,), part in table.group_by("label", maintain_order=True)
    }
    left = {label: OTHER_LAW.format(law=row["law"]) for label, row in told.items() if row["law"] != law}
    left |= {label: NOT_ALL for label in told if label not in parts or set(windows) != set(parts[label]["window"])}
    parts = {label: part for label, part in parts.items() if label not in left}
    if now not in parts:
        return [], left
    # Jobs that never ran somewhere can be compared with nobody.
    keys, rows = ["window", "job"], []
    base = parts[now].select(*keys, base_s="jct_s")
    for part in parts.values():
        base = base.join(part, on=keys, how="semi")
    for label, part in parts.items():
        both = part.join(base, on=keys, maintain_order="left")
        by_window = [both.filter(pl.col("window") == window) for window in windows]
        days = {row["window"]: row["days"] for row in figures if row["label"] == label}
        jct_s, base_s, submit_s = (
            [one[name].to_numpy() for one in by_window] for name in ("jct_s", "base_s", "submit_s")
        )
        row = told[label]
        rows.append(
            Replays(
                label, row["policy"], row["forecasts"], row.get("settings", {}), jct_s, base_s, submit_s,
                [days[window] for window in windows], row["future"], (row["forecasts"] or "").startswith(RANDOM),
                [] if both["user"].is_null().any() else [one["user"].to_numpy() for one in by_window],
                [eur[label, window] for window in windows if (label, window) in eur],
            )
        )  # fmt: skip
    return rows, left


def choose(
    rows: Sequence[Replays], now: str, slowed_pct: float, left: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Walk over the windows, choosing for each by those before it, then for the time to come by all.

    A row may be chosen where it does not read the future, slows at most `slowed_pct` % of the jobs of the windows seen
    so far against the baseline, saves hours in all, and is faster than what is in use, the lower bound of the paired
    interval above 1. Of several that with the highest lower bound. What is in use and has come to slow more, or to cost
    hours, is given up for `now`.

    Parameters
    ----------
    rows : of the same jobs, `now` among them
    now : label of the scheduler in use, the baseline of all rows
    slowed_pct : jobs that may end later than under it
    left : labels that were left out, and why, for the record

    Returns
    -------
    dict
        `choice` : what to run, with its settings; `switch` whether that is another than now.
        `days` : length of all windows, less what is left out of the figures.
        `slowed_pct` : the limit.
        `candidates` : each row against now over all windows, and why it was not chosen.
        `windows` : what the walk used in each, what it saved, and what the best row in hindsight saved.
        `regret_h_week` : hours a week that the best row in hindsight, kept throughout, saves beyond the walk.
    """
    by_label = {row.label: row for row in rows}
    windows = list(range(len(by_label[now].days)))
    used, steps = now, []
    for window in windows:
        used = _next(by_label, now, used, windows[:window], slowed_pct)
        steps.append(used)
    choice = _next(by_label, now, used, windows, slowed_pct)
    # What is in use can be had, whatever it is taken to know.
    allowed = [row for row in rows if row.label == now or row.allowed(windows, slowed_pct)]
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
        "days": sum(by_label[now].days),
        "slowed_pct": slowed_pct,
        "candidates": [_candidate(row, by_label[now], choice, windows, slowed_pct) for row in rows]
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


def _next(by_label: Mapping[str, Replays], now: str, used: str, seen: Sequence[int], slowed_pct: float) -> str:
    """What to run after some windows."""
    if not seen:
        return used
    if not by_label[used].allowed(seen, slowed_pct):
        used = now
    bounds = {
        label: _gain(row, by_label[used], seen)["low"]
        for label, row in by_label.items()
        if label != used and row.allowed(seen, slowed_pct)
    }
    sure = {label: low for label, low in bounds.items() if low is not None and low > 1.0}
    return max(sure, key=sure.__getitem__) if sure else used


def _gain(row: Replays, other: Replays, windows: Sequence[int]) -> dict[str, float | None]:
    """Speedup of a row over another on the same jobs, with its paired interval."""
    ours, theirs, submit_s = (
        np.concatenate(columns)
        for columns in zip(*((row.jct_s[w], other.jct_s[w], row.submit_s[w]) for w in windows), strict=True)
    )
    found = paired_gains(ours, theirs, submit_s, seed=SEED)
    return {"speedup": found["speedup"], "low": found["speedup_low"], "high": found["speedup_high"]}


def _candidate(row: Replays, now: Replays, choice: str, windows: Sequence[int], limit: float) -> dict[str, Any]:
    pct, gain, weeks = row.slowed_pct(windows), _gain(row, now, windows), sum(row.days) / DAYS_A_WEEK
    why = row.refused
    if why is None and pct > limit:
        why = HARM.format(pct=pct, limit=limit)
    elif why is None and row.saved_h(windows) < 0.0:
        why = LONGER.format(hours=-row.saved_h(windows) / weeks)
    elif why is None and row.label not in (choice, now.label):
        sure = gain["low"] is not None and gain["low"] > 1.0
        why = f"not faster than {choice} beyond doubt" if sure else UNSURE.format(now=now.label)
    return {
        "label": row.label,
        "policy": row.policy,
        "forecasts": row.forecasts,
        "settings": dict(row.settings),
        **gain,
        "saved_h_week": row.saved_h(windows) / weeks,
        "slowed_pct": pct,
        "slowdown_h": row.slowdown_h(windows),
        "slowdown_h_week": row.slowdown_h(windows) / weeks,
        **row.slowed(),
        **({"eur_week": sum(row.eur) / weeks} if row.eur else {}),
        "jobs": sum(map(len, row.jct_s)),
        "can_be_had": row.refused is None,
        "why": why,
    }
