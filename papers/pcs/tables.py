"""Tables of runs of elastic jobs: a row a policy, seconds as hours."""

from collections.abc import Mapping
from functools import partial

from papers import sheets
from papers.runs import Means
from papers.sheets import HOUR_S, grid, number

HEAD = (
    "policy", "mean JCT h", "x", "p90 JCT h", "p99 JCT h", "mean error %", "p90", "p99", "worst", "mean unfairness %",
    "p99", "worst", "mean, over time",
)  # fmt: skip
"""x: mean JCT relative to the lowest of the table."""


def by_policy(found: Means, case: str) -> str:
    """The policies of one case."""
    rows = of_case(found, case)
    lowest = min(figures["mean_jct_s"] for figures in rows.values())
    return grid(HEAD, (_line(name, figures, lowest) for name, figures in rows.items()))


def of_case(found: Means, case: str) -> dict[str, dict[str, float]]:
    """Figures by policy."""
    return {name: figures for (of, name), figures in found.items() if of == case}


def _line(name: str, figures: Mapping[str, float], lowest: float) -> tuple[str, ...]:
    jct = [number(figures[f"{measure}_jct_s"] / HOUR_S) for measure in ("mean", "p90", "p99")]
    error = [percent(figures[f"{measure}_error_pct"]) for measure in ("mean", "p90", "p99", "max")]
    unfair = [percent(figures[f"{measure}_unfairness_pct"]) for measure in ("mean", "p99", "max")]
    over_time = percent(figures["mean_unfairness_over_time_pct"])
    return (name, jct[0], number(figures["mean_jct_s"] / lowest), *jct[1:], *error, *unfair, over_time)


def percent(value: float) -> str:
    """Three digits, or a whole number where it has more.

    >>> percent(0.1234), percent(12.34), percent(12345.6)
    ('0.12', '12.3', '12,346')
    """
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def share(value: float, digits: int = 0) -> str:
    """A share in percent.

    >>> share(0.25), share(-0.0004, 1)
    ('25 %', '0.0 %')
    """
    return f"{round(100 * value, digits) + 0.0:.{digits}f} %"


write_runs = partial(sheets.write_runs, unsteady=())
