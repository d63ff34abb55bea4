"""The relaxation of equation 11: rounds as a divisible good at one price, and the bound that it proves.

How many rounds a job gets decides its utility; which ones matters for capacity and starts alone. Relaxed to a sum over
the window, capacity has one price p a GPU-round. The makespan max(load, longest) is a mixture: load with weight theta,
the time left of each job with weight nu_j, together 1. For any p >= 0 and any such mixture

    sum_j max_m [gain_j(m) - price x (theta load_j + nu_j) left_j(m) - p width_j m] + p M T

is at least what any timetable is worth.

Concave majorants of rows: what a Lagrangian relaxation sees of functions that are not concave.
"""

from dataclasses import dataclass

import numpy as np

from jobcast.domain.rounding import rounded, rounded_all
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.work import Floats, Ints


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


# Halvings of the interval in which the longest time left lies: below a microsecond from any trace's length.
CUTS = 40


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
    longest = found = _Search(programme, 0.0)
    mixtures = [(0.0, longest.mixture(0.0)), (1.0, np.zeros(programme.jobs))]
    if longest.load_share > 0.0:  # the load may bind: what is left of the mixture goes to it
        found = _Search(programme, longest.load_share)
        mixtures.append((longest.load_share, found.mixture(longest.load_share)))
    bounds = [_bound(programme, *mixture) for mixture in mixtures]
    best, mixture = min(zip(bounds, mixtures, strict=True), key=lambda one: rounded(one[0][0]))
    searched = [*found.candidates, *(longest.candidates if found is not longest else [])]
    candidates = (*searched, *(fill(one[1], programme) for one in bounds))
    return Relaxed(best[0], candidates, *best[1:], *mixture)


class _Search:
    """Rounds under a ceiling on the longest time left; the ceiling that is worth most, by bisection."""

    def __init__(self, programme: Programme, theta: float) -> None:
        self._programme, self._left_s = programme, programme.left_after_s
        load = programme.loads[:, None] * self._left_s
        self._slopes = majorant_slopes(programme.gains - programme.makespan_price * theta * load)
        each = rounded_all(self._slopes / programme.widths[:, None])
        self._order = np.argsort(-each, axis=None, kind="stable")
        self._nu_low = self._nu_high = np.zeros(programme.jobs)
        self._room = programme.gpus * programme.rounds
        longest = self._left_s.max(axis=0)
        high = float(longest[0])
        counts, _ = _fill(self._slopes, self._order, programme, np.zeros(programme.jobs, dtype=np.int64), self._room)
        load_s = float(programme.loads @ self._left_s[np.arange(programme.jobs), counts])
        low = min(high, max(float(longest[-1]), load_s))
        self.candidates = [counts]
        self._tight = np.zeros(programme.jobs)  # GPUs of the jobs that no lower ceiling has room for
        # Where nothing binds, the weight goes to the job that is longest in the end.
        self._tight[int(np.argmax(self._left_s[:, -1]))] = 1.0
        found = self._under(low)
        self.load_share = 0.0
        if found is not None and rounded(float(found[1].sum())) <= 1.0:  # even the lowest ceiling is worth its price
            self.candidates.append(found[0])
            self._nu_low = self._nu_high = found[1]
            if load_s > float(longest[-1]):
                self.load_share = 1.0 - float(found[1].sum())
            return
        self._bisect(low, high, found)

    def mixture(self, theta: float) -> Floats:
        """Weights of the jobs' times left, adding up to 1 - theta."""
        low, high, wanted = float(self._nu_low.sum()), float(self._nu_high.sum()), 1.0 - theta
        share = (wanted - high) / (low - high) if low > high else 0.0
        mixed = self._nu_high + min(1.0, max(0.0, share)) * (self._nu_low - self._nu_high)
        missing = wanted - float(mixed.sum())
        if missing < 0:
            return mixed * (wanted / float(mixed.sum()))
        return mixed + missing * self._tight / float(self._tight.sum())

    def _bisect(self, low: float, high: float, at_low: tuple[Ints, Floats] | None) -> None:
        if at_low is not None:
            self._nu_low = at_low[1]
        for _ in range(CUTS):
            middle = 0.5 * (low + high)
            found = self._under(middle)
            # Too dear: the makespan is worth less than what the ceiling takes.
            if found is None or rounded(float(found[1].sum())) > 1.0:
                low = middle
                if found is not None:
                    self._nu_low = found[1]
                    self.candidates[1:2] = [found[0]]
            else:
                high, self._nu_high = middle, found[1]
                self.candidates[0] = found[0]

    def _under(self, ceiling_s: float) -> tuple[Ints, Floats] | None:
        """Rounds that are worth most with nobody left for longer, and nu; None where that takes too many rounds."""
        programme = self._programme
        forced = (self._left_s > ceiling_s + 1e-6).sum(axis=1)
        room = self._room - int(programme.widths @ forced)
        if forced.max(initial=0) > programme.rounds:
            return None
        if room < 0:
            self._tight = np.where(forced > 0, programme.widths, 0.0)
            return None
        taken, price = _fill(self._slopes, self._order, programme, forced, room)
        rows = np.flatnonzero(forced)
        last = forced[rows] - 1
        drop_s = self._left_s[rows, last] - self._left_s[rows, forced[rows]]
        lacking = price * programme.widths[rows] - self._slopes[rows, last]
        nu = np.zeros(programme.jobs)
        nu[rows] = np.maximum(0.0, lacking) / np.maximum(drop_s, 1e-9) / max(programme.makespan_price, 1e-300)
        return taken, nu


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
    used = np.cumsum(programme.widths[rows])
    fits = used <= room
    taken = forced + np.bincount(rows[fits], minlength=programme.jobs)
    rest = np.flatnonzero(~fits)
    if not len(rest):
        return taken, 0.0
    first = rest[0]
    price = float(slopes[rows[first], columns[first]]) / float(programme.widths[rows[first]])
    free_gpus = room - int(used[first - 1] if first else 0)
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
    used = np.cumsum(widths)
    room = programme.gpus * programme.rounds
    last = int(np.searchsorted(used, room, side="right"))
    worth = float(values[:, 0].sum()) + float((ordered[:last] * widths[:last]).sum())
    price = float(ordered[last]) if last < len(order) else 0.0
    worth += price * (room - int(used[last - 1] if last else 0))
    return worth, close, price
