from collections import Counter

import pytest

from jobcast.schedulers.round_rules import GandivaFair
from tests.schedulers.rounds_driver import active, seqs, state


def test_equal_shares_whatever_the_width():
    jobs = [active(seq, gpus) for seq, gpus in enumerate([1, 2, 4, 8])]
    assert GandivaFair().shares(state(jobs, 3)) == [0.75] * 4
    assert GandivaFair().shares(state(jobs, 32)) == [1.0] * 4


def test_the_stride_runs_the_smallest_pass():
    # passes by width: 100, 200, 50; by equal tickets: 400, 200, 50
    jobs = [active(0, 4, held_s=100.0), active(1, 1, held_s=200.0), active(2, 1, held_s=50.0)]
    policy = GandivaFair()
    policy.choose(state([active(0, 4), active(1), active(2)], 5))
    assert seqs(policy.choose(state(jobs, 5))) == [2, 0]
    equal = GandivaFair(tickets="equal")
    equal.choose(state([active(0, 4), active(1), active(2)], 5))
    assert seqs(equal.choose(state(jobs, 2))) == [2, 1]


def test_who_arrives_neither_catches_up_nor_waits():
    policy = GandivaFair()
    policy.choose(state([active(0), active(1)], 1))
    later = [active(0, held_s=600.0), active(1, held_s=480.0), active(2)]
    assert set(seqs(policy.choose(state(later, 2)))) == {1, 2}
    # the newcomer began at 480: after 240 s it stands at 720 and has its turn behind the others
    even_later = [active(0, held_s=600.0), active(1, held_s=600.0), active(2, held_s=240.0)]
    assert set(seqs(policy.choose(state(even_later, 2)))) == {0, 1}


@pytest.mark.parametrize(("lottery", "tolerance"), [(False, 0.02), (True, 0.06)])
def test_time_goes_by_weight(lottery, tolerance):
    policy, held = GandivaFair(lottery=lottery, seed=1), Counter()
    for index in range(900):
        jobs = [active(0, held_s=120.0 * held[0]), active(1, held_s=120.0 * held[1], weight=2.0)]
        held.update(seqs(policy.choose(state(jobs, 1, now_s=120.0 * index))))
    assert held[1] / 900 == pytest.approx(2 / 3, abs=tolerance)


def test_by_width_gangs_get_the_time_of_singles_and_by_equal_tickets_its_part():
    # a gang of 2 and two singles on 2 GPUs: half of the time each by width; a third of the GPU time each by tickets
    for tickets, gang in (("width", 1 / 2), ("equal", 1 / 3)):
        policy, held = GandivaFair(tickets=tickets), Counter()
        for index in range(600):
            jobs = [active(seq, gpus, held_s=120.0 * held[seq]) for seq, gpus in enumerate([2, 1, 1])]
            held.update(seqs(policy.choose(state(jobs, 2, now_s=120.0 * index))))
        assert held[0] / 600 == pytest.approx(gang, abs=0.02)


def test_seeds_settle_ties_and_draws():
    jobs = [active(seq) for seq in range(40)]
    for lottery in (False, True):
        picks = [seqs(GandivaFair(lottery=lottery, seed=seed).choose(state(jobs, 5))) for seed in (1, 1, 2)]
        assert picks[0] == picks[1] != picks[2]
