"""Intervals of completion times from futures, calibrated by where outcomes fell among the futures of their jobs.

The position of an outcome among the futures drawn of its job (its probability integral transform) is uniform where the
futures are right. Positions of past jobs say which quantiles of the futures to take as ends instead: a little beyond
the outermost where futures are too calm, well within them where they are too wild. Jobs that have not ended are known
to have outlived some of their futures: their positions are censored (Kaplan and Meier, 1958), so that a miss counts
from the instant at which a job outlives its upper end on, and long jobs are not overheard because short ones report
first. Jobs count the more, the more alike the shares of their futures that agree with the first one are (Guan,
Localized Conformal Prediction, Biometrika 2023): whether one is overtaken at all says little of how late another is.
Jobs that waited and ran at the same time are right or wrong together: a burst of a hundred behind one queue is two
lessons at most, not a hundred (design effect: Kish, Survey Sampling, 1965; as far as their times overlap: Lopez de
Prado, Advances in Financial Machine Learning, 2018, chapter 4).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats

LEVELS = (0.5, 0.9)
"""Shares of jobs that intervals are to hold."""
REACH = 2.0
"""How far beyond the outermost futures outcomes count at most: who is missed by more says no more."""
MEMORY = 50.0
"""Outcomes after which the weight of one has fallen to 1 / e."""
TRUST = 8.0
"""Lessons that weigh as much as the futures by themselves."""
TOGETHER = 0.5
"""Correlation of the outcomes of two jobs that were there at the same time."""
ALIKE = 0.15
"""Difference of the shares of futures that agree, at which another job counts for 1 / sqrt(e)."""
LITTLE = 0.1
"""Distance beyond futures that hardly differ, in logarithms, which counts as one that is twice theirs."""
RELATIVE = 1e-9
"""Share of a time by which sums in another order may move it."""
LEAST_S = 1e-3
"""Times below it are as short."""
Times = TypeVar("Times", float, Floats)


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a completion time, seconds; `level` is the share of jobs that such intervals are to hold."""

    level: float
    low_s: float
    high_s: float

    def holds(self, actual_s: float) -> bool:
        """Whether a time lies within, but for rounding."""
        return self.low_s - slack_s(actual_s) <= actual_s <= self.high_s + slack_s(actual_s)

    def nearest_s(self, time_s: float) -> float:
        """The time within that is nearest to one: where outcomes have moved an interval off the futures' own median."""
        return min(max(time_s, self.low_s), self.high_s)

    @property
    def wide(self) -> bool:
        """Whether its ends are apart by more than rounding."""
        return self.high_s - self.low_s > 2.0 * slack_s(self.high_s)


def slack_s(time_s: Times) -> Times:
    """By how much a completion time may miss another and be the same."""
    return tolerance.INSTANT_S + RELATIVE * abs(time_s)


class Position(NamedTuple):
    """Where a job stands, or ended, among the futures drawn of it: 0 the first, 1 the last, less or more beyond.

    `ended`: whether it is final; else the least that it will come to. `agree`: share of its futures that are as early
    as the first. `from_s`, `until_s`: when it was asked about, and ended or was looked at last; equal: not known.
    """

    place: float
    ended: bool
    agree: float = 0.0
    from_s: float = 0.0
    until_s: float = 0.0

    def within(self, reach: float) -> "Position":
        """The same, but no further beyond the outermost futures."""
        return self._replace(place=min(max(self.place, -reach), 1.0 + reach))


class IntervalTracker:
    """Intervals from futures, their ends where outcomes of other jobs have shown that they belong.

    Parameters
    ----------
    levels : shares of jobs that intervals are to hold
    trust : lessons that weigh as much as the futures by themselves; infinite: nothing is learnt
    memory : outcomes after which the weight of one has fallen to 1 / e
    known : positions of earlier jobs, in order of submission
    """

    def __init__(
        self,
        levels: Sequence[float] = LEVELS,
        trust: float = TRUST,
        memory: float = MEMORY,
        known: Sequence[Position] = (),
    ) -> None:
        self.levels, self.trust, self.memory = tuple(levels), trust, memory
        self.known = list(known)

    def intervals(
        self, futures_s: Floats, open_now: Sequence[Position] = (), unseen: float = 0.0
    ) -> tuple[Interval, ...]:
        """Intervals of a job whose completion took `futures_s`, (n_futures,) seconds more than 0; one a level.

        Parameters
        ----------
        open_now : positions, as of now, of jobs behind those of `known`
        unseen : outcomes that came behind all of these and are not known here: those that are count less by them
        """
        # Completion times spread over orders of magnitude; ends move by factors.
        logs = np.sort(np.log(futures_s))
        places, share = self._learnt([*self.known, *open_now], _agree(logs), unseen)
        if _certain(logs):
            # Nothing that is not known can move such a job's end.
            return tuple(Interval(level, float(np.exp(logs[0])), float(np.exp(logs[-1]))) for level in self.levels)
        return tuple(_interval(logs, level, places, share) for level in self.levels)

    def track(self, submit_s: Floats, actual_s: Floats, futures_s: Sequence[Floats]) -> list[tuple[Interval, ...]]:
        """Intervals of jobs in order of submission, each from what was known of those before; all are `known` then.

        Parameters
        ----------
        submit_s, actual_s : (n_jobs,) seconds; when each was submitted, and how long it took from then, infinite where
            it never ended
        futures_s : (n_jobs,) of (n_futures,) what was drawn of that
        """
        made, final = [], dict[int, Position | None]()
        for number, at_s in enumerate(submit_s.tolist()):
            result = self.positions(submit_s[:number], actual_s[:number], futures_s[:number], at_s, final)
            made.append(self.intervals(futures_s[number], result))
        self.known += self.positions(submit_s, actual_s, futures_s, np.inf, final)
        return made

    def positions(
        self,
        submit_s: Floats,
        actual_s: Floats,
        futures_s: Sequence[Floats],
        now_s: float,
        final: dict[int, Position | None] | None = None,
    ) -> list[Position]:
        """Of jobs as of an instant, in order of submission; those that say nothing of others are left out.

        `final`: of jobs that have ended, kept from one instant to the next.
        """
        final, found = {} if final is None else final, deque[Position]()
        for job in reversed(range(len(submit_s))):
            # Whoever is far back weighs nothing.
            if len(found) >= 4 * self.memory:
                break
            if job in final:
                at = final[job]
            else:
                from_s, end_s = float(submit_s[job]), float(submit_s[job] + actual_s[job])
                ended = end_s <= now_s
                # By a sequence that never clumps.
                at = _position(futures_s[job], actual_s[job] if ended else now_s - from_s, ended, job * GOLDEN)
                at = at and at._replace(from_s=from_s, until_s=min(end_s, now_s))
                if ended:
                    final[job] = at
            if at is not None:
                found.appendleft(at)
        return list(found)

    def _learnt(self, known: Sequence[Position], agree: float, unseen: float) -> tuple[Floats, Floats]:
        """Distribution of positions of jobs like one: ascending ones, and the share that lies at or below each."""
        own = (np.arange(GRID) + 0.5) / GRID
        if np.isinf(self.trust) or not known:
            return own, own
        place = np.concatenate([own, [one.place for one in known]])
        ended = np.concatenate([np.ones(GRID, dtype=np.bool_), [one.ended for one in known]])
        recent = (np.arange(len(known))[::-1] + unseen) / self.memory
        apart = (np.array([one.agree for one in known]) - agree) / ALIKE
        learnt = lessons(tuple(known)) * np.exp(-recent - 0.5 * np.square(apart))
        weight = np.concatenate([np.full(GRID, self.trust / GRID), learnt])
        order = np.lexsort((~ended, place))
        left = survival(weight[order], ended[order])
        # Half of a position's own share lies below it.
        return place[order], 1.0 - (left[1:] + left[:-1]) / 2.0


@lru_cache(maxsize=8)
def lessons(known: tuple[Position, ...]) -> Floats:
    """How much of a lesson each job is, (n,): 1 / (1 + `TOGETHER` x how many others there were at the same time).

    Two are there at the same time as far as they have both been of the time that either has (Jaccard).
    """
    # Who never ends is there from then on.
    from_s, until_s = (np.nan_to_num([getattr(one, name) for one in known]) for name in ("from_s", "until_s"))
    both = np.minimum(until_s[:, None], until_s) - np.maximum(from_s[:, None], from_s)
    either = np.maximum(until_s[:, None], until_s) - np.minimum(from_s[:, None], from_s)
    shared = np.maximum(both, 0.0) / np.maximum(either, tolerance.INSTANT_S)
    np.fill_diagonal(shared, 0.0)
    return np.asarray(1.0 / (1.0 + TOGETHER * shared.sum(axis=1)))


GOLDEN = (5.0**0.5 - 1.0) / 2.0
GRID = 40
"""Positions by which the futures stand for themselves."""


def survival(weight: Floats, ended: NDArray[np.bool_]) -> Floats:
    """Share of jobs that are larger than the sizes before the i-th, (n + 1,), from (n,) by ascending size.

    Kaplan and Meier (1958) with weights: a job that has not ended counts as long as it may be.
    """
    at_risk = np.cumsum(weight[::-1])[::-1]
    # Who has not ended only leaves those at risk; the largest may weigh nothing any longer, and then nobody is.
    hazard = np.divide(weight, at_risk, out=np.zeros_like(at_risk), where=ended & (at_risk > 0.0))
    return np.concatenate([[1.0], np.cumprod(1.0 - np.minimum(hazard, 1.0))])


def _position(futures_s: Floats, passed_s: float, ended: bool, at: float) -> Position | None:
    """Of a job that took so long, or has by now; None where its futures agree: it is told a point, as no other is.

    `at`: whose fraction says where among the futures that agree with it.
    """
    logs, slack = np.sort(np.log(futures_s)), slack_s(passed_s)
    ends = (float(np.log(max(one, LEAST_S))) for one in (passed_s - slack, passed_s + slack))
    low, high = (_place(logs, one) for one in ends)
    if _certain(logs):
        return None
    place = low + (high - low) * (at % 1.0) if ended else low
    return Position(place, ended, _agree(logs)).within(REACH)


def _certain(logs: Floats) -> bool:
    return bool(logs[-1] - logs[0] <= RELATIVE)


def _agreeing(logs: Floats) -> int:
    """How many of ascending logarithms are the first but for rounding."""
    return int(np.searchsorted(logs, logs[0] + RELATIVE, side="right"))


def _agree(logs: Floats) -> float:
    return _agreeing(logs) / len(logs)


def _interval(logs: Floats, level: float, places: Floats, share: Floats) -> Interval:
    tail = (1.0 - level) / 2.0
    low = _end(logs, float(np.interp(tail, share, places)))
    # Where futures agree on the low end few jobs can fall below it: the level then leaves more of them above.
    below = min(float(np.interp(_place(logs, low - RELATIVE), places, share)), tail)
    high = _end(logs, float(np.interp(below + level, share, places)))
    return Interval(level, float(np.exp(low)), float(np.exp(max(low, high))))


def _ranks(logs: Floats) -> Floats:
    """Shares of outcomes at or below each of ascending logarithms that are drawn alike.

    Where several agree on the first, nothing is expected before it, and as many jobs end then as futures do.
    """
    count, agreeing = len(logs), _agreeing(logs)
    if agreeing == 1:
        return np.arange(1, count + 1) / (count + 1.0)
    share, behind = agreeing / count, np.arange(1, count - agreeing + 1)
    return np.concatenate(
        [np.linspace(0.0, share, agreeing), share + (1.0 - share) * behind / (count - agreeing + 1.0)]
    )


def _unit(logs: Floats) -> float:
    """How far beyond the outermost future counts 1: as far again as futures are apart, and a little more."""
    return LITTLE + float(logs[-1] - logs[0])


def _place(logs: Floats, at: float) -> float:
    """Position of a logarithm among ascending ones; see `Position`."""
    beyond = min(at - logs[0], 0.0) + max(at - logs[-1], 0.0)
    return float(np.interp(at, logs, _ranks(logs)) + beyond / _unit(logs))


def _end(logs: Floats, place: float) -> float:
    """The logarithm at a position."""
    ranks = _ranks(logs)
    beyond = min(place - ranks[0], 0.0) + max(place - ranks[-1], 0.0)
    return float(np.interp(place, ranks, logs) + beyond * _unit(logs))


def interval_figures(made: Sequence[Sequence[Interval]], actual_s: Floats, futures_s: Floats) -> dict[str, Any]:
    """How good intervals are.

    Shares: `coverage_NN` of the jobs, `first_half` and `second_half` of the 90 % interval's, `wide_share` of those of
    which the ends lie apart, `coverage_90_wide` of these. `ratio_median`: of upper over lower end of the 90 % interval.
    `pinball`: mean loss of the ends, as quantiles, of logarithms (Koenker and Bassett, Regression Quantiles, 1978);
    `pinball_s`: of the 90 % interval's, in seconds. Of each level: on which side times fell, %, and medians of
    upper - lower end, over the median of the futures and in seconds, and of the ratio of the ends.

    Parameters
    ----------
    made : (n_jobs,) of one interval a level, the widest last, jobs in order of submission
    actual_s, futures_s : (n_jobs,) and (n_jobs, n_futures) completion times, seconds
    """
    figures: dict[str, Any] = {"n": len(made), "jobs": len(made)}
    median_s, losses = np.median(futures_s, axis=1), []
    slack = np.array([slack_s(one) for one in actual_s.tolist()])
    for level, of_level in ((row[0].level, row) for row in zip(*made, strict=True)):
        low_s, high_s = (np.array([getattr(one, name) for one in of_level]) for name in ("low_s", "high_s"))
        below, above = actual_s < low_s - slack, actual_s > high_s + slack
        held, name = ~(below | above), f"{100 * level:g}"
        tails = ((low_s, (1.0 - level) / 2.0), (high_s, (1.0 + level) / 2.0))
        losses += [pinball(np.log(actual_s), np.log(end_s), share) for end_s, share in tails]
        figures |= {
            f"coverage_{name}": float(held.mean()),
            **{
                f"{side}_{name}_pct": 100.0 * float(one.mean())
                for side, one in (("coverage", held), ("below", below), ("above", above))
            },
            f"width_{name}_p50": float(np.median((high_s - low_s) / median_s)),
            f"width_{name}_s_p50": float(np.median(high_s - low_s)),
            f"ratio_{name}_p50": float(np.median(high_s / low_s)),
        }
    wide, half = np.array([row[-1].wide for row in made]), len(made) // 2
    return figures | {
        "first_half": _share(held[:half]),
        "second_half": _share(held[half:]),
        "wide_share": float(wide.mean()),
        "coverage_90_wide": _share(held[wide]),
        "ratio_median": float(np.median(high_s / low_s)),
        "pinball": float(np.mean(losses)),
        "pinball_s": float(np.mean([pinball(actual_s, end_s, share) for end_s, share in tails])),
    }


def quantiles(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """Ends of intervals, seconds, and the shares of outcomes that are to lie below each."""
    ends = [(one, one.low_s, -1.0) for one in intervals] + [(one, one.high_s, 1.0) for one in intervals]
    return [(end_s, (1.0 + side * one.level) / 2.0) for one, end_s, side in ends]


def pinball(actual: Floats, quantile: Floats, share: float) -> float:
    """Mean loss of a quantile that is to leave `share` of the values below it."""
    miss = actual - quantile
    return float(np.maximum(share * miss, (share - 1.0) * miss).mean())


def _share(held: NDArray[np.bool_]) -> float | None:
    return float(held.mean()) if len(held) else None
