"""Reservations in a step function: by hand, and against lists of events that are added up anew."""

from math import inf, nan
from random import Random

import numpy as np
import pytest

from jobcast.schedulers.availability import Availability, Reserving

HAIR_S = 4e-7
"""Less than instants may be apart that are one."""


def reserved(now_s, free, changes, rows, left=0.0, anew=False, first=0):
    """Begins of reservations, and the place that is told; rows of GPUs, seconds, room, begin of the one there is."""
    at_s, gpus = (np.array(column, dtype=float) for column in zip(*changes, strict=True)) if changes else ([], [])
    jobs = Reserving(*(np.array(column, dtype=float) for column in zip(*rows, strict=True)))
    steps = Availability(now_s, free, np.array(at_s), np.array(gpus), len(rows))
    place = steps.reserve(jobs, first, left, anew)
    return jobs.reserved_s.tolist(), place


def plainly(now_s, free, changes, rows, left, anew, first):
    """The same, from a list of changes."""
    changes, begins = list(changes), [row[3] for row in rows]

    def there(at_s):
        return free + sum(gpus for change_s, gpus in changes if change_s <= at_s)

    def earliest(gpus, run_s):
        edges = sorted({now_s, *(at_s for at_s, _ in changes)})
        for begin_s in edges:
            if all(there(at_s) >= gpus for at_s in edges if begin_s <= at_s < begin_s + run_s):
                return begin_s
        return inf

    for place, (gpus, run_s, room, had_s) in list(enumerate(rows))[first:]:
        if had_s != had_s or gpus > room or anew:
            if had_s == had_s:
                changes += [(had_s, gpus), (had_s + run_s, -gpus)]
            begin_s = inf if gpus > room else earliest(gpus, run_s)
            begins[place] = nan if begin_s == inf else begin_s
            if begin_s < inf:
                changes += [(begin_s, -gpus), (begin_s + run_s, gpus)]
        if begins[place] <= now_s and gpus <= left:
            return begins, place
    return begins, len(rows)


def scene(rng):
    """Whole seconds and GPUs: what is free, runs that end, jobs, some with reservations that are in force."""
    now_s = rng.choice((0, 1_700_000_000))
    changes = [(now_s + rng.randint(0, 12), rng.randint(1, 4)) for _ in range(rng.randint(0, 5))]
    rows = []
    for _ in range(rng.randint(1, 7)):
        gpus, run_s, begin_s = rng.randint(1, 4), rng.randint(1, 9), now_s + rng.randint(0, 12)
        has = rng.random() < 0.3
        rows.append((gpus, run_s, rng.choice((inf, inf, inf, 2)), begin_s if has else nan))
        changes += [(begin_s, -gpus), (begin_s + run_s, gpus)] if has else []
    return now_s, rng.randint(0, 6), changes, rows, rng.choice((0, 0, 1, 4)), rng.random() < 0.5, rng.randint(0, 1)


def test_reservations_are_those_of_the_plain_rule():
    rng = Random(0)
    for _ in range(600):
        drawn = scene(rng)
        begins, place = reserved(*drawn)
        assert (pytest.approx(begins, nan_ok=True), place) == plainly(*drawn), drawn


def test_in_order_each_at_the_first_instant_with_room_for_its_whole_time():
    # 1 GPU is free, 2 more from 10 on. The wide job from 10 to 15; 5 s fit before it, 12 s after it.
    rows = [(3, 5.0, inf, nan), (1, 12.0, inf, nan), (1, 10.0, inf, nan), (1, 1.0, 0, nan), (4, 1.0, inf, nan)]
    found, place = reserved(0.0, 1.0, [(10.0, 2.0)], rows)
    assert (found, place) == (pytest.approx([10.0, 15.0, 0.0, nan, nan], nan_ok=True), 5)


def test_it_stops_at_the_first_that_can_start_and_goes_on_behind_it():
    rows = [(2, 5.0, inf, nan), (1, 3.0, inf, nan), (1, 3.0, inf, nan)]
    assert reserved(0.0, 1.0, [(3.0, 1.0)], rows, left=1.0)[1] == 1
    assert reserved(0.0, 1.0, [(3.0, 1.0)], rows, left=1.0, first=2)[1] == 2
    assert reserved(0.0, 1.0, [(3.0, 1.0)], rows, left=0.5)[1] == 3  # others hold what its pool would have free


@pytest.mark.parametrize("off_s", [-HAIR_S, 0.0, HAIR_S])
def test_instants_a_hair_apart_are_one(off_s):
    # Of 2 GPUs one comes free at 10, one a hair beside it; a job holds both until 20, a hair before or after which the
    # next begins, and one fits in between that takes as long, but for a hair.
    found, _ = reserved(0.0, 1.0, [(10.0, 1.0), (10.0 + off_s, 1.0)], [(2, 10.0, inf, nan), (1, 10.0, inf, nan)])
    assert found == [pytest.approx(10.0, abs=HAIR_S), 0.0]
    rows = [(3, 10.0, inf, nan), (3, 10.0, inf, nan), (1, 10.0 + off_s, inf, nan)]
    found, _ = reserved(0.0, 1.0, [(10.0, 2.0)], rows)
    assert found == [10.0, 20.0, 0.0]
    # Where one takes over a GPU from another it is never short of one.
    assert reserved(0.0, 1.0, [(10.0, -1.0), (10.0 + off_s, 1.0)], [(1, 30.0, inf, nan)])[0] == [0.0]
    # What begins a hair from now begins now.
    assert reserved(10.0, 1.0, [], [(1, 5.0, inf, 10.0 + off_s)], left=1.0)[1] == 0


def test_reservations_a_hair_apart_are_taken_back_whole():
    # From 10 to 20 somebody holds the GPU, reckoned a hair too long: once that is given back nothing is left of it.
    taken = [(10.0, -1.0), (20.0 + HAIR_S, 1.0)]
    found, _ = reserved(0.0, 1.0, taken, [(1, 10.0, inf, 10.0 + HAIR_S), (1, 30.0, inf, nan)], anew=True)
    assert found == [0.0, 10.0]


def test_parts_of_gpus_add_up_to_whole_ones():
    assert reserved(0.0, 0.1 + 0.2 + 0.7 - 1e-9, [], [(1, 5.0, inf, nan)])[0] == [0.0]
