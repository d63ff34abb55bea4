"""Rows of a backtest, windows and seeds of one configuration put together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from jobcast.domain.law import RUNTIME
from jobcast.schedulers.policies import POOL

PLAIN_POLICY = ""
SAVED = ("saved_h_week", "saved_gpu_h_week")
"""What a row tells beside the figures of its run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One configuration over all its windows and seeds.

    Attributes
    ----------
    label, policy : what it is called in tables, and its policy
    kind : its forecasts as they were asked for, None for a policy that uses none
    runs : number of simulations
    figures : geometric means of geometric means, the worst of the worst, means of the rest; None = unknown
    future : whether its forecasts read the trace's future, which nobody has
    law : how jobs progressed
    scope : pool, or cluster for a policy that ignores quotas
    preempts : whether the policy stops jobs that run
    versions : that answered, by predictor
    """

    label: str
    policy: str
    kind: str | None
    runs: int
    figures: Mapping[str, float | None]
    future: bool = False
    law: str = RUNTIME
    scope: str = POOL
    preempts: bool = False
    versions: Mapping[str, int] = field(default_factory=dict)

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

    >>> told = [{"speedup_gmean": s, "slowdown_max_min": s} for s in (1.0, 4.0)]
    >>> summaries([{"label": "sia", "policy": "sia", "forecasts": None, "figures": one} for one in told])[0].figures
    {'speedup_gmean': 2.0, 'slowdown_max_min': 4.0}
    """
    labels: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        labels.setdefault(row["label"], []).append(row)
    return [_summary(label, group) for label, group in labels.items()]


def by_law(known: Sequence[Summary], baseline: str) -> dict[str, list[Summary]]:
    """Configurations by how jobs progressed, the baseline's law first; in each those with the least mean JCT first."""
    home = next((one.law for one in known if one.label == baseline), None)
    ranked = sorted(known, key=lambda one: (one.law != home, one.law, one.get("mean_jct_s") or math.inf))
    return {law: list(group) for law, group in groupby(ranked, key=lambda one: one.law)}


def by_lack(skipped: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """What is lacking -> the policies that lack it.

    >>> by_lack([{"policy": "edf", "lacks": "watts"}, {"policy": "ps", "lacks": "policy ps: watts"}])
    {'watts': ['edf', 'ps']}
    """
    found: dict[str, list[str]] = {}
    for one in skipped:
        found.setdefault(one["lacks"].removeprefix(f"policy {one['policy']}: "), []).append(one["policy"])
    return {lack: list(dict.fromkeys(policies)) for lack, policies in found.items()}


def _summary(label: str, group: Sequence[Mapping[str, Any]]) -> Summary:
    first = group[0]
    told = [row["figures"] | {key: row.get(key) for key in SAVED if key in row} for row in group]
    names = [key for key, value in told[0].items() if _is_figure(value)]
    figures = {name: _together(name, [one.get(name) for one in told]) for name in names}
    rest = {key: first[key] for key in ("future", "law", "scope", "preempts", "versions") if key in first}
    return Summary(label, first["policy"], first["forecasts"], len(group), figures, **rest)


def _is_figure(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _together(name: str, values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    if name.startswith("speedup_g"):
        return math.exp(math.fsum(map(math.log, known)) / len(known))
    return max(known) if name.endswith("_max_min") else math.fsum(known) / len(known)
