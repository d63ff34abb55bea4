"""What is measured of runs, how it is printed, and what ANDREAS saves against others on the same draws."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from papers import sheets
from papers.andreas.units import OURS, Done
from papers.confidence import Floats, Interval, interval_of
from papers.sheets import HOUR_S, grid, number

UNSTEADY = ("decision_ms_mean", "decision_ms_max", "cpu_s")
"""Seconds of a machine differ from run to run."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run: its name there, its heading, what it is multiplied by, and digits to print."""

    key: str
    title: str
    scale: float = 1.0
    digits: int = 2

    def text(self, figures: Mapping[str, float]) -> str:
        """As printed."""
        return number(figures[self.key] * self.scale, self.digits)


ENERGY = Measure("energy_eur", "energy, EUR")
TARDINESS = Measure("tardiness_eur", "tardiness, EUR")
TOTAL = Measure("total_eur", "total, EUR")
MAKESPAN = Measure("makespan_s", "makespan, h", 1 / HOUR_S)
LATE = Measure("late_pct", "late, %", 1.0, 1)
CALL = Measure("decision_ms_mean", "a call, ms", 1.0, 2)
PREEMPTIONS = Measure("preemptions", "preemptions", 1.0, 0)
MOVES = Measure("migrations", "moves", 1.0, 0)
SHOWN = (ENERGY, TARDINESS, TOTAL, MAKESPAN, LATE, PREEMPTIONS, MOVES, CALL)
SAVED = (TOTAL, ENERGY, TARDINESS, MAKESPAN)

Key = tuple[str, str]
"""Case and name."""


def values_of(measure: Measure, done: Iterable[Done], case: str, name: str) -> Floats:
    """(n_draws,) a measure by draw, in the order of seeds, as it is printed."""
    ours = sorted((one for one in done if (one.case, one.name) == (case, name)), key=lambda one: one.seed)
    return np.array([one.figures[measure.key] * measure.scale for one in ours])


def savings_pct(measure: Measure, done: Sequence[Done], case: str, other: str, ours: str = OURS) -> Floats:
    """(n_draws,) by how much less ANDREAS takes than another on the same draw, %; NaN where that takes nothing."""
    base, own = (values_of(measure, done, case, name) for name in (other, ours))
    saved: Floats = np.full(len(base), np.nan)
    np.divide(100.0 * (base - own), base, out=saved, where=base > 0.0)
    saved[(base == 0.0) & (own == 0.0)] = 0.0
    return saved


def over(
    measure: Measure, done: Sequence[Done], cases: Sequence[str], others: Sequence[str], ours: str = OURS
) -> Interval:
    """Mean saving over cases and others by draw, and its interval over draws, %."""
    by_draw = [savings_pct(measure, done, case, other, ours) for case in cases for other in others]
    return interval_of(np.mean(by_draw, axis=0))


def of_sums_pct(measure: Measure, done: Sequence[Done], cases: Sequence[str], other: str) -> float:
    """By how much less ANDREAS takes than another over all draws and cases put together, %."""
    base, own = (sum(values_of(measure, done, case, name).sum() for case in cases) for name in (other, OURS))
    return float(100.0 * (1.0 - own / base)) if base > 0.0 else float("nan")


def table(found: Mapping[Key, Mapping[str, float]], head: str, measures: Sequence[Measure] = SHOWN) -> str:
    """Means over draws: a row a case and name."""
    rows = ((case, name, *(one.text(figures) for one in measures)) for (case, name), figures in found.items())
    return grid((head, "policy", *(one.title for one in measures)), rows)


def savings_tables(done: Sequence[Done], cases: Sequence[str], others: Sequence[str], head: str) -> list[str]:
    """What ANDREAS saves: of the total cost by case, then of each measure over all cases."""
    by_case = [(case, *(over(TOTAL, done, [case], [other]).text() for other in others)) for case in cases]
    every = [(other, *(over(one, done, cases, [other]).text() for one in SAVED)) for other in others]
    every = [(*row, number(of_sums_pct(TOTAL, done, cases, row[0]), 1)) for row in every]
    last = ("all of them", *(over(one, done, cases, others).text() for one in SAVED), "")
    titles = (one.title.partition(",")[0] for one in SAVED)
    return [
        "Of the total cost, %, against:",
        grid((head, *others), by_case),
        f"Of each, %, over all {head}; the last column is of the sums over all draws:",
        grid(("against", *titles, "total, of the sums"), (*every, last)),
    ]


write_runs = partial(sheets.write_runs, unsteady=UNSTEADY)


def draws_text(count: int) -> str:
    """How many there were."""
    return f"{count} draws" if count > 1 else "one draw, so that there are no intervals"
