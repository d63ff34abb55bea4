"""When a week counts as drifted, and when sharing is switched off: documented limits, and nothing but the past."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jobcast.domain.switches import Switch
from jobcast.pipelines.lifecycle.rows import ArrivalRows
from jobcast.pipelines.lifecycle.stability import PSI_LIMIT
from jobcast.pipelines.wording import counted, number, share

STEADY, WATCH, DRIFTED = "steady", "watch", "drifted"
DAY_S = 86400.0
LEAST_ARRIVALS = 20
"""Windows with arrivals that a miss rate needs to count."""


@dataclass(frozen=True, slots=True)
class Limit:
    """From which excess on a figure is to be watched, and from which on it has drifted.

    Attributes
    ----------
    figure : its name
    excess : (figures of a block, what is nominal) -> how far it is off; None = no telling
    watch, drifted : limits of the excess
    """

    figure: str
    excess: Callable[[Mapping[str, Any], Mapping[str, float]], float | None]
    watch: float
    drifted: float

    def verdict(self, figures: Mapping[str, Any], nominal: Mapping[str, float]) -> str:
        """Steady, watch or drifted."""
        off = self.excess(figures, nominal)
        if off is None or off <= self.watch:
            return STEADY
        return WATCH if off <= self.drifted else DRIFTED


def _plain(figure: str) -> Callable[..., float | None]:
    return lambda figures, nominal: figures.get(figure)


def _size(figure: str) -> Callable[..., float | None]:
    return lambda figures, nominal: None if figures.get(figure) is None else abs(figures[figure])


def _above(figure: str, sign: float = 1.0) -> Callable[..., float | None]:
    """How far a figure lies above what is nominal (below, with sign -1)."""

    def excess(figures: Mapping[str, Any], nominal: Mapping[str, float]) -> float | None:
        if figures.get(figure) is None or figure not in nominal:
            return None
        return float(sign * (figures[figure] - nominal[figure]))

    return excess


LIMITS: Mapping[str, tuple[Limit, ...]] = {
    "will-jobs-arrive": (
        Limit("ece", _plain("ece"), 0.06, 0.12),
        Limit("bias", _size("bias"), 0.05, 0.10),
        Limit("miss_rate", _above("miss_rate"), 0.025, 0.05),
    ),
    "new-load": (Limit("coverage", _above("coverage", -1.0), 0.02, 0.05),),
    "job-duration": (
        Limit("accuracy", _above("accuracy", -1.0), 0.05, 0.10),
        Limit("log_loss", _above("log_loss"), 0.10, 0.25),
    ),
}
"""Of calibration error, of |mean forecast - base rate|, and of the distance to what is nominal: the gate's miss share,
the estimate's coverage, the accuracy and log loss of the version's own validation."""


def judge(
    predictor: str, blocks: Mapping[str, Mapping[str, Any]], nominal: Mapping[str, float], inputs: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Verdict of a week and what it rests on.

    Parameters
    ----------
    blocks : figures by horizon
    nominal : figure -> what the version promises
    inputs : `feature`, `psi` of the column that moved most beyond what its training weeks did, if any
    """
    found: list[tuple[str, str]] = []
    for block, figures in blocks.items():
        for limit in LIMITS[predictor]:
            verdict = limit.verdict(figures, nominal)
            if verdict != STEADY:
                beside = f" (nominal {number(nominal[limit.figure])})" if limit.figure in nominal else ""
                found.append((verdict, f"{block} {limit.figure} {number(figures[limit.figure])}{beside}"))
    if inputs.get("moved"):
        found.append((WATCH, f"{counted(len(inputs['moved']), 'input')} moved, {inputs['feature']} most"))
    verdicts = {verdict for verdict, _ in found}
    worst = next((verdict for verdict in (DRIFTED, WATCH) if verdict in verdicts), STEADY)
    return worst, [reason for _, reason in found]


def moved_inputs(psi: Mapping[str, float], usual: Mapping[str, float]) -> list[str]:
    """Columns that moved by more than the limit and more than between the weeks of training, most moved first."""
    moved = [name for name, value in psi.items() if value > max(PSI_LIMIT, usual.get(name, 0.0))]
    return sorted(moved, key=lambda name: (-psi[name], name))


@dataclass(frozen=True, slots=True)
class SwitchRule:
    """Sharing of a pool and horizon is off from the end of a week on where the gate missed too much until then.

    Attributes
    ----------
    most_missed : share of the windows with arrivals that the gate may have missed in the last `days`
    days : how far back it looks
    least_arrivals : windows with arrivals that it needs; with fewer there is no telling, and sharing is on
    """

    most_missed: float = 0.5
    days: float = 14.0
    least_arrivals: int = LEAST_ARRIVALS

    def sharing(self, rows: ArrivalRows, at_s: float) -> bool:
        """What holds from an instant on, by windows that had ended by then; rows of one pool and horizon."""
        seen = (rows.known_s <= at_s) & (rows.time_s >= at_s - DAY_S * self.days) & rows.arrives
        count = int(seen.sum())
        if count < self.least_arrivals:
            return True
        return float((~rows.passed[seen]).mean()) <= self.most_missed

    def to_dict(self) -> dict[str, Any]:
        """For results."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"off where the gate missed more than {share(self.most_missed)} of at least {self.least_arrivals} windows "
            f"with arrivals in the last {number(self.days)} days"
        )


def switches_of(
    rows: Mapping[float, ArrivalRows], ends_s: Sequence[float], rule: SwitchRule, pools: Sequence[str]
) -> list[Switch]:
    """Changes of sharing at the ends of completed weeks.

    Parameters
    ----------
    rows : horizon in minutes -> rows of all pools
    ends_s : of the completed weeks, ascending; the row of an end follows from what had been observed by then
    """
    found = []
    for horizon_min, of_all in rows.items():
        for pool in pools:
            mine, state = of_all.of(np.asarray(of_all.pool == pool)), True
            for end_s in ends_s:
                sharing = rule.sharing(mine, end_s)
                if sharing != state:
                    found.append(Switch(pool, horizon_min, end_s, sharing))
                state = sharing
    return sorted(found)
