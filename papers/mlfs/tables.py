"""Tables of runs of jobs of tasks: a row a policy; claims of the paper beside them."""

from collections.abc import Iterable, Sequence
from functools import partial

from papers import sheets
from papers.mlfs.measures import (
    OVERHEAD,
    SHOWN,
    By,
    Groups,
    Measure,
    Printed,
    compare_order,
    gain_pct,
    order_text,
)
from papers.runs import Means
from papers.sheets import Claim, grid, number

MOST_PAIRS = 4
"""Pairs out of order that are named."""
UNSTEADY = ("decision_ms_mean", "cpu_s")
"""Seconds of a machine differ from run to run."""


def of_case(found: Means, case: str) -> By:
    """Figures by policy."""
    return {name: figures for (of, name), figures in found.items() if of == case}


def by_policy(found: By, measures: Sequence[Measure] = SHOWN) -> str:
    """Means over draws."""
    head = ("policy", *(one.title for one in measures))
    return grid(head, ((name, *(one.text(figures) for one in measures)) for name, figures in found.items()))


def order_claim(case: str, measure: Measure, groups: Groups, found: By) -> Claim | None:
    """An order of the paper; None where fewer than two of its groups were run."""
    told = compare_order(measure, groups, found)
    if not told.pairs:
        return None
    named = [f"{worse} before {better}" for better, worse in told.reversed[:MOST_PAIRS]]
    more = len(told.reversed) - len(named)
    here = f"{told.pairs - len(told.reversed)} of {told.pairs} pairs"
    if named:
        here += "; not: " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
    said = order_text(measure, groups, list(found))
    return Claim(f"{case}: order by {measure.title.partition(',')[0]}", said, here, not told.reversed)


def gain_claims(case: str, printed: Iterable[Printed], found: By, *, real: bool) -> list[Claim]:
    """Relative changes that the paper prints, of the policies that were run."""
    made = []
    for one in printed:
        if one.better in found and one.worse in found:
            here = gain_pct(one.measure, found[one.better], found[one.worse])
            said = one.measure.title.partition(",")[0]
            paper = one.real_pct if real else one.simulated_pct
            text = f"{case}: {one.better} improves {one.worse} in {said} by"
            made.append(Claim(text, f"{paper:g} %", f"{number(here, 1)} %", here > 0))
    return made


def overhead_claims(case: str, printed: dict[str, int], found: By) -> list[Claim]:
    """Milliseconds of a decision."""
    return [
        Claim(f"{case}: a decision of {name}", f"{ms} ms", f"{OVERHEAD.text(found[name])} ms")
        for name, ms in printed.items()
        if name in found
    ]


write_runs = partial(sheets.write_runs, unsteady=UNSTEADY)


def noted(notes: Sequence[str]) -> list[str]:
    """Lines on who is left out, as a list."""
    return ["\n".join(f"- {note}" for note in notes)] if notes else []
