"""What is measured of runs against FCFS, how spreads over draws are printed, and how runs compare draw by draw."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import wilcoxon

from papers.results import Done, Floats, Measure, grid, number

BOOTSTRAPS = 2000
INTERVAL = (2.5, 97.5)

GMEAN = Measure("speedup_gmean", "speedup, geometric mean")
MEAN = Measure("speedup_mean", "speedup, mean", 1)
RATIO = Measure("jct_ratio", "mean JCT of fcfs / mean JCT")
P5 = Measure("speedup_p5", "speedup, p5")
P90, P95, P99 = (Measure(f"speedup_p{at}", f"speedup, p{at}", 1) for at in (90, 95, 99))
SLOWED = Measure("slowed_pct", "slowed, %", log=False)
TOTAL = Measure("slowdown_total_min", "slowdown, min in all", 0)
WORST = Measure("slowdown_max_min", "worst slowdown, min", 1)
WAIT = Measure("mean_wait_s", "mean wait, s", 0)
CPU = Measure("cpu_s", "s of CPU")
STOPS = Measure("preemptions", "times stopped", 0)
GAP = Measure("milp_gap", "gap of the MILP")
SOLVE = Measure("milp_solve_s", "s to solve")


def spread(values: Floats, digits: int) -> str:
    """Median and range over draws.

    >>> spread(np.array([1.0, 4.0, 2.0]), 1)
    '2.0 (1.0 to 4.0)'
    """
    if len(values) == 1 or values.min() == values.max():
        return number(float(values[0]), digits)
    return f"{number(float(np.median(values)), digits)} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def table(done: Sequence[Done], head: str, measures: Sequence[Measure]) -> str:
    """Medians and ranges over draws: a row a case and policy."""
    keys = list(dict.fromkeys((one.case, one.name) for one in done))
    rows = ((case, name, *(spread(one.of(done, case, name), one.digits) for one in measures)) for case, name in keys)
    return grid((head, "policy", *(one.title for one in measures)), rows)


def median(measure: Measure, done: Sequence[Done], case: str, name: str) -> float:
    """Median over draws."""
    return float(np.median(measure.of(done, case, name)))


def mean(measure: Measure, done: Sequence[Done], case: str, name: str) -> float:
    """Mean over draws."""
    return float(measure.of(done, case, name).mean())


def times_less(ours: float, theirs: float) -> float:
    """How many times less ours is than theirs: infinite where there is nothing of ours, 1 where of neither.

    >>> times_less(2.0, 8.0), times_less(0.0, 8.0), times_less(0.0, 0.0)
    (4.0, inf, 1.0)
    """
    if ours > 0:
        return theirs / ours
    return float("inf") if theirs > 0 else 1.0


def times_text(times: float) -> str:
    """In words.

    >>> times_text(1234.5), times_text(float("inf"))
    ('1,234', 'all of it')
    """
    return f"{times:,.0f}" if np.isfinite(times) else "all of it"


def paired_text(ours: Floats, theirs: Floats) -> str:
    """Geometric mean over draws of ours / theirs, and its 95 % interval by drawing draws with replacement.

    >>> paired_text(np.array([2.0, 8.0]), np.array([1.0, 4.0]))
    '2.00 (2.00 to 2.00)'
    """
    log = np.log(ours / theirs)
    drawn = np.random.default_rng(0).integers(0, len(log), (BOOTSTRAPS, len(log)))
    low, high = np.exp(np.percentile(log[drawn].mean(axis=1), INTERVAL))
    return f"{np.exp(log.mean()):.2f} ({low:.2f} to {high:.2f})"


def paired_table(done: Sequence[Done], head: str, ours: str) -> str:
    """One policy beside the others draw by draw: a row a case and other.

    Of speedups the ratio, see `paired_text`; of minutes lost the share of draws in which it costs less, and p of
    Wilcoxon's signed ranks that neither costs more.
    """
    keys = dict.fromkeys((one.case, one.name) for one in done if one.name != ours)
    rows = []
    for case, other in keys:
        pairs = {one: (one.of(done, case, ours), one.of(done, case, other)) for one in (GMEAN, MEAN, TOTAL)}
        less = pairs[TOTAL][0] - pairs[TOTAL][1]
        p = wilcoxon(less).pvalue if less.any() else 1.0
        ratios = (paired_text(*pairs[one]) for one in (GMEAN, MEAN))
        rows.append((case, other, *ratios, f"{100 * np.mean(less < 0):.0f}", f"{p:.2g}"))
    return grid(
        (head, f"{ours} against", "x its speedup, geometric", "arithmetic", "loses less, % of draws", "p"), rows
    )
