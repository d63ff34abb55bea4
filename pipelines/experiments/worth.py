"""What forecasts are worth to a scheduler: today's by predictor, what better ones would add, how wrong they may be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from math import factorial
from statistics import fmean
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.experiments.backtest import CellResult
from jobcast.pipelines.experiments.forecast_specs import PARTS, ForecastSpec, parse_forecasts
from jobcast.schedulers.policies import PolicySpec

NONE, EXACT = "conservative", "oracle"
"""Nothing is forecast: jobs always come, loads are quotas, nobody is told of durations; and what comes, exactly."""
NOISE = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of answers that are wrong, on a ladder."""
HARM_PCT = 1.0
"""Jobs slowed, in percent, that the gate of the main job allows."""
Value = Mapping[str, float]
"""What a simulation brought: hours and GPU-hours saved a week, and the share of jobs slowed."""


def parts_of(rule: PolicySpec) -> tuple[str, ...]:
    """What a policy asks of forecasts, of `PARTS`. Raises ConfigError for one that asks none of them."""
    parts = tuple(part for part in PARTS if part in rule.asks)
    if not parts:
        raise ConfigError(
            f"--policies {rule.name}: asks nothing of {', '.join(PARTS)}; name one that does, such as sia"
        )
    return parts


def mixed(parts: Sequence[str], sources: Mapping[str, str], rest: str) -> ForecastSpec:
    """A source of each part, `rest` of those that `sources` does not name.

    >>> mixed(("arrivals", "durations"), {"durations": "oracle"}, "registry").label
    'mixed:arrivals=registry,durations=oracle'
    """
    return parse_forecasts("mixed:" + ",".join(f"{part}={sources.get(part, rest)}" for part in parts))


def specs_of(parts: Sequence[str], now: str) -> dict[str, ForecastSpec]:
    """All sources that `worth` needs, by label: corners of two cubes, from nothing to now and from now to exact, and
    the ladders of noise, one part on its ladder and the others as now."""
    cubes = [
        mixed(parts, dict.fromkeys(some, high), low)
        for low, high in ((NONE, now), (now, EXACT))
        for some in _subsets(parts)
    ]
    ladders = [mixed(parts, {part: f"noisy:{p:g}"}, now) for part in parts for p in NOISE]
    return {spec.label: spec for spec in (*cubes, *ladders, *(mixed(parts, {part: NONE}, now) for part in parts))}


def _subsets(parts: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (some for size in range(len(parts) + 1) for some in combinations(parts, size))


def values_of(results: Iterable[CellResult]) -> dict[str, Value]:
    """What each source brought, the mean over seeds, by the label of the source.

    Raises ConfigError where less than a day is counted, or nobody ran, of which no week's hours can be told.
    """
    found: dict[str, list[Value]] = {}
    for one in results:
        row = one.row()
        if row["saved_h_week"] is None:
            raise ConfigError(
                f"{one.days:.3g} days are counted, too few to tell hours a week; widen --from and --until, or lower"
                " --warmup"
            )
        found.setdefault(one.cell.spec.label, []).append(
            {
                "saved_h_week": float(row["saved_h_week"]),
                "saved_gpu_h_week": float(row["saved_gpu_h_week"]),
                "slowed_pct": float(row["figures"]["slowed_pct"]),
            }
        )
    return {label: {name: fmean(one[name] for one in rows) for name in rows[0]} for label, rows in found.items()}


def shapley(parts: Sequence[str], value: Callable[[tuple[str, ...]], float]) -> dict[str, float]:
    """Each part's share of `value(parts) - value(())`: what it adds, the mean over all orders in which they come.

    Shapley, "A value for n-person games", 1953. The shares add up to the whole.

    >>> shapley(("a", "b"), lambda some: 10.0 * ("a" in some) + 4.0 * (len(some) == 2))
    {'a': 12.0, 'b': 2.0}
    """
    count = len(parts)
    shares = {}
    for part in parts:
        others = tuple(one for one in parts if one != part)
        shares[part] = sum(
            factorial(len(some)) * factorial(count - len(some) - 1) / factorial(count)
            * (value(tuple(one for one in parts if one in (*some, part))) - value(some))
            for some in _subsets(others)
        )  # fmt: skip
    return shares


def worth(
    parts: Sequence[str], now: str, values: Mapping[str, Value], measure: str = "saved_gpu_h_week"
) -> dict[str, Any]:
    """What each part of the forecasts is worth to one policy.

    Parameters
    ----------
    parts : what the policy asks
    now : the source in use
    values : of every spec of `specs_of`, by label
    measure : of the shares

    Returns
    -------
    dict
        `none`, `now`, `exact` : values without forecasts, with those in use, and with exact ones.
        `parts` : for each its share of what those in use bring (`worth`), its share of what exact ones would add
        (`headroom`), the `ladder` of noise (share of wrong answers -> value, the others as now), `break_even`: the
        share of wrong answers from which on nothing at all would serve as well, None where none of the ladder does,
        and `harmless_until`: the one from which on more than `HARM_PCT` % of jobs are slowed.
    """

    def value(low: str, high: str) -> Callable[[tuple[str, ...]], float]:
        return lambda some: values[mixed(parts, dict.fromkeys(some, high), low).label][measure]

    today, rest = shapley(parts, value(NONE, now)), shapley(parts, value(now, EXACT))
    rows = []
    for part in parts:
        rungs = {0.0: EXACT} | {p: f"noisy:{p:g}" for p in NOISE}
        ladder = [{"wrong": p, **values[mixed(parts, {part: source}, now).label]} for p, source in rungs.items()]
        without = values[mixed(parts, {part: NONE}, now).label][measure]
        rows.append(
            {
                "part": part,
                "worth": today[part],
                "headroom": rest[part],
                "without": without,
                "break_even": break_even([(one["wrong"], one[measure]) for one in ladder], without),
                "harmless_until": break_even([(one["wrong"], -one["slowed_pct"]) for one in ladder], -HARM_PCT),
                "ladder": ladder,
            }
        )
    corners = ((NONE, NONE), ("now", now), ("exact", EXACT))
    return {name if name != NONE else "none": values[mixed(parts, {}, source).label] for name, source in corners} | {
        "parts": rows
    }


def break_even(ladder: Sequence[tuple[float, float]], least: float) -> float | None:
    """Where a falling ladder first meets a value, by straight lines between its rungs; None where it stays above.

    >>> break_even([(0.0, 10.0), (0.2, 6.0), (0.4, 2.0)], 4.0), break_even([(0.0, 10.0)], 4.0)
    (0.3, None)
    """
    if ladder[0][1] <= least:
        return 0.0
    for (left, above), (right, below) in pairwise(ladder):
        if below <= least:
            return round(left + (right - left) * (above - least) / (above - below), 6)
    return None
