import pytest

from jobcast.schedulers.round_rules import ThemisFilter
from tests.schedulers.rounds_driver import Known, active, seqs, state

# At 600 s with 3 jobs on 1 GPU the contention is 3. Fairness (Shockwave, equation 9):
# 0: (600 + 3 x 300) / (3 x 600) = 0.83; 1: (600 + 3 x 600) / (3 x 600) = 1.33; 2: (600 + 3 x 1000) / (3 x 1000) = 1.2
KNOWN = Known({0: 600.0, 1: 600.0, 2: 1000.0})
JOBS = [active(0, held_s=300.0), active(1), active(2)]


@pytest.mark.parametrize(
    ("share", "chosen"),
    [
        (1 / 3, 1),  # the worst treated alone is offered the round
        (2 / 3, 1),  # of 1 and 2 the one of the earlier completion gains more: 2400 s before 3600 s
        (1.0, 0),  # of all it is job 0, 1500 s
    ],
)
def test_the_filter_offers_and_the_gain_decides(share, chosen):
    assert seqs(ThemisFilter(KNOWN, filter=share).choose(state(JOBS, 1, now_s=600.0))) == [chosen]


def test_the_winners_are_the_best_set_that_fits():
    # gains fall with the completion: 3 GPUs for 500 s against 2 + 2 GPUs for 600 s each
    known = Known({0: 500.0, 1: 600.0, 2: 600.0})
    jobs = [active(0, 3), active(1, 2), active(2, 2)]
    assert seqs(ThemisFilter(known, filter=1.0).choose(state(jobs, 4))) == [1, 2]


def test_what_the_winners_leave_goes_to_the_worst_treated():
    # offered: job 1 alone; on 3 GPUs the contention is 1, and fairness 1.5, 2 and 1.6
    jobs = [active(0, held_s=300.0), active(1), active(2, 2)]
    assert seqs(ThemisFilter(KNOWN, filter=1 / 3).choose(state(jobs, 3, now_s=600.0))) == [1, 2]
