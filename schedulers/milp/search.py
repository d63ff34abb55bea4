"""Schedules from rules of thumb: what branch and bound begins with."""

from collections.abc import Iterator

import numpy as np

from jobcast.schedulers.milp.columns import Steps
from jobcast.schedulers.milp.instance import Floats, Instance, Ints

PARTS = np.linspace(0.05, 1.0, 20)
"""Shares of a job after which the relaxation's start counts as its place in an order."""
REACH = 10.0
"""Mean number of places that a job is moved by in an order."""


def virtual_clock_starts(instance: Instance) -> Ints:
    """Starts under SIA_VC on the grid, (n_jobs,). SIA, section 5.1."""
    from jobcast.schedulers.milp.search_kernels import virtual_clock

    order = np.lexsort((np.arange(len(instance)), instance.cutoff))
    found: Ints = virtual_clock(*_arrays(instance), order)
    return found


def inserted(instance: Instance, order: Ints) -> Ints:
    """Starts when jobs are moved forward from their cut-offs in this order, each as far as the others allow."""
    from jobcast.schedulers.milp.search_kernels import insert

    start = np.zeros(len(instance), dtype=np.int64)
    insert(*_arrays(instance), order, np.zeros(instance.steps + 1, dtype=np.int64), start)
    return start


def improved(instance: Instance, order: Ints, tries: int, seed: int) -> Ints:
    """The best starts found by moving jobs within an order, (n_jobs,)."""
    from jobcast.schedulers.milp.search_kernels import improve_order

    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(instance), tries)
    shifts = (1 + rng.exponential(REACH, tries).astype(np.int64)) * rng.choice([-1, 1], tries)
    found: Ints = improve_order(*_arrays(instance), order.copy(), picks, shifts)
    return found


def plain_orders(instance: Instance) -> Iterator[Ints]:
    """By submission, by work, by width, by cut-off, by run time."""
    work = instance.width * instance.duration
    for first, second in (
        (instance.submit, work),
        (work, instance.submit),
        (instance.width, instance.duration),
        (instance.cutoff, work),
        (instance.duration, instance.width),
    ):
        yield np.lexsort((second, first))


def relaxed_orders(instance: Instance, steps: Steps, share: Floats) -> Iterator[Ints]:
    """By when the relaxation has begun a part of each job, for several parts; by its mean start and mean middle."""
    sums = np.cumsum(share)
    begun = sums - (sums[steps.first[:-1]] - share[steps.first[:-1]])[steps.job]
    for part in PARTS:
        reached = np.flatnonzero(begun >= part - 1e-6)
        place = np.full(len(instance), steps.start.max())
        jobs, at = np.unique(steps.job[reached], return_index=True)
        place[jobs] = steps.start[reached[at]]
        yield np.argsort(place, kind="stable")
        yield np.argsort(place + part * instance.duration, kind="stable")
    mean = np.add.reduceat(share * steps.start, steps.first[:-1])
    yield np.argsort(mean, kind="stable")
    yield np.argsort(mean + instance.duration / 2, kind="stable")


def _arrays(instance: Instance) -> tuple[Ints, Ints, Ints, Ints, int]:
    return instance.submit, instance.duration, instance.width, instance.cutoff, instance.gpus
