"""What is compared, and what the paper says of it: orders of policies and relative changes (MLFS, section 4.2.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from papers.mlfs.bench import UNDER
from papers.mlfs.rows import GANDIVA, HYPERSCHED, MLF_H, MLF_RL, MLFS, RL, SLAQ, TENSORFLOW, TIRESIAS
from papers.results import By, Claim, Done, Interval, Means, Measure, interval_of, number, of_case, read_rows

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
MEASURES = {one.key: one for one in (*SHOWN, URGENT, OVERLOADS)}


def _orders(load: str) -> dict[Measure, Groups]:
    rows = [row for row in read_rows(Path(__file__).with_name("orders.csv")) if row["load"] == load]
    groups = [tuple(tuple(group.split(" ~ ")) for group in row["order"].split(" > ")) for row in rows]
    return {MEASURES[row["measure"]]: of for row, of in zip(rows, groups, strict=True)}


ORDERS = {load: _orders(load) for load in ("most", "least")}
"""By load. Accuracies differ: the text tells that SLAQ falls behind those that cut JCT at higher ones."""
PRINTED = read_rows(Path(__file__).with_name("printed.csv"))
"""By how much a policy is better than another at the highest load (x = 3 on 20 servers, 4 in simulation) and at the
lowest (x = 1/4 and 1/2)."""
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


def compare_order(measure: Measure, groups: Groups, found: By) -> tuple[int, list[tuple[str, str]]]:
    """How many pairs of policies of two groups were run, and those that are not in the order of their groups."""
    pairs = [
        (better, worse)
        for at, group in enumerate(groups)
        for better in group
        for later in groups[at + 1 :]
        for worse in later
        if better in found and worse in found
    ]
    sign, key = (1.0 if measure.lower else -1.0), measure.key
    return len(pairs), [(b, w) for b, w in pairs if sign * (found[w][key] - found[b][key]) <= SAME]


def order_text(measure: Measure, groups: Groups, found: Sequence[str]) -> str:
    """An order in signs, of the policies that were run."""
    sign = " < " if measure.lower else " > "
    kept = [[name for name in group if name in found] for group in groups]
    return sign.join(" ~ ".join(group) for group in kept if group)


def load_claims(least: str, most: str, found: Means, *, real: bool) -> list[Claim]:
    """Orders and relative changes at the highest and the lowest load; `real`: those that are printed of 20 servers."""
    loads = {"most": (most, of_case(found, most)), "least": (least, of_case(found, least))}
    orders = [
        order_claim(case, measure, groups, by)
        for load, (case, by) in loads.items()
        for measure, groups in ORDERS[load].items()
        if compare_order(measure, groups, by)[0]
    ]
    return [*orders, *(one for load, (case, by) in loads.items() for one in gain_claims(case, load, by, real=real))]


def order_claim(case: str, measure: Measure, groups: Groups, found: By) -> Claim:
    """An order of the paper, of the policies that were run."""
    pairs, wrong = compare_order(measure, groups, found)
    named = [f"{worse} before {better}" for better, worse in wrong[:MOST_PAIRS]]
    more = len(wrong) - len(named)
    here = f"{pairs - len(wrong)} of {pairs} pairs"
    if named:
        here += "; not: " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
    return Claim(f"{case}: order by {measure.word}", order_text(measure, groups, list(found)), here, not wrong)


def gain_claims(case: str, load: str, found: By, *, real: bool) -> list[Claim]:
    """Relative changes that the paper prints, of the policies that were run."""
    made = []
    for row in PRINTED:
        better, worse, measure = row["better"], row["worse"], MEASURES[row["measure"]]
        if row["load"] == load and better in found and worse in found:
            here = gain_pct(measure, found[better], found[worse])
            paper = float(row["real_pct" if real else "simulated_pct"])
            text = f"{case}: {better} improves {worse} in {measure.word} by"
            made.append(Claim(text, f"{paper:g} %", f"{number(here, 1)} %", here > 0))
    return made


def overhead_claims(case: str, printed: Mapping[str, int], found: By) -> list[Claim]:
    """Milliseconds of a decision."""
    return [
        Claim(f"{case}: a decision of {name}", f"{ms} ms", f"{OVERHEAD.text(found[name])} ms")
        for name, ms in printed.items()
        if name in found
    ]
