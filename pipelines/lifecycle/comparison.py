"""Two versions on the same rows: figures beside each other, and the main one's difference with a paired interval.

When a version is worse than the one whose place it would take.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.evaluation.intervals import CONFIDENCE, DRAWS, DayDraws, Interval, days_of
from jobcast.pipelines.lifecycle.forecast_rows import Blocks
from jobcast.pipelines.report.formatting import number, percent, signed

Compared = dict[str, Any]


def compare_rows(ours: Blocks, theirs: Blocks, names: tuple[str, str]) -> Compared:
    """Figures of two versions on the same rows.

    Parameters
    ----------
    ours, theirs : rows by block; blocks that both hold are compared, those without rows are left out
    names : what to call the two, as keys

    Returns
    -------
    `figure`, the main one, and `less_is_better`; `blocks`: block -> the figures of each by name, and `difference` (of
    the main figure, the first less the second) with `interval`; `difference` and `interval` of its mean over blocks,
    None where it is undefined or, for the interval, too few days were seen.
    """
    blocks: Compared = {}
    drawn: list[tuple[DayDraws, Floats]] = []
    # Versions may forecast other horizons; those that both have are compared.
    for name in [name for name in ours if name in theirs and len(ours[name])]:
        mine, other = ours[name], theirs[name]
        # Whole days are drawn, the same for both: what they share cancels out.
        days = DayDraws(days_of(mine.time_s), DRAWS, 0)
        differences = mine.main_draws(days) - other.main_draws(days)
        figures = mine.figures(), other.figures()
        blocks[name] = {
            **dict(zip(names, figures, strict=True)),
            "difference": _difference(figures[0][mine.MAIN], figures[1][mine.MAIN]),
            "interval": days.interval(differences),
        }
        drawn.append((days, differences))
    kind = next(iter(ours.values()))
    known = [block["difference"] for block in blocks.values() if block["difference"] is not None]
    return {
        "figure": kind.MAIN,
        "less_is_better": kind.MAIN_IS_LOSS,
        "blocks": blocks,
        "difference": float(np.mean(known)) if known else None,
        "interval": _mean_interval(drawn),
        "confidence": CONFIDENCE,
        "draws": DRAWS,
    }


def main_mean(compared: Mapping[str, Any], name: str) -> float | None:
    """Mean over the blocks of one version's main figure."""
    values = [block[name][compared["figure"]] for block in compared["blocks"].values()]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _mean_interval(drawn: Sequence[tuple[DayDraws, Floats]]) -> Interval:
    """Interval of the mean over blocks; draws in which a block is undefined do not count."""
    if not drawn:
        return None
    # The block with the fewest days decides whether there are enough for an interval.
    fewest = min((days for days, _ in drawn), key=lambda days: len(days.days))
    return fewest.interval(np.mean([differences for _, differences in drawn], axis=0))


CANDIDATE, CHAMPION = "candidate", "champion"
UNTOLD_SHARE = 0.05
"""Where too few days were seen for an interval, a main figure worse by this share of the champion's counts."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much worse a figure of a replay may be with a candidate than with the champion.

    Attributes
    ----------
    figure : as `simulate --json` names it
    label : of a line of a table
    said : what is wrong beyond it, {} for each version's figure
    points, share : what may be lost: in the figure's unit, and of the champion's
    more_is_worse : whether more of it is a loss
    show : the figure in words
    """

    figure: str
    label: str
    said: str
    points: float = 0.0
    share: float = 0.0
    more_is_worse: bool = True
    show: Callable[[float | None], str] = number

    def broken(self, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
        """What to say of a candidate that loses more, with both figures; nothing where either is not known."""
        mine, other = ours.get(self.figure), theirs.get(self.figure)
        if mine is None or other is None:
            return []
        # Shares are of the champion's figure, which may be negative.
        lost = mine - other if self.more_is_worse else other - mine
        worse = lost > self.points + self.share * abs(other)
        return [self.said.format(self.show(mine), self.show(other))] if worse else []

    def to_dict(self) -> dict[str, Any]:
        """For results."""
        return {"label": self.label, "points": self.points, "share": self.share, "more_is_worse": self.more_is_worse}


SLOWED = Bound("slowed_pct", "jobs slowed (%)", "slows {} of the jobs against {}", points=0.5, show=percent)
SPEEDUP = Bound("speedup_gmean", "speedup (geometric mean)", "speedup {} against {}", share=0.05, more_is_worse=False)
RULES = {
    "figure": "the main figure's mean over horizons is worse and its paired interval leaves no doubt",
    "figure_without_interval_share": UNTOLD_SHARE,
    "slowed_pct_more": SLOWED.points,
    "speedup_less_share": SPEEDUP.share,
}
"""What counts as worse, for results; what else does under other policies than `sia`, `lives.LIVES` says."""


def why_worse(figures: Mapping[str, Any]) -> list[str]:
    """In which way a candidate's main figure is worse, of `compare_rows`; empty where that is not beyond doubt."""
    difference, interval = figures["difference"], figures["interval"]
    if difference is None:
        return []
    # Above 0 where the candidate is worse.
    loss = difference if figures["less_is_better"] else -difference
    theirs = main_mean(figures, CHAMPION) or 0.0
    if interval is None:
        worse, text = loss > UNTOLD_SHARE * abs(theirs), "too few days for an interval"
    else:
        low, high = interval
        # The whole interval must lie on the wrong side: in doubt the candidate passes.
        worse = low > 0 if figures["less_is_better"] else high < 0
        text = f"{100 * figures['confidence']:g} % {signed(low)} to {signed(high)}"
    ours = number(main_mean(figures, CANDIDATE))
    return [f"{figures['figure']} {ours} against {number(theirs)} ({signed(difference)}, {text})"] if worse else []


def why_slower(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], bounds: Sequence[Bound] = (SLOWED, SPEEDUP)
) -> list[str]:
    """Each way in which jobs fare worse, of figures of one policy with two sets of versions."""
    return [reason for bound in bounds for reason in bound.broken(ours, theirs)]
