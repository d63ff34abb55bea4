"""Rows of a backtest, windows and seeds of one configuration put together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PLAIN_POLICY = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """One configuration over all its windows and seeds.

    Attributes
    ----------
    label, policy : what it is called in tables, and its policy
    kind : its forecasts as they were asked for, None for a policy that uses none
    runs : number of simulations
    figures : geometric means of geometric means, the worst of the worst, means of the rest; None = unknown
    """

    label: str
    policy: str
    kind: str | None
    runs: int
    figures: Mapping[str, float | None]

    @property
    def source(self) -> str:
        """Where its forecasts come from, without alias, versions or algorithm: the first word of `kind`.

        >>> Summary("sia registry (lightgbm)", "sia", "registry (lightgbm)", 1, {}).source
        'registry'
        """
        return (self.kind or "").partition(":")[0].partition(" ")[0]

    @property
    def forecasts(self) -> str:
        """What tells it from other configurations of its policy."""
        told = self.label.removeprefix(self.policy).strip() if self.label.startswith(self.policy) else self.label
        return told or self.kind or PLAIN_POLICY

    def get(self, figure: str) -> float | None:
        """A figure, None where it is unknown."""
        return self.figures.get(figure)


def summaries(rows: Sequence[Mapping[str, Any]]) -> list[Summary]:
    """One summary a label, in order of appearance.

    >>> rows = [{"label": "sia", "policy": "sia", "speedup_gmean": s, "slowdown_max_min": s} for s in (1.0, 4.0)]
    >>> summaries(rows)[0].figures
    {'speedup_gmean': 2.0, 'slowdown_max_min': 4.0}
    """
    labels: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        policy, kind = str(row["policy"]), row.get("forecasts")
        labels.setdefault(str(row.get("label") or " ".join(filter(None, (policy, kind)))), []).append(row)
    return [_summary(label, group) for label, group in labels.items()]


def _summary(label: str, group: Sequence[Mapping[str, Any]]) -> Summary:
    first = group[0]
    names = [key for key, value in first.items() if _is_figure(key, value)]
    figures = {name: _together(name, [row.get(name) for row in group]) for name in names}
    runs = sum(int(row.get("runs", 1)) for row in group)
    return Summary(label, str(first["policy"]), first.get("forecasts"), runs, figures)


def _is_figure(key: str, value: Any) -> bool:
    if key in ("label", "policy", "forecasts", "seed", "window", "runs") or isinstance(value, bool):
        return False
    return value is None or isinstance(value, int | float)


def _together(name: str, values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    if name.startswith("speedup_g"):
        return math.exp(math.fsum(map(math.log, known)) / len(known))
    return max(known) if name.endswith("_max_min") else math.fsum(known) / len(known)
