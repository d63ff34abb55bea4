"""Numbers of workers as goods of the market: each job buys that which is worth most to it at a GPU-round's price.

Shockwave, section 8.2: its market "can be easily re-parameterized to support worker scaling". Here a job has one number
of GPUs throughout a window, as a change costs a start, and equation 11 is maximised over these numbers and timetables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.rounds import ActiveJob
from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.relaxation import Relaxed, relax
from jobcast.schedulers.shockwave.solver import incumbent

# Improvements at most.
STEPS = 20
# Other numbers of all jobs up to which each change of one job, and of two, is tried where prices show none: gangs that
# just do not fit beside each other have no price.
SINGLY, IN_PAIRS = 24, 12


@dataclass(frozen=True, slots=True)
class Numbers:
    """GPUs that jobs may have, (n, k) for k columns; of a job that may have fewer than k the last one is repeated.

    Attributes
    ----------
    gpus : (n, k) ascending
    speeds : (n, k) progress on them over that on the GPUs that the job asks for
    asked : (n,) column of those
    held : (n,) GPUs held in the round before, 0 of who waits
    """

    gpus: Ints
    speeds: Floats
    asked: Ints
    held: Ints

    def at(self, columns: Ints) -> tuple[Ints, Floats, Bools]:
        """GPUs, speeds and whether these very GPUs are held, (n,) each, in some column of each job."""
        rows = np.arange(len(columns))
        gpus = self.gpus[rows, columns]
        return gpus, self.speeds[rows, columns], gpus == self.held

    def column(self, row: int, gpus: int) -> int:
        """Where a job's number stands, that asked for where it may not have it any more."""
        found = np.flatnonzero(self.gpus[row] == gpus)
        return int(found[0]) if len(found) else int(self.asked[row])


def numbers_of(active: Sequence[ActiveJob], scales: bool) -> Numbers:
    """What active jobs may have; all keep what they ask for unless the policy `scales`."""
    options = [one.speeds if scales and one.speeds else {one.job.gpus: 1.0} for one in active]
    most = max(len(one) for one in options)
    padded = [[*one.items()] + [[*one.items()][-1]] * (most - len(one)) for one in options]
    table = np.array(padded, dtype=np.float64).reshape(len(active), most, 2)
    gpus = table[:, :, 0].astype(np.int64)
    asked = np.array([one.job.gpus for one in active], dtype=np.int64)
    held = np.array([one.holds for one in active], dtype=np.int64)
    return Numbers(gpus, table[:, :, 1], (gpus == asked[:, None]).argmax(axis=1), held)


def scaled(programme: Programme, numbers: Numbers, columns: Ints) -> Programme:
    """A programme of the GPUs asked for, with others: jobs are as much faster and wider; a change is a start."""
    if numbers.gpus.shape[1] == 1:
        return programme
    gpus, speed, held = numbers.at(columns)
    return replace(
        programme,
        work=replace(programme.work, epoch_s=programme.work.epoch_s / speed[:, None]),
        cautious_s=programme.cautious_s / speed,
        loads=programme.loads * (gpus / programme.widths),
        widths=gpus,
        running=programme.running & held,
        whole_as_asked=programme.whole,
    )


def best_columns(programme: Programme, numbers: Numbers, columns: Ints) -> Ints:
    """Columns of `numbers`, (n,), with which the programme is worth most, from some on by improvements.

    All jobs move to what is worth most to them at the prices of the moment. Where the best timetable found is then
    worth no more, only the half of them that gains most does, and so on; where nothing is left and there are few jobs,
    each change of one or two is tried.
    """
    if numbers.gpus.shape[1] == 1:
        return columns
    found = _worth(programme, numbers, columns)
    for _ in range(STEPS):
        for tried in _proposals(programme, numbers, columns, *found[1:]):
            there = _worth(programme, numbers, tried)
            if rounded(there[0]) > rounded(found[0]):
                columns, found = tried, there
                break
        else:
            break
    return columns


def _worth(programme: Programme, numbers: Numbers, columns: Ints) -> tuple[float, Relaxed, float]:
    """Value of the best timetable that is found without repairs, the relaxation, and that timetable's makespan."""
    here = scaled(programme, numbers, columns)
    relaxed = relax(here)
    runs, value = incumbent(here, relaxed, np.inf)
    return value, relaxed, here.makespan_s(here.held_left_s(runs.sum(axis=1), here.starts(runs)))


def _proposals(
    programme: Programme, numbers: Numbers, columns: Ints, relaxed: Relaxed, makespan_s: float
) -> Iterator[Ints]:
    surplus = surpluses(programme, numbers, relaxed, makespan_s)
    rows, wanted = np.arange(len(columns)), surplus.argmax(axis=1)
    gains = surplus[rows, wanted] - surplus[rows, columns]
    movers = np.flatnonzero(gains > 0.0)
    movers = movers[np.argsort(-gains[movers], kind="stable")]
    while len(movers):
        yield np.where(np.isin(rows, movers), wanted, columns)
        movers = movers[: len(movers) // 2]
    # Those that are repeated beyond a job's last number are none.
    others = (np.diff(numbers.gpus, axis=1, prepend=0) > 0) & (numbers.gpus != numbers.gpus[rows, columns][:, None])
    changes = np.argwhere(others)
    for count in (1, 2):
        if len(changes) <= (SINGLY, IN_PAIRS)[count - 1]:
            for some in combinations(changes, count):
                tried = columns.copy()
                tried[[row for row, _ in some]] = [column for _, column in some]
                yield tried


def surpluses(programme: Programme, numbers: Numbers, relaxed: Relaxed, makespan_s: float = np.inf) -> Floats:
    """What jobs gain with each number of GPUs at the relaxation's prices beyond what they pay, (n, k).

    The sum of the greatest of each, and what all GPU-rounds cost, is at least what any timetable with any numbers is
    worth: the relaxation's bound, in which each job has all its numbers. Prices do not tell that who has few GPUs may
    become the longest job: what it then has left beyond `makespan_s` counts against it.
    """
    columns = []
    counts = np.arange(programme.rounds + 1)
    for column in range(numbers.gpus.shape[1]):
        here = scaled(programme, numbers, np.full(programme.jobs, column))
        share = relaxed.theta * here.loads + relaxed.nu
        values = here.gains - programme.makespan_price * share[:, None] * here.left_after_s
        values -= programme.makespan_price * np.maximum(0.0, here.left_after_s - makespan_s)
        columns.append((values - relaxed.price * here.widths[:, None] * counts).max(axis=1))
    return rounded_all(np.stack(columns, axis=1))
