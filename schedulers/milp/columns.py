"""Possible starts of jobs, the columns of the programme: every step, or steps as far apart as the job is long.

SIA, appendix A: variables exist only where a job may be active, and a job of ten hours has as many as one of ten
minutes. A start is exact wherever it lies, so that capacity is too; only how many starts are offered differs.
"""

from dataclasses import dataclass

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.milp.instance import Bools, Floats, Instance, Ints

MOST_STARTS = 10_000_000
"""Possible starts that an instance may have: about a gigabyte while they are priced."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by (job, start), each job's starts ascending.

    Attributes
    ----------
    job, start : (n_columns,) which job, and the step that it starts at
    begin, end : (n_columns,) steps [begin, end) in which it is sure to hold its GPUs
    tail : (n_columns,) whether the column stands for all later starts as well, which hold less than it says
    """

    job: Ints
    start: Ints
    begin: Ints
    end: Ints
    tail: Bools

    def __len__(self) -> int:
        return len(self.job)

    def of(self, start: Ints) -> Floats:
        """Values of the columns in a schedule, (n_columns,): a start beyond all columns of its job is its tail."""
        chosen = self.start == start[self.job]
        values: Floats = (chosen | (self.tail & (start[self.job] >= self.start))).astype(np.float64)
        return values


@dataclass(frozen=True, slots=True)
class Steps:
    """Every possible start of every job.

    Attributes
    ----------
    job, start : (n_starts,)
    first : (n_jobs + 1,) where each job's starts begin, and their number last
    """

    job: Ints
    start: Ints
    first: Ints

    def at(self, start: Ints, instance: Instance) -> Ints:
        """Positions of the starts of a schedule, (n_jobs,)."""
        positions: Ints = self.first[:-1] + start - instance.submit
        return positions

    def columns(self, instance: Instance, chosen: Bools) -> Columns:
        """Columns of the chosen starts."""
        job, start = self.job[chosen], self.start[chosen]
        return Columns(job, start, start, start + instance.duration[job], np.zeros(len(job), dtype=np.bool_))


def every_step(instance: Instance) -> Steps:
    """All starts from submission to cut-off. SIA, Figure 19, constraint 10. Raises ConfigError when they are many."""
    counts = instance.cutoff - instance.submit + 1
    if counts.sum() > MOST_STARTS:
        raise ConfigError(
            f"policy milp: {len(instance)} jobs have {counts.sum():,} possible starts, more than {MOST_STARTS:,}; "
            "take fewer jobs (--until, --limit), or round the trace to a coarser grid and --set grid_s"
        )
    first: Ints = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    job: Ints = np.repeat(np.arange(len(instance), dtype=np.int64), counts)
    start: Ints = np.arange(first[-1], dtype=np.int64) - first[job] + instance.submit[job]
    return Steps(job, start, first)


def sized_by_duration(instance: Instance, steps: Steps, starts_per_duration: int) -> Bools:
    """Starts offered where a job's are duration / `starts_per_duration` apart, (n_starts,): submission and cut-off too.

    Raises ValueError unless `starts_per_duration` is 1 or more.
    """
    if starts_per_duration < 1:
        raise ValueError(f"starts_per_duration must be 1 or more, got {starts_per_duration}")
    apart = np.maximum(1, instance.duration // starts_per_duration)[steps.job]
    regular = (steps.start - instance.submit[steps.job]) % apart == 0
    offered: Bools = regular | (steps.start == instance.cutoff[steps.job])
    return offered


def with_tails(instance: Instance, steps: Steps, open_: Bools, reach: Ints) -> Columns:
    """Columns of the open starts within `reach` steps of waiting, and one a job for all open ones beyond.

    A tail is priced as the first of the starts that it stands for, and holds GPUs only while all of them would: the
    programme is then a relaxation, and exact where no tail is used. `open_` is (n_starts,), `reach` (n_jobs,).
    """
    near = steps.start - instance.submit[steps.job] <= reach[steps.job]
    far = np.flatnonzero(open_ & ~near)
    firsts = far[np.unique(steps.job[far], return_index=True)[1]]
    chosen = np.flatnonzero(open_ & near)
    at = np.sort(np.concatenate([chosen, firsts]))
    job, start, tail = steps.job[at], steps.start[at], ~near[at]
    begin = np.where(tail, instance.cutoff[job], start)
    return Columns(job, start, begin, np.maximum(begin, start + instance.duration[job]), tail)
