"""What is compared, and what the paper says of it: orders of policies and relative changes (MLFS, section 4.2.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from papers.mlfs.bench import UNDER
from papers.mlfs.rows import GANDIVA, GRAPHENE, HYPERSCHED, MLF_H, MLF_RL, MLFS, RL, SLAQ, TENSORFLOW, TIRESIAS
from papers.page import Claim, number, read_printed
from papers.runs import By, Done, Interval, Means, Measure, interval_of, of_case

Groups = tuple[tuple[str, ...], ...]
"""Policies from the best on; those of one group are about equal."""
SAME = 1e-9
MOST_PAIRS = 4
"""Pairs out of order that are named."""

MAKESPAN = Measure("makespan_s", "makespan, h", 1, 1 / 3600)
JCT = Measure("mean_jct_s", "mean JCT, min", 1, 1 / 60)
SHORT = Measure(UNDER, "JCT < 100 min, %", 1, 100, lower=False)
DEADLINE = Measure("deadline_ratio", "deadline ratio, %", 1, 100, lower=False)
URGENT = Measure("urgent_deadline_ratio", "deadline ratio of urgent jobs, %", 1, 100, lower=False)
WAIT = Measure("mean_wait_s", "mean waiting time, min", 1, 1 / 60)
ACCURACY = Measure("accuracy_mean", "accuracy by deadline", 3, lower=False)
ACCURATE = Measure("accuracy_ratio", "accuracy ratio, %", 1, 100, lower=False)
BANDWIDTH = Measure("bandwidth_tb", "bandwidth, TB", 0)
OVERHEAD = Measure("decision_ms_mean", "decision, ms")
OVERLOADS = Measure("overloads", "overloads", 0)
SHOWN = (MAKESPAN, JCT, SHORT, DEADLINE, WAIT, ACCURACY, ACCURATE, BANDWIDTH, OVERHEAD)

OURS: Groups = ((MLFS,), (MLF_RL,), (MLF_H,))
_JCT: Groups = (*OURS, (GRAPHENE,), (TIRESIAS, HYPERSCHED, RL, GANDIVA), (TENSORFLOW,), (SLAQ,))
LEAST_LOADED: Groups = (*OURS, (HYPERSCHED,), (SLAQ,), (TIRESIAS, RL, GRAPHENE), (GANDIVA, TENSORFLOW))
_LOADED: Groups = (*OURS, (HYPERSCHED,), (TIRESIAS, RL, GRAPHENE), (SLAQ,), (GANDIVA, TENSORFLOW))
"""Accuracies at the lowest load, and at higher ones; the text tells that SLAQ falls behind those that cut JCT."""
ORDERS: dict[Measure, Groups] = {
    JCT: _JCT,
    DEADLINE: (*OURS, (HYPERSCHED,), (GRAPHENE,), (TIRESIAS, RL, GANDIVA), (TENSORFLOW,), (SLAQ,)),
    WAIT: _JCT,
    ACCURACY: _LOADED,
    ACCURATE: _LOADED,
    BANDWIDTH: ((MLFS,), (MLF_RL,), (MLF_H, TENSORFLOW, GRAPHENE, TIRESIAS, HYPERSCHED, SLAQ, RL), (GANDIVA,)),
    OVERHEAD: (
        (GANDIVA,), (TENSORFLOW,), (TIRESIAS,), (GRAPHENE,), (HYPERSCHED,), (SLAQ,), (RL, MLF_RL), (MLF_H,), (MLFS,),
    ),
}  # fmt: skip
AT_LEAST = {one: LEAST_LOADED if one.key.startswith("accuracy") else groups for one, groups in ORDERS.items()}
"""Orders at the lowest load."""


@dataclass(frozen=True, slots=True)
class Printed:
    """By how much the paper says that a policy is better than another: on 20 servers, and in simulation."""

    measure: Measure
    better: str
    worse: str
    real_pct: float
    simulated_pct: float


def _printed(load: str) -> tuple[Printed, ...]:
    measures = {one.key: one for one in SHOWN}
    rows = [row for row in read_printed(__file__, "printed.csv") if row["load"] == load]
    told = [(float(row["real_pct"]), float(row["simulated_pct"])) for row in rows]
    return tuple(
        Printed(measures[row["measure"]], row["better"], row["worse"], *pct)
        for row, pct in zip(rows, told, strict=True)
    )


PRINTED, PRINTED_LEAST = _printed("most"), _printed("least")
"""At x = 3 on 20 servers and 4 in simulation, and at x = 1/4 and 1/2."""
PRINTED_MS = {
    MLFS: 54, MLF_RL: 49, MLF_H: 40, GANDIVA: 23, TENSORFLOW: 28, TIRESIAS: 35, HYPERSCHED: 38, SLAQ: 40, RL: 49,
}  # fmt: skip
"""A decision at 1,860 jobs, ms."""


def gain_pct(measure: Measure, better: Mapping[str, float], worse: Mapping[str, float]) -> float:
    """By how much one is better than another, as the paper takes it: |y - z| / z in %, below 0 where it is worse.

    >>> gain_pct(JCT, {"mean_jct_s": 50.0}, {"mean_jct_s": 100.0})
    50.0
    """
    y, z = better[measure.key], worse[measure.key]
    return 100.0 * (z - y if measure.lower else y - z) / z if z else float("nan")


def relative(measure: Measure, done: Sequence[Done], case: str, better: str, worse: str) -> Interval:
    """By how much one is better than another in the geometric mean over draws, %; NaN where a value is not above 0.

    The interval is that of the mean difference of logarithms, draw by draw.
    """
    y, z = (measure.of(done, case, name) for name in (better, worse))
    nan = float("nan")
    if not ((y > 0).all() and (z > 0).all()):
        return Interval(nan, nan, nan)
    logs = interval_of(np.log(y / z))
    # Less is better: the upper end of the ratio is the lower end of what is gained.
    if measure.lower:
        return Interval(*(float(-100 * np.expm1(value)) for value in (logs.mean, logs.high, logs.low)))
    return Interval(*(float(100 * np.expm1(value)) for value in (logs.mean, logs.low, logs.high)))


def apart(measure: Measure, done: Sequence[Done], case: str, better: str, worse: str) -> Interval:
    """By how much one is better than another, in the unit that is printed: the mean difference draw by draw."""
    difference = measure.of(done, case, better) - measure.of(done, case, worse)
    return interval_of(-difference if measure.lower else difference)


@dataclass(frozen=True, slots=True)
class Ordered:
    """How an order of the paper came out: pairs of its groups, and those that are not in its order."""

    pairs: int
    reversed: tuple[tuple[str, str], ...]


def compare_order(measure: Measure, groups: Groups, found: By) -> Ordered:
    """Check each pair of policies of two groups, of those that were run."""
    pairs = [
        (better, worse)
        for at, group in enumerate(groups)
        for better in group
        for later in groups[at + 1 :]
        for worse in later
        if better in found and worse in found
    ]
    wrong = [(b, w) for b, w in pairs if not _before(measure, found[b][measure.key], found[w][measure.key])]
    return Ordered(len(pairs), tuple(wrong))


def _before(measure: Measure, better: float, worse: float) -> bool:
    return better < worse - SAME if measure.lower else better > worse + SAME


def order_text(measure: Measure, groups: Groups, found: Sequence[str]) -> str:
    """An order in signs, of the policies that were run."""
    sign = " < " if measure.lower else " > "
    kept = [[name for name in group if name in found] for group in groups]
    return sign.join(" ~ ".join(group) for group in kept if group)


def load_claims(least: str, most: str, found: Means, *, real: bool) -> list[Claim]:
    """Orders and relative changes at the highest and the lowest load; `real`: those that are printed of 20 servers."""
    low, high = of_case(found, least), of_case(found, most)
    orders = [*order_claims(most, ORDERS, high), *order_claims(least, AT_LEAST, low)]
    return [*orders, *gain_claims(most, PRINTED, high, real=real), *gain_claims(least, PRINTED_LEAST, low, real=real)]


def order_claims(case: str, orders: Mapping[Measure, Groups], found: By) -> list[Claim]:
    """Orders of the paper by measure, of the policies that were run."""
    made = (order_claim(case, measure, groups, found) for measure, groups in orders.items())
    return [one for one in made if one is not None]


def order_claim(case: str, measure: Measure, groups: Groups, found: By) -> Claim | None:
    """An order of the paper; None where fewer than two of its groups were run."""
    result = compare_order(measure, groups, found)
    if not result.pairs:
        return None
    named = [f"{worse} before {better}" for better, worse in result.reversed[:MOST_PAIRS]]
    more = len(result.reversed) - len(named)
    here = f"{result.pairs - len(result.reversed)} of {result.pairs} pairs"
    if named:
        here += "; not: " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
    said = order_text(measure, groups, list(found))
    return Claim(f"{case}: order by {measure.word}", said, here, not result.reversed)


def gain_claims(case: str, printed: Iterable[Printed], found: By, *, real: bool) -> list[Claim]:
    """Relative changes that the paper prints, of the policies that were run."""
    made = []
    for one in printed:
        if one.better in found and one.worse in found:
            here = gain_pct(one.measure, found[one.better], found[one.worse])
            paper = one.real_pct if real else one.simulated_pct
            text = f"{case}: {one.better} improves {one.worse} in {one.measure.word} by"
            made.append(Claim(text, f"{paper:g} %", f"{number(here, 1)} %", here > 0))
    return made


def overhead_claims(case: str, printed: Mapping[str, int], found: By) -> list[Claim]:
    """Milliseconds of a decision."""
    return [
        Claim(f"{case}: a decision of {name}", f"{ms} ms", f"{OVERHEAD.text(found[name])} ms")
        for name, ms in printed.items()
        if name in found
    ]
