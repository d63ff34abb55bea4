"""What a version's figures say about it: which are off beyond doubt, since when, and what to do about that.

Figures are ratios of sums over rows. Their intervals are of day totals, so that windows that overlap and jobs of one
burst do not count as so many witnesses, and of users' totals where rows have users, whose work stays alike for days.
What was promised by a measurement is in doubt itself: the interval is of the difference. They are so wide that all of
them hold together: every figure of every block, over every week's end and every week since when it may be off, share
`FALSE_ALARMS`, however long a version is watched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from shlex import join
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jobcast.domain.arrays import Floats
from jobcast.models.evaluation.intervals import days_of, sums_by_day
from jobcast.pipelines.lifecycle.drift_rules import Limit
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Rows
from jobcast.pipelines.report.formatting import iso, listed, number

OfRows = TypeVar("OfRows", bound=Rows)
FALSE_ALARMS = 0.4
"""Of versions that are off by no more than is granted, the share of which any interval may miss, over all weeks.

A bound: intervals miss at two ends, hang together, and few versions are off by all that is granted.
"""
WHOLE = 0.75
"""Of a week's share, what the interval since the first week gets; those since later weeks split the rest."""
MEASURED = 0.25
"""Granted of a limit where the promise tells how sure it is, so that this is in the interval already."""
LEAST_DAYS = 4
"""With rows that an interval needs."""
SETTLED = 0.99
"""Share of the rows whose truth is known after the delay that is waited for; else the last days hold short jobs."""


@dataclass(frozen=True, slots=True)
class Found:
    """A figure of a block since some instant, with the interval that all hold together.

    Attributes
    ----------
    block, figure : names
    since_s : from which week on, seconds from the epoch
    value, low, high : the figure and its interval, in which what is nominal is in doubt too where that was measured
    nominal : what the version promises of it
    excess : how far it is off
    watch, drifted : limits of that
    granted : how far it may be off for certain, see `Limit`
    """

    block: str
    figure: str
    since_s: float
    value: float
    low: float
    high: float
    nominal: float
    excess: float
    watch: float
    drifted: float
    granted: float

    @property
    def sure(self) -> float:
        """How far it is off at least."""
        return self.excess - (self.high - self.low) / 2.0

    @property
    def off(self) -> bool:
        """Whether it is off beyond doubt, and by more than matters."""
        return self.excess > self.watch and self.sure > self.granted

    def to_dict(self) -> dict[str, Any]:
        """For results."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of sums over rows, its standard error, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    def half(self, alpha: float, promise: "Ratio | None" = None) -> float:
        """Half width of its interval, or of its difference's from a promise that was measured itself (Welch)."""
        theirs = promise.error if promise else 0.0
        square = self.error**2 + theirs**2
        if not square:
            return 0.0
        loose = self.error**4 / self.freedom + (theirs**4 / promise.freedom if promise else 0.0)
        return float(stdtrit(square**2 / loose, 1.0 - alpha / 2.0) * np.sqrt(square))


def ratio_of(time_s: Floats, above: Floats, below: Floats, owner: NDArray[Any] | None = None) -> Ratio | None:
    """A ratio of sums over rows; None of too few days.

    Parameters
    ----------
    time_s, above, below : (n_rows,)
    owner : (n_rows,) whose rows hang together beyond a day, such as users; None: days are all

    Notes
    -----
    The linearised ratio's variance from day totals (Cochran, Sampling Techniques, section 6.4), with the covariance of
    neighbouring days where that is positive. With owners in its place: clustered both ways, by day and by owner, less
    what both count (Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29, 2011), where that is more:
    it is owners who make neighbouring days alike.

    Examples
    --------
    >>> days = 86400.0 * np.arange(5)
    >>> told = ratio_of(days, np.array([0.0, 1.0, 0.0, 1.0, 0.0]), np.ones(5))
    >>> round(told.value, 3), round(told.half(0.05), 2)
    (0.4, 0.68)
    """
    day = days_of(time_s)
    seen, sums = sums_by_day(day, {"above": above, "below": below})
    counts = (sums["below"] > 0) | (sums["above"] != 0)
    days, total = int(counts.sum()), float(sums["below"].sum())
    if days < LEAST_DAYS or not total:
        return None
    value = float(sums["above"].sum()) / total
    off = (sums["above"] - value * sums["below"])[counts]
    square = float((off**2).sum()) * days / (days - 1)
    if owner is not None:
        square += _owners_square(above - value * below, np.searchsorted(seen, day), owner)
    else:
        # Bursts and experiments reach over midnight.
        square += max(0.0, float((off[1:] * off[:-1]).sum())) * days / (days - 1)
    return Ratio(value, float(np.sqrt(square)) / total, days - 1.0)


def _owners_square(off: Floats, day: NDArray[np.int64], owner: NDArray[Any]) -> float:
    """By how much owners' totals of rows (n_rows,) scatter more than if their days were strangers."""
    names, who = np.unique(owner, return_inverse=True)
    owners = len(names)
    totals = np.bincount(who, off)
    by_day = np.bincount(np.unique(day * owners + who, return_inverse=True)[1], off)
    # Of one owner nothing can be told: totals of all rows are 0.
    return max(0.0, float((totals**2).sum()) * owners / max(owners - 1, 1) - float((by_day**2).sum()))


def settled(rows: OfRows, known_s: float, figure: str = "") -> OfRows:
    """Rows whose truth was known at an instant, without the last ones, of which only the early known are.

    Of a figure those as well of which it was decided by then, whatever the truth.
    """
    known = rows.known_by(known_s)
    if not len(known):
        return known
    delay_s = float(np.quantile(known.known_s - known.time_s, SETTLED))
    return known.of((known.time_s + delay_s <= known_s) | known.decided(figure, known_s))


def shares_of(week: int) -> list[float]:
    """Of the misses that are allowed, what each interval at the end of a week gets, by the week since when it is.

    Weeks get 1/6, 1/2, 1/12, 1/20, ..., 1 / k (k + 1): 1 in all. The first week gets what the second would by that
    law, for seven days and few users tell little, at any share, of what two weeks tell well.

    >>> [round(share, 3) for share in (*shares_of(1), *shares_of(2), *shares_of(3))]
    [0.167, 0.375, 0.125, 0.062, 0.01, 0.01]
    """
    place = {1: 2, 2: 1}.get(week, week)
    of_week = 1.0 / (place * (place + 1))
    if week == 1:
        return [of_week]
    return [WHOLE * of_week, *[(1.0 - WHOLE) * of_week / (week - 1)] * (week - 1)]


def findings(
    rows: Blocks,
    limits: Sequence[Limit],
    nominal: Mapping[str, float],
    begins_s: Sequence[float],
    known_s: float,
    promises: Mapping[str, Ratio] | None = None,
) -> list[Found]:
    """Every figure that has a limit, since each week's begin, by what was known at the end of the last of these weeks.

    Parameters
    ----------
    rows : by block, since the first week
    begins_s : of the weeks up to now, ascending
    promises : of what is nominal, what was measured on rows itself, so that it is in doubt as well
    """
    told, tests = promises or {}, max(len(rows) * len(limits), 1)
    weeks = [(s, FALSE_ALARMS * share / tests) for s, share in zip(begins_s, shares_of(len(begins_s)), strict=True)]
    # How sure a promise is that was measured is in the interval already.
    judged = [replace(limit, granted=MEASURED) if limit.figure in told else limit for limit in limits]
    found = list[Found]()
    for name, block in rows.items():
        for known, some in _settled_for(block, judged, known_s):
            for begin_s, alpha in weeks:
                found += _since(name, begin_s, known, alpha, some, nominal, told)
    return found


def _since(
    block: str,
    begin_s: float,
    known: Rows,
    alpha: float,
    limits: Sequence[Limit],
    nominal: Mapping[str, float],
    promises: Mapping[str, Ratio],
) -> list[Found]:
    """The figures of one block since one week's begin."""
    late = known.of(known.time_s >= begin_s)
    parts, found = late.parts(), list[Found]()
    for limit in limits:
        ratio = ratio_of(late.time_s, *parts[limit.figure], late.owner)
        if ratio is not None:
            half = ratio.half(alpha, promises.get(limit.figure))
            found += _found(block, begin_s, ratio.value, half, limit, nominal)
    return found


def _settled_for(block: Rows, limits: Sequence[Limit], known_s: float) -> list[tuple[Rows, list[Limit]]]:
    """Rows that are settled, and the limits whose figures are told of them."""
    own = [one for one in limits if block.decided(one.figure, known_s).any()]
    others = [one for one in limits if one not in own]
    return [(settled(block, known_s), others), *((settled(block, known_s, one.figure), [one]) for one in own)]


def bare_findings(rows: Blocks, limits: Sequence[Limit], nominal: Mapping[str, float], since_s: float) -> list[Found]:
    """Every figure that has a limit as it is, without an interval: of a stretch whose days are too few for one.

    Only the second limit counts: what lies between the two may be chance.
    """
    found = list[Found]()
    for name, block in rows.items():
        figures = block.figures()
        for limit in limits:
            value = figures.get(limit.figure)
            if value is not None:
                found += _found(name, since_s, value, 0.0, replace(limit, watch=limit.drifted, granted=0.0), nominal)
    return found


def _found(
    block: str, since_s: float, value: float, half: float, limit: Limit, nominal: Mapping[str, float]
) -> list[Found]:
    """A figure and its interval; [] where nothing tells how far it is off."""
    excess = limit.excess({limit.figure: value}, nominal)
    if excess is None:
        return []
    promised, limits = nominal.get(limit.figure, 0.0), (limit.watch, limit.drifted, limit.granted * limit.watch)
    return [Found(block, limit.figure, since_s, value, value - half, value + half, promised, excess, *limits)]


FINE, WATCH, RETRAIN, ROLL_BACK, CHECK = "fine", "watch", "retrain", "roll back", "check the data"
VERDICTS = (FINE, WATCH, RETRAIN, ROLL_BACK, CHECK)
LOST = 0.5
"""Share of its rows by which an input must have gone missing for the data to be asked about first."""
SILENT = 3.0
SILENT_S = 2 * 86400.0
"""So many times the longest silence of the training time, and at least so long, is no chance."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said at the end of a week, by what was known then.

    Attributes
    ----------
    says : one of the verdicts
    off : figures that are off beyond doubt, one a block and figure, the farthest first
    broken : what is wrong with the data, in words
    passed : whether that was at the end of the week before and is beyond doubt no longer
    """

    says: str = FINE
    off: tuple[Found, ...] = ()
    broken: tuple[str, ...] = ()
    passed: bool = False

    def after(self, before: "Verdict | None") -> "Verdict":
        """As it is said after the week before: what was off then is watched for a week more."""
        if self.says != FINE or before is None or before.passed or not before.off:
            return self
        return Verdict(WATCH, before.off, passed=True)

    @property
    def since_s(self) -> float | None:
        """Since when the worst figure has been off; None where none is."""
        return self.off[0].since_s if self.off else None


def verdict_of(found: Sequence[Found], broken: Sequence[str] = (), before_is_better: bool = False) -> Verdict:
    """A verdict.

    Parameters
    ----------
    found : of `findings`
    broken : what is wrong with the data, in words
    before_is_better : whether the champion of before forecasts the same weeks better, beyond doubt
    """
    worst: dict[tuple[str, str], Found] = {}
    # The begin since when it is surest is when it began.
    for one in sorted((one for one in found if one.off), key=lambda one: -one.sure):
        worst.setdefault((one.block, one.figure), one)
    off = tuple(sorted(worst.values(), key=lambda one: -one.excess / one.drifted))
    if broken:
        # Nothing that the data say is to be acted on before they are whole.
        return Verdict(CHECK, off, tuple(broken))
    if not off:
        return Verdict()
    if before_is_better:
        return Verdict(ROLL_BACK, off)
    # Clearly beyond what matters, or far beyond it by the figure itself.
    grave = any(one.excess > one.drifted or one.sure > one.watch for one in off)
    return Verdict(RETRAIN if grave else WATCH, off)


def lost_inputs(before: Mapping[Any, Floats], then: Mapping[Any, Floats]) -> list[str]:
    """Inputs that have gone missing since the training time, in words."""
    gone = [key for key in before.keys() & then.keys() if _missing(then[key]) - _missing(before[key]) >= LOST]
    return [f"{name} is missing since" for name in sorted({name for name, _ in gone})]


def _missing(values: Floats) -> float:
    return float(np.isnan(values).mean()) if len(values) else 0.0


def silence(before_s: Floats, then_s: Floats, until_s: float) -> list[str]:
    """A silence of all pools that is far longer than any of the training time, in words.

    Parameters
    ----------
    before_s : submissions of the training time, ascending
    then_s : those that are looked at, ascending, after the last one before them
    until_s : up to when there should be some

    Examples
    --------
    >>> silence(3600.0 * np.arange(100), 3600.0 * np.arange(99, 200), 12 * 86400.0)
    ['no job was submitted for 3.7 days (longest in training: 0.0 days)']
    >>> silence(3600.0 * np.arange(100), 3600.0 * np.arange(99, 200), 200 * 3600.0)
    []
    """
    if len(before_s) < 2:
        return []
    usual_s = float(np.diff(before_s).max())
    longest_s = float(np.diff(np.append(then_s, until_s)).max(initial=0.0))
    if longest_s <= max(SILENT * usual_s, SILENT_S):
        return []
    days = (longest_s / 86400.0, usual_s / 86400.0)
    return ["no job was submitted for {:.1f} days (longest in training: {:.1f} days)".format(*days)]


WORDS = {
    "bias": "forecasts less what came, on average",
    "surprise": "surprise beyond what the forecasts themselves expect (nats)",
    "miss_rate": "share of the windows with arrivals that the gate declared idle",
    "coverage": "share of the windows whose load the estimate reached",
    "accuracy": "share of the jobs whose likeliest bin was right",
    "log_loss": "log loss",
    "coverage_90": "share that the 90 % intervals held",
    "skill": "error saved against the rule that learns nothing",
    "mae_log10": "distance from the truth (powers of ten)",
    "mae": "error of the last value",
    "mape": "relative error",
    "regime_error": "error of batch sizes to come (% of the epochs)",
    "speedup": "speedup over the heuristic",
}
"""Figures that have limits."""
COSTS = {
    "pool_hours_lent_wrongly": "pool-hours lent although their owners came",
    "pool_hours_held_in_vain": "pool-hours held although nobody came",
    "gpu_hours_lent_wrongly": "GPU-hours that owners came for beyond what was reserved",
    "gpu_hours_held_in_vain": "GPU-hours held for nobody",
    "gpu_hours_kept_too_long": "GPU-hours that jobs ran on after the time told",
}
"""What mistakes cost; of windows that overlap each counts for its step, and of horizons their mean."""
PASSED = "off until the week before, no longer beyond doubt"
UNHARMED = "inputs moved, forecasts hold"


def in_words(one: Found, promised: bool) -> str:
    """A figure that is off, with the interval that holds beside all others."""
    words = WORDS.get(one.figure, one.figure)
    span = [f"{number(one.low)} to {number(one.high)}"] if one.high > one.low else []
    beside = "; ".join([*span, *([f"promised {number(one.nominal)}"] if promised else [])])
    return f"{one.block}: {words} {number(one.value)}{f' ({beside})' if beside else ''}"


def advice(weeks: Sequence[Mapping[str, Any]], name: str, path: str, until_s: float | None) -> dict[str, Any]:
    """What happened, since when, what it costs and what to do, of weeks up to the last one.

    Parameters
    ----------
    name, path : of the predictor and of the trace
    until_s : up to when there is something to learn from, seconds from the epoch; None of a file without a calendar
    """
    last = weeks[-1]
    says, moved = last["verdict"], last["inputs"]["moved"]
    what = listed(last["reasons"]) if last["reasons"] else "every figure is within what its few days can tell"
    if says == FINE and moved:
        what = f"{UNHARMED}: {listed(moved[:3])}"
    since = last["off"][0]["since"] if last["off"] else None
    return {
        "what": what,
        "since": since,
        "cost": _cost(weeks, since),
        "do": _to_do(says),
        "command": _command(says, name, path, until_s),
    }


def _cost(weeks: Sequence[Mapping[str, Any]], since: str | None) -> dict[str, float]:
    """Of a week: on average since it is off, else over all of them; weeks that are cut short do not count."""
    whole = [week for week in weeks if week["complete"]]
    late = [week for week in whole if since is None or week["from"] >= since] or whole
    names = late[-1]["cost"] if late else {}
    return {name: round(sum(week["cost"][name] for week in late) / len(late), 2) for name in names}


def _to_do(says: str) -> str:
    return {
        FINE: "nothing",
        RETRAIN: "train a version on what has come since, then let it be compared",
        ROLL_BACK: "go back to the champion of before, which forecasts these weeks better",
        CHECK: "look at how the trace is recorded before anything is trained on it",
    }.get(says, "look again next week: it is, or was, off by more than chance")


def _command(says: str, name: str, path: str, until_s: float | None) -> str | None:
    """What to type, where there is something to do."""
    until = () if until_s is None else ("--until", str(iso(until_s)))
    words: tuple[str, ...] | None = {
        RETRAIN: ("train", name, "--trace", path, *until),
        ROLL_BACK: ("models", "rollback", name),
        CHECK: ("trace", "describe", path),
    }.get(says)
    return None if words is None else join(("jobcast", *words))


def cost_in_words(cost: Mapping[str, float]) -> str:
    """Of a week."""
    return listed([f"{number(amount)} {COSTS[name]}" for name, amount in cost.items()])
