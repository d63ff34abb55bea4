"""The relaxation of equation 11: rounds as a divisible good at one price, and the bound that it proves.

How many rounds a job gets decides its utility; which ones matters for capacity and starts alone. Relaxed to a sum over
the window, capacity has one price p a GPU-round. The makespan max(load, longest) is a mixture: load with weight theta,
the time left of each job with weight nu_j, together 1. For any p >= 0 and any such mixture

    sum_j max_m [gain_j(m) - price x (theta load_j + nu_j) left_j(m) - p width_j m] + p M T

is at least what any timetable is worth.

Concave majorants of rows: what a Lagrangian relaxation sees of functions that are not concave.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.schedulers.shockwave.programme import Programme


def majorant_slopes(values: Floats) -> Floats:
    """Slopes of the least concave function above each row, (n, m) for values (n, m + 1) at 0, 1, ..., m.

    The slope over [i, i + 1] is the least over a <= i of the largest over b > i of (v_b - v_a) / (b - a).

    >>> majorant_slopes(np.array([[0.0, 0.0, 4.0, 5.0]])).tolist()
    [[2.0, 2.0, 1.0]]
    """
    points = values.shape[1]
    slopes = np.full((len(values), points, points), -np.inf)  # by row, a, b - 1 ... filled for b > a
    for begin in range(points - 1):
        span = np.arange(1, points - begin)
        slopes[:, begin, begin + 1 :] = (values[:, begin + 1 :] - values[:, begin, None]) / span
    best = np.maximum.accumulate(slopes[:, :, ::-1], axis=2)[:, :, ::-1]  # largest over b >= column
    upto = np.where(np.tri(points, points, -1, dtype=bool)[None, :, :].transpose(0, 2, 1), best, np.inf)
    majorant: Floats = upto.min(axis=1)[:, 1:]
    return majorant


@dataclass(frozen=True, slots=True)
class Relaxed:
    """What the relaxation says.

    Attributes
    ----------
    bound : no timetable is worth more
    counts : (c, n) rounds of each job, in some candidates for a timetable
    slopes : (n, rounds) what each next round is worth, a GPU, decreasing
    price : of a GPU-round, at which the window is sold out
    theta, nu : weights of the load and of each job's time left, (n,), in the makespan
    """

    bound: float
    counts: tuple[Ints, ...]
    slopes: Floats
    price: float
    theta: float
    nu: Floats


def relax(programme: Programme) -> Relaxed:
    """Solve the relaxation by bisection on the longest time left, then prove its prices."""
    # First as if the longest job alone decided; the load only where it may bind.
    searched = [_search(programme, 0.0)]
    mixtures, load_share = [(0.0, searched[0].mixture(1.0)), (1.0, np.zeros(programme.jobs))], searched[0].load_share
    if load_share > 0.0:  # the load may bind: what is left of the mixture goes to it
        searched.insert(0, _search(programme, load_share))
        mixtures.append((load_share, searched[0].mixture(1.0 - load_share)))
    bounds = [_bound(programme, *mixture) for mixture in mixtures]
    best, mixture = min(zip(bounds, mixtures, strict=True), key=lambda one: rounded(one[0][0]))
    found = [counts for one in searched for counts in one.counts]
    return Relaxed(best[0], (*found, *(fill(one[1], programme) for one in bounds)), *best[1:], *mixture)


class _Searched(NamedTuple):
    """The ceiling on the longest time left that is worth most.

    Attributes
    ----------
    counts : (n,) each, rounds that are worth most under it, and under another
    nu : (n,) what it takes of each job, in terms of the makespan
    tight : (n,) who bears more, together 1
    load_share : weight that the load may have
    """

    counts: tuple[Ints, Ints]
    nu: Floats
    tight: Floats
    load_share: float = 0.0

    def mixture(self, whole: float) -> Floats:
        """Weights of the jobs' times left, adding up to `whole`."""
        total = float(self.nu.sum())
        return self.nu + (whole - total) * self.tight if total <= whole else self.nu * (whole / total)


def _search(programme: Programme, theta: float) -> _Searched:
    """Bisect over ceilings, in rounds, as times left are whole rounds."""
    left_s, widths, room = programme.left_after_s, programme.widths, programme.gpus * programme.rounds
    load = programme.loads[:, None] * left_s
    slopes = majorant_slopes(programme.gains - programme.makespan_price * theta * load)
    order = np.argsort(-rounded_all(slopes / widths[:, None]), axis=None, kind="stable")
    rounds = np.rint(left_s[:, 0] / programme.round_s).astype(np.int64)

    def under(ceiling: int) -> tuple[Ints, Floats]:
        """Rounds that are worth most with nobody left for longer, and nu."""
        forced = np.maximum(0, rounds - ceiling)
        taken, price = _fill(slopes, order, programme, forced, room - int(widths @ forced))
        lacking = np.maximum(0.0, price * widths - slopes[np.arange(programme.jobs), forced - 1])
        return taken, np.where(forced > 0, lacking, 0.0) / programme.round_s / max(programme.makespan_price, 1e-300)

    free, _ = under(highest := int(rounds.max()))
    load_s, last_s = float(programme.loads @ left_s[np.arange(programme.jobs), free]), float(left_s[:, -1].max())
    lowest = min(highest, int(rounded(max(last_s, load_s) / programme.round_s)))
    able = bisect_left(range(highest), True, lowest, key=lambda one: int(widths @ np.maximum(0, rounds - one)) <= room)
    # Too dear below: the makespan is worth less than what the ceiling takes.
    at = bisect_left(range(highest), True, able, key=lambda one: rounded(float(under(one)[1].sum())) <= 1.0)
    taken, nu = under(at)
    if at > able:
        below, dearer = under(at - 1)
        return _Searched((taken, below), nu, (dearer - nu) / float((dearer - nu).sum()))
    # Even the lowest one that can be is worth its price: the rest goes to who is longest in the end, or to the load.
    tight = np.eye(programme.jobs)[int(np.argmax(left_s[:, -1]))]
    return _Searched((free, taken), nu, tight, 1.0 - float(nu.sum()) if load_s > last_s else 0.0)


def fill(slopes: Floats, programme: Programme) -> Ints:
    """Rounds by falling worth a GPU, (n,), until the window is full. `slopes` (n, rounds) are a GPU."""
    order = np.argsort(-slopes, axis=None, kind="stable")
    room = programme.gpus * programme.rounds
    return _fill(slopes * programme.widths[:, None], order, programme, np.zeros(programme.jobs, dtype=np.int64), room)[
        0
    ]


def _fill(slopes: Floats, order: Ints, programme: Programme, forced: Ints, room: int) -> tuple[Ints, float]:
    """Forced rounds and those of the best slopes that fit beside them, and the price a GPU-round."""
    rounds = programme.rounds
    rows, columns = order // rounds, order % rounds
    free = (columns >= forced[rows]) & (slopes.ravel()[order] > 0.0)
    rows, columns = rows[free], columns[free]
    fits = np.cumsum(programme.widths[rows]) <= room
    taken = forced + np.bincount(rows[fits], minlength=programme.jobs)
    rest = np.flatnonzero(~fits)
    if not len(rest):
        return taken, 0.0
    first = rest[0]
    price = float(slopes[rows[first], columns[first]]) / float(programme.widths[rows[first]])
    free_gpus = room - int(programme.widths[rows[fits]].sum())
    for row, column in zip(rows[rest].tolist(), columns[rest].tolist(), strict=True):
        if free_gpus == 0:
            break
        width = int(programme.widths[row])
        # Rounds of a job are taken in order: the next one only after those before it.
        if width <= free_gpus and column == taken[row]:
            taken[row] += 1
            free_gpus -= width
    return taken, price


def _bound(programme: Programme, theta: float, nu: Floats) -> tuple[float, Floats, float]:
    """The least bound over prices of a mixture, the slopes (n, rounds) of what the mixture values, a GPU, the price."""
    share = theta * programme.loads + nu
    values = programme.gains - programme.makespan_price * share[:, None] * programme.left_after_s
    slopes = majorant_slopes(values)
    each = slopes / programme.widths[:, None]
    close = rounded_all(each)
    order = np.argsort(-close, axis=None, kind="stable")
    widths = np.repeat(programme.widths, programme.rounds)[order]
    ordered = np.maximum(0.0, each.ravel()[order])
    room = programme.gpus * programme.rounds
    last = int(np.searchsorted(np.cumsum(widths), room, side="right"))
    worth = float(values[:, 0].sum()) + float((ordered[:last] * widths[:last]).sum())
    price = float(ordered[last]) if last < len(order) else 0.0
    worth += price * (room - int(widths[:last].sum()))
    return worth, close, price
