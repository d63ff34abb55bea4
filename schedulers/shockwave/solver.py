"""Equation 11 solved: a relaxation tells counts and a bound, timetables follow, HiGHS closes what gap remains.

Repairs a timetable where its longest job, which decides the makespan, lacks a round or was cut in pieces.
"""

from dataclasses import dataclass, replace

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.schedulers.shockwave.exact import improve
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.relaxation import Relaxed, relax
from jobcast.schedulers.shockwave.timetable import timetable

# Repairs at most; each shortens the time left of one job.
STEPS = 40


def repair(programme: Programme, runs: Bools, urgency: Floats, enough: float) -> tuple[Bools, float]:
    """Give the longest job rounds of less urgent ones while that is worth more, and what the timetable is then worth.

    Parameters
    ----------
    programme : what timetables are worth
    runs : (n, rounds) where to begin
    urgency : (n,) who gives way last
    enough : value that needs no more repair
    """
    value = programme.value(runs)
    for _ in range(STEPS):
        if value >= enough:
            break
        left_s = programme.held_left_s(runs.sum(axis=1), programme.starts(runs))
        longest = int(np.argmax(left_s))
        changed = [
            _with(programme, runs, longest, column, urgency) for column in np.flatnonzero(~runs[longest]).tolist()
        ]
        values = [programme.value(one) for one in changed]
        if not values:
            break
        best = int(np.argmax(rounded_all(np.array(values))))
        # No repair gains more than rounding: this is a local best.
        if rounded(values[best]) <= rounded(value):
            break
        runs, value = changed[best], values[best]
    return runs, value


def _with(programme: Programme, runs: Bools, job: int, column: int, urgency: Floats) -> Bools:
    """The timetable with a job in a round, the least urgent of that round giving way."""
    changed = runs.copy()
    changed[job, column] = True
    over = int(programme.widths[changed[:, column]].sum()) - programme.gpus
    others = np.flatnonzero(runs[:, column])
    for other in others[np.argsort(urgency[others], kind="stable")].tolist():
        if over <= 0:
            break
        changed[other, column] = False
        over -= int(programme.widths[other])
    return changed


# How many times as urgent as a job that runs another must be to be served before it where not all can wait; of the
# timetables that each makes, the best is taken.
HOLDS = (1.5, np.inf)
# Counts of rounds for which timetables are made.
CANDIDATES = 2
# Values that differ by less are the same.
NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """When HiGHS is asked, and for how long.

    Attributes
    ----------
    time_limit_s : of one solve; a guard, nodes end it first
    gap : relative gap that is good enough
    cells : jobs x rounds beyond which HiGHS is not asked
    nodes : of its search
    """

    time_limit_s: float
    gap: float = 0.005
    cells: int = 400
    nodes: int = 20


@dataclass(frozen=True, slots=True)
class Solution:
    """A timetable and how good it is.

    Attributes
    ----------
    runs : (n, rounds) whether a job runs in a round
    value : what it is worth, equation 11
    bound : what no timetable exceeds
    slopes, price : of the relaxation
    asked : whether HiGHS was asked
    """

    runs: Bools
    value: float
    bound: float
    slopes: Floats
    price: float
    asked: bool = False

    @property
    def gap(self) -> float:
        """What the timetable may lose, relative to its value; values are losses, at most 0."""
        lost = self.bound - self.value
        return 0.0 if lost < NOTHING else lost / max(abs(self.value), NOTHING)


def share_lost(programme: Programme, solution: Solution) -> float:
    """What the timetable may lose, relative to its value or to that of idling, whichever is larger.

    Values near 0, where all jobs are about to end, tell nothing as a measure; what idling would cost still does.
    """
    idle = programme.value(np.zeros_like(solution.runs))
    lost = solution.bound - solution.value
    return 0.0 if lost < NOTHING else lost / max(abs(solution.value), abs(idle), NOTHING)


def solve(programme: Programme, limits: Limits) -> Solution:
    """The best timetable found, and the bound."""
    relaxed = relax(programme)
    runs, value = incumbent(programme, relaxed, limits.gap)
    solution = Solution(runs, value, relaxed.bound, relaxed.slopes, relaxed.price)
    if solution.gap <= limits.gap or solution.runs.size > limits.cells:
        return solution
    solution = replace(solution, asked=True)
    answer = improve(programme, runs, limits.gap, limits.nodes, limits.time_limit_s)
    if answer is None:
        return solution
    improved, bound = answer
    # HiGHS counts with its own tolerances; what it found is priced by our own. Of two alike the first is taken.
    runs, value = max((runs, value), (improved, programme.value(improved)), key=lambda one: rounded(one[1]))
    return replace(solution, runs=runs, value=value, bound=min(bound, solution.bound))


def incumbent(programme: Programme, relaxed: Relaxed, gap: float) -> tuple[Bools, float]:
    """The best of some timetables, repaired where it is not within the gap, and its value."""
    made = []
    for counts in _best_counts(programme, relaxed):
        urgency = _worth(relaxed.slopes, counts)
        made += [(timetable(programme, counts, urgency, relaxed.slopes, hold), urgency) for hold in HOLDS]
    values = [programme.value(runs) for runs, _ in made]
    best = int(np.argmax(rounded_all(np.array(values))))
    enough = relaxed.bound - gap * abs(values[best])
    # Within the gap already, and repairs cost time.
    if values[best] >= enough:
        return made[best][0], values[best]
    return max((repair(programme, *one, enough) for one in made), key=lambda one: rounded(one[1]))


def _best_counts(programme: Programme, relaxed: Relaxed) -> list[Ints]:
    """Counts that would be worth most if each job ran in one piece, without repetition."""
    rows = np.arange(programme.jobs)
    distinct = {counts.tobytes(): counts for counts in relaxed.counts}

    def value(counts: Ints) -> float:
        makespan_s = programme.makespan_s(programme.left_after_s[rows, counts])
        return rounded(float(programme.gains[rows, counts].sum()) - programme.makespan_price * makespan_s)

    return sorted(distinct.values(), key=value, reverse=True)[:CANDIDATES]


def _worth(slopes: Floats, counts: Ints) -> Floats:
    """What a round of those that each job is to run is worth on average, a GPU, (n,)."""
    last = np.maximum(0, counts - 1)
    total = np.cumsum(slopes, axis=1)[np.arange(len(counts)), last]
    return rounded_all(total / (last + 1))
