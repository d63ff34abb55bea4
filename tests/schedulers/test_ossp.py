import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.ossp import OpenShop, Window, best_rounds, longest_first
from tests.schedulers.rounds_driver import ROUND_S, Known, active, drive, job, seqs, state


def test_the_longest_go_first():
    known = Known({0: 600.0, 1: 2400.0, 2: 1200.0})
    policy = OpenShop(known)
    assert seqs(policy.choose(state([active(0), active(1), active(2)], 2))) == [1, 2]
    assert policy.gap_max == pytest.approx(20.0 / 2400.0)  # one restart of the longest job


def test_equals_do_not_take_turns():
    left_s, running = np.array([1000.0, 900.0, 1700.0]), np.array([False, True, False])
    assert longest_first(left_s, running, 600.0) == [2, 1, 0]


def test_the_makespan_of_a_batch_is_its_bound():
    # 2 GPUs, jobs of 10, 6, 5, 4 and 3 rounds: 28 / 2 = 14 rounds, and some time for restarts
    lengths = [10, 6, 5, 4, 3]
    jobs = [job(seq) for seq in range(5)]
    run_s = {seq: ROUND_S * length - 20.0 for seq, length in enumerate(lengths)}
    assert len(drive(OpenShop(Known(run_s)), jobs, run_s, 2)) == 14


def test_the_programme_does_better_than_the_longest_first():
    # 3 GPUs, 4 rounds: after 2 + 1 the two jobs of width 2 need all of their rounds; longest first starts the widest
    # together with none beside it. Found by hand: 3 | 2 + 1 | 2 + 1 | 2 + 1 leaves nothing.
    window = Window(np.array([1.0, 3.0, 3.0]), np.array([3, 2, 1]), 3, 1.0, 4, np.zeros(3, bool), 0.0)
    runs, proved_s = best_rounds(window)
    assert window.bound_after_s(runs) == 0.0
    assert proved_s == 0.0
    assert (window.widths @ runs <= 3).all()


@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([1, 2, 3, 4])), min_size=1, max_size=6),
    rounds=st.integers(1, 3),
)
def test_what_highs_proves_is_no_more_than_what_it_finds(rows, rounds):
    left, widths = np.array(rows).T
    window = Window(120.0 * left, widths, 4, 120.0, rounds, np.zeros(len(left), bool), 0.0)
    runs, proved_s = best_rounds(window)
    assert (window.widths @ runs <= 4).all()
    floor_s = max(0.0, window.bound_s(window.left_s) - 120.0 * rounds)
    assert floor_s - 1e-6 <= proved_s <= window.bound_after_s(runs) + 1e-6


def test_the_programme_runs_each_job_as_long_as_it_needs():
    # 4 GPUs, 2 rounds. By length with a tie: 0 (3 GPUs) and 1 (1 GPU) first, then 2 and 3 (2 GPUs each); all are
    # done after 2 rounds. With 1 the longest, 0 beside it, and 3 rounds of 1 to come nothing can be better.
    window = Window(
        np.array([120.0, 240.0, 120.0]), np.array([3, 1, 2]), 4, 120.0, 2, np.array([False, False, False]), 0.0
    )
    runs, _ = best_rounds(window)
    assert runs.sum(axis=1).tolist() == [1, 2, 1]
    chained = window.chained(np.array([[False, True], [True, True], [True, False]]))
    assert chained.shape == (3, 2)


def test_no_progress_beyond_what_is_left_counts_for_the_load():
    # 4 GPUs, 2 rounds: 16 GPU-rounds are left. Once the first is done a round of another leaves 9 / 4 rounds, a second
    # of the first would leave 12 / 4.
    window = Window(np.array([120.0, 240.0, 240.0]), np.array([4, 3, 3]), 4, 120.0, 2, np.zeros(3, bool), 0.0)
    runs, proved_s = best_rounds(window)
    assert sorted(runs.sum(axis=1).tolist()) == [0, 1, 1]
    assert (window.bound_after_s(runs), proved_s) == (270.0, pytest.approx(270.0))


def test_restarts_count_in_the_bound_and_chains_have_few():
    window = Window(
        np.array([600.0, 600.0]), np.array([1, 1]), 1, 120.0, 4, running=np.array([False, True]), restart_s=20.0
    )
    turns = np.array([[True, False, True, False], [False, True, False, True]])
    # 2 starts of the first, 2 of the second; chained: 1 of the first, and the second goes on
    assert window.bound_after_s(turns) == pytest.approx(1200.0 - 4 * 120.0 + 4 * 20.0)
    assert window.chained(turns).tolist() == [[False, False, True, True], [True, True, False, False]]
    assert window.bound_after_s(window.chained(turns)) == pytest.approx(1200.0 - 4 * 120.0 + 20.0)


@pytest.mark.parametrize(
    ("left_s", "running", "gap", "asked", "lost"),
    [
        (0.5, True, 0.0, False, 0.0),  # both are done within the window of ten rounds
        (1200.0, True, 0.0, False, 0.0),
        (115.0, False, 0.0, False, 0.0),  # in the second of them: 100 s of the first are left by the restart
        (3000.0, True, 0.0, False, 0.0),  # both run in all rounds: nothing is lost
        (3000.0, False, 0.007, False, 20.0 / 3000.0),  # a restart of 20 s is, which is less than 21 s
        (3000.0, False, 0.006, True, 20.0 / 3000.0),
    ],
)
def test_the_solver_is_asked_where_more_than_the_gap_may_be_lost(monkeypatch, left_s, running, gap, asked, lost):
    windows = []

    def counted(window):
        windows.append(window)
        return None, 0.0

    monkeypatch.setattr("jobcast.schedulers.ossp.best_rounds", counted)
    policy = OpenShop(Known({0: left_s, 1: left_s}), gap=gap)
    assert seqs(policy.choose(state([active(0, running=running), active(1, running=running)], 2))) == [0, 1]
    assert len(windows) == asked
    # What no schedule can beat: ten rounds off what is left.
    assert policy.gap_max == pytest.approx(lost)


@pytest.mark.parametrize(("rounds", "first"), [(4.5, 0), (5.5, 1)])
def test_a_waiting_job_must_be_five_rounds_longer_to_take_a_place(rounds, first):
    known = Known({0: 1000.0, 1: 1000.0 + rounds * ROUND_S})
    assert seqs(OpenShop(known, gap=1.0).choose(state([active(0, running=True), active(1)], 1))) == [first]


@pytest.mark.parametrize(("most", "rounds"), [(1, 1), (3, 1), (6, 2)])
def test_a_programme_that_would_be_too_large_looks_less_far_ahead(monkeypatch, most, rounds):
    asked = []

    def counted(window):
        asked.append(window.rounds)
        return None, 0.0

    monkeypatch.setattr("jobcast.schedulers.ossp.best_rounds", counted)
    monkeypatch.setattr("jobcast.schedulers.ossp.MOST_CHOICES", most)
    known, jobs = Known({0: 3000.0, 1: 3000.0, 2: 3000.0}), [active(0, 2), active(1, 2), active(2, 2)]
    OpenShop(known, gap=0.0).choose(state(jobs, 3))
    assert asked == [rounds]


def test_a_plan_stands_until_jobs_change_or_its_rounds_are_over(monkeypatch):
    asked = []

    def counted(window):
        asked.append(window.rounds)
        return best_rounds(window)

    monkeypatch.setattr("jobcast.schedulers.ossp.best_rounds", counted)
    known, jobs = Known({0: 3000.0, 1: 3000.0, 2: 3000.0}), [active(0, 2), active(1, 2), active(2, 2)]
    policy = OpenShop(known, window=2, gap=0.0)
    for index, changed in enumerate([True, False, False, False, True, False]):
        policy.choose(state(jobs, 3, now_s=ROUND_S * index, changed=changed))
    assert asked == [2, 2, 2]
    assert policy.figures() == {"solver_gap_max": policy.gap_max}
