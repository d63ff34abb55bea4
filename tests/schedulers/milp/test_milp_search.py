"""Orders of jobs and what comes of them, against plain lists."""

import numpy as np
import pytest

from jobcast.schedulers.milp.instance import Instance
from jobcast.schedulers.milp.programme import every_step
from jobcast.schedulers.milp.search import PARTS, improved, inserted, plain_orders, relaxed_orders
from tests.schedulers.milp.milp_cases import draw, usage


def one_by_one(instance, order):
    """Each job at its earliest start beside all others, which stand at their cut-offs until it is their turn."""
    start = instance.cutoff.tolist()
    for job in order:
        tried = ([*start[:job], begin, *start[job + 1 :]] for begin in range(instance.submit[job], start[job] + 1))
        start = next(one for one in tried if usage(instance, one).sum(axis=0).max() <= instance.gpus)
    return start


@pytest.mark.parametrize("seed", range(6))
def test_jobs_are_moved_forward_in_order(seed):
    _, instance = draw(seed, jobs=12, quotas=(3, 2), span=8, longest=6)
    order = np.random.default_rng(seed).permutation(len(instance))
    assert inserted(instance, order).tolist() == one_by_one(instance, order.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_orders_that_wait_no_longer_are_kept(seed):
    _, instance = draw(seed, jobs=9, quotas=(3, 2), span=6, longest=6)
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(instance), 25)
    places = picks + (1 + rng.exponential(10.0, 25).astype(int)) * rng.choice([-1, 1], 25)
    order = np.argsort(-instance.duration)
    kept, best = order.tolist(), one_by_one(instance, order)
    least = sum(best)
    for pick, place in zip(picks.tolist(), places.clip(0, len(instance) - 1).tolist(), strict=True):
        tried = kept.copy()
        tried.insert(place, tried.pop(pick))
        start = one_by_one(instance, tried)
        best = start if sum(start) < least else best
        if sum(start) <= least:
            kept, least = tried, sum(start)
    assert improved(instance, order, 25, seed).tolist() == best


def test_orders_by_rules_of_thumb():
    """Work: 3, 4, 3."""
    submit, duration, width, pool, cutoff, quotas = map(np.array, zip(*[(0, 3, 1, 0, 4, 3)] * 3, strict=True))
    submit[2], duration[1:], width[1:], cutoff[1:] = 1, [2, 1], [2, 3], 2
    instance = Instance(submit, duration, width, pool, cutoff, quotas[:1], 1.0, 0.0)
    found = [order.tolist() for order in plain_orders(instance)]
    assert found == [[0, 1, 2], [0, 2, 1], [0, 1, 2], [2, 1, 0], [2, 1, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_orders_of_a_relaxation(seed):
    """Shares in sixteenths, so that sums are exact."""
    _, instance = draw(seed, jobs=8, quotas=(3, 2), span=6, longest=6)
    steps, rng, jobs = every_step(instance), np.random.default_rng(seed), range(8)
    starts = [steps.start[steps.job == job].tolist() for job in jobs]
    share = [(rng.multinomial(16, np.full(len(one), 1 / len(one))) / 16).tolist() for one in starts]
    expected = []
    for part in PARTS.tolist():
        begun = [
            next(start for at, start in enumerate(starts[job]) if sum(share[job][: at + 1]) >= part - 1e-9)
            for job in jobs
        ]
        expected += [
            sorted(jobs, key=begun.__getitem__),
            sorted(jobs, key=lambda job: begun[job] + part * float(instance.duration[job])),
        ]
    mean = [sum(a * b for a, b in zip(*both, strict=True)) for both in zip(share, starts, strict=True)]
    middle = [mean[job] + instance.duration[job] / 2 for job in jobs]
    expected += [sorted(jobs, key=one.__getitem__) for one in (mean, middle)]
    found = relaxed_orders(instance, steps, np.concatenate(share))
    assert [order.tolist() for order in found] == expected
    assert pytest.approx([one / 20 for one in range(1, 21)]) == PARTS.tolist()
