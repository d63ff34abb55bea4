"""Repairs a timetable where its longest job, which decides the makespan, lacks a round or was cut in pieces."""

import numpy as np

from jobcast.domain.rounding import rounded, rounded_all
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.work import Bools, Floats

STEPS = 40
"""Repairs at most; each shortens the time left of one job."""


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
