"""The published round mechanism: small cases by hand. That of 120 published jobs: `test_cli_rounds.py`."""

from math import ceil

import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, DecisionError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.training import Regime, Training
from jobcast.schedulers.gavel import Gavel
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.round_rules import GandivaFair
from jobcast.simulator.gavel import CRITICAL, Slice, StepRates, arrive, gavel_rounds
from jobcast.simulator.workload import Workload
from tests.shared import refused


class InOrder:
    """Runs jobs in order of arrival, or only in the rounds that a script names; keeps what it saw."""

    name = "in_order"

    def __init__(self, rounds=None):
        self.rounds, self.seen = rounds, []

    def choose(self, state):
        self.seen.append(state)
        if self.rounds is not None and state.index not in self.rounds:
            return []
        return first_fit((active.job for active in state.active), state.total_gpus)


def case(rows, gpus, at_s=0.0):
    """Workload and rates from (submit, gpus, mode, regimes, steps, dataset, steps a second by batch size, nominal)."""
    jobs, outcomes, rates = [], [], []
    for index, (submit_s, width, mode, regimes, steps, dataset, per_s, nominal_s) in enumerate(rows):
        first = regimes[0].batch_size
        epoch_s = {size: dataset / size / rate for size, rate in per_s.items()}
        training = Training("M", first, ceil(steps / ceil(dataset / first)), mode, epoch_s)
        jobs.append(Job(0, f"{index:04}", "p", at_s + submit_s, width, preemptible=True, training=training))
        outcomes.append(Outcome(nominal_s, tuple(regimes)))
        rates.append(StepRates(steps, dataset, per_s, nominal_s))
    return Workload(jobs, outcomes, [Pool("p", gpus)]), rates


def static(submit_s=0.0, width=1, steps=250, rate=1.0, nominal_s=10_000.0):
    """A job of batch size 1 and epochs of 10 steps."""
    return submit_s, width, "static", (Regime(1, steps / 10),), steps, 10, {1: rate}, nominal_s


def replayed(made, policy):
    workload, rates = made
    return gavel_rounds(workload, policy, rates)


def spans(log):
    return sorted(zip(log.spans.job.tolist(), log.spans.from_s.tolist(), log.spans.until_s.tolist(), strict=True))


@pytest.mark.parametrize("steps", [100, 79])
def test_a_job_alone_runs_in_slices_of_whole_steps(steps):
    # int(0.33 x 120) = 39 steps, 118.18 s a round: 100 steps end after 2 rounds and 22 steps, 79 after one step.
    log = replayed(case([static(steps=steps, rate=0.33)], 1), InOrder())
    assert log.end_s.tolist() == pytest.approx([steps / 0.33])
    assert log.events == 1 + 3 + 1


def test_gpus_are_free_again_at_the_rounds_end_only():
    # The first ends after 50 s; the second holds a GPU of its own until 120 s, when the third may begin.
    policy = InOrder()
    log = replayed(case([static(steps=50), static(steps=400), static(steps=30)], 2), policy)
    assert log.end_s.tolist() == [50.0, 400.0, 150.0]
    assert spans(log) == [(0, 0.0, 120.0), (1, 0.0, 400.0), (2, 120.0, 240.0)]
    assert [(state.now_s, state.changed) for state in policy.seen] == [
        (0.0, True),  # arrivals; later ends
        (120.0, True),
        (240.0, True),
        (360.0, False),
    ]


def test_a_round_ends_with_the_slowest_of_its_slices():
    # Nobody needs the round of 120 s: the next begins when the longest slice, 50 s, is over.
    log = replayed(case([static(steps=30), static(steps=50), static(steps=30)], 2), InOrder())
    assert log.end_s.tolist() == [30.0, 50.0, 80.0]


def test_a_start_after_an_absence_loses_time_except_in_the_first_round_and_in_short_slices():
    # Round 0: 120 steps without a loss. Absent in round 1 (a round of nobody lasts 120 s). Round 2: 100 steps in 120 s.
    # Absent in round 3. Round 4: 30 steps are left, a slice of 30 s, which loses nothing.
    policy = InOrder(rounds={0, 2, 4})
    log = replayed(case([static(steps=250)], 1), policy)
    assert log.end_s.tolist() == [480.0 + 30.0]
    assert log.preemptions.tolist() == [2]
    assert [state.active[0].run_s for state in policy.seen] == [0.0, 120.0, 120.0, 220.0, 220.0]
    assert [state.active[0].held_s for state in policy.seen] == [0.0, 120.0, 120.0, 240.0, 240.0]
    assert [state.active[0].running for state in policy.seen] == [False, True, False, True, False]
    workload, rates = case([static(steps=250)], 1)
    assert gavel_rounds(workload, InOrder(rounds={0, 2, 4}), rates, restart_s=0.0).end_s.tolist() == [480.0 + 10.0]


@pytest.mark.parametrize(("steps", "end_s"), [(115, 240.0 + 115.0), (116, 240.0 + 116.0 + 20.0)])
def test_a_slice_is_short_up_to_115_s(steps, end_s):
    # 116 steps: 96 in the slice of 116 s that loses 20 s, the other 20 in a round of their own.
    log = replayed(case([static(steps=120 + steps)], 1), InOrder(rounds={0, 2, 3}))
    assert log.end_s.tolist() == [end_s]


def test_a_short_slice_of_a_slow_job_loses_nothing_either():
    # A step of 100 s fits into a round, a second one does not: rounds 0, 2 and 3, the second round is of nobody.
    policy = InOrder(rounds={0, 2, 3})
    log = replayed(case([static(steps=3, rate=0.01)], 1), policy)
    assert log.end_s.tolist() == [100.0 + 120.0 + 100.0 + 100.0]
    assert [state.active[0].run_s for state in policy.seen] == [0.0, 100.0, 100.0, 200.0]


def test_a_change_is_noticed_at_a_rounds_end_and_applied_after_the_next_run():
    # Epochs of 100 steps at 1 and 50 at 2. Round 0: 120 steps, so epoch 2 is noticed, 2 -> batch size 2.
    # Round 1: 240 steps at batch size 1, rounded up to 3 epochs of 50: 150 of ceil(600 / 2) = 300 steps.
    # Round 2: 120 steps at batch size 2, round 3: the last 30.
    rows = [(0.0, 1, "accordion", (Regime(1, 2.0), Regime(2, 4.0)), 600, 100, {1: 1.0, 2: 1.0}, 600.0)]
    policy = InOrder()
    log = replayed(case(rows, 1), policy)
    assert log.end_s.tolist() == [390.0]
    assert [state.active[0].progress.batch_size for state in policy.seen] == [1, 1, 2, 2]
    assert [state.active[0].progress.epochs for state in policy.seen] == pytest.approx([0.0, 1.2, 3.0, 5.4])
    assert policy.seen[2].active[0].progress.regimes == (Regime(1, 3.0), Regime(2, 0.0))
    assert [state.adapted for state in policy.seen] == [False, False, True, False]


def test_a_job_that_never_runs_a_step_ends_at_the_fifth_failure_and_changes_without_epochs():
    workload, rates = case([static()], 1)
    job = arrive(workload.jobs[0], workload.outcomes[0], rates[0], 100.0)
    assert [job.ran(Slice(0, 0.0, 0.0)) for _ in range(5)] == [False] * 4 + [True]
    job.wanted = 2
    assert job.adapt()
    assert job.past == (Regime(1, 0.0),)


def test_gns_looks_an_epoch_ahead_and_doubles_once_at_a_time():
    # Epochs of 100, 50 and 25 steps at 1, 2 and 4; from epoch 3 on the truth is 4. After 120 steps epoch 2 + 1 is 4's:
    # 2 is noticed, applied after 240 steps (3 epochs, 150 of 500 steps); 4 at once, applied after 270 steps:
    # 6 epochs, 150 of 250 steps. The last 100 take 100 s.
    rows = [(0.0, 1, "gns", (Regime(1, 3.0), Regime(4, 7.0)), 1_000, 100, {1: 1.0, 2: 1.0, 4: 1.0}, 1_000.0)]
    policy = InOrder()
    log = replayed(case(rows, 1), policy)
    assert [state.active[0].progress.batch_size for state in policy.seen] == [1, 1, 2, 4]
    assert policy.seen[3].active[0].progress.regimes == (Regime(1, 3.0), Regime(2, 3.0), Regime(4, 0.0))
    assert log.end_s.tolist() == [3 * 120.0 + 100.0]


def test_total_steps_keep_their_epochs_where_rounding_would_lose_some():
    # 7 samples: 7 steps an epoch at 1, 2 at 4. 70 steps are 10 epochs; ceil(70 / 4) = 18 would be 9, so 20 it is.
    rows = [(0.0, 1, "accordion", (Regime(1, 1.0), Regime(4, 9.0)), 70, 7, {1: 0.1, 4: 0.1}, 10_000.0)]
    # 12 steps a round. Rounds 0 and 1: 24 steps, rounded up to 4 epochs = 8 of 20 steps; then 12 steps in 120 s.
    log = replayed(case(rows, 1), InOrder())
    assert log.end_s.tolist() == pytest.approx([360.0])


def test_a_job_that_rounding_leaves_no_step_ends_when_scheduled_for_the_fifth_time():
    # 3 epochs of 100 steps. After 240 steps (2.4 epochs) 3 whole ones count as done: rounds of no length follow, and
    # the fifth ends the job at the instant at which it begins. A second job makes the rounds last.
    ghost = (0.0, 1, "accordion", (Regime(1, 1.0), Regime(2, 2.0)), 300, 100, {1: 1.0, 2: 1.0}, 300.0)
    log = replayed(case([ghost, static(steps=1_200)], 2), InOrder())
    assert log.end_s.tolist() == [240.0 + 4 * 120.0, 1_200.0]


def test_policies_see_a_step_to_go_where_rounding_left_none():
    ghost = (0.0, 1, "accordion", (Regime(1, 1.0), Regime(2, 2.0)), 300, 100, {1: 1.0, 2: 1.0}, 300.0)
    policy = InOrder()
    replayed(case([ghost], 1), policy)
    assert policy.seen[-1].active[0].progress.epochs == pytest.approx(149 / 50)


@pytest.mark.parametrize(("nominal_s", "end_s"), [(101.0, 240.0), (160.0, 360.0), (160.5, 360.0)])
def test_a_job_ends_after_half_as_much_again_as_its_nominal_run_time(nominal_s, end_s):
    # int(1.5 x 101) = 151 s are exceeded in the second round, 240 s in the third; its steps are not done.
    log = replayed(case([static(steps=1_000, nominal_s=nominal_s)], 1), InOrder())
    assert log.end_s.tolist() == [end_s]


def test_newcomers_are_chosen_yet_wait_for_new_allocations():
    # Allocations of rounds 0 and 1 are fresh. The job of 200 s gets its share at the first reset 1,000 s after the one
    # at 120 s: at 1,200 s the clock is 1,080 s on, at 1,080 s 960 s. It was free to run from 240 s on: two GPUs.
    rows = [static(steps=5_000), static(submit_s=60.0, steps=120), static(submit_s=200.0, steps=80)]
    log = replayed(case(rows, 2), GandivaFair())
    assert log.start_s.tolist() == [0.0, 120.0, 1_200.0]
    # In rounds of 200 s the reset that follows the one at 200 s is just 1,000 s later.
    workload, rates = case([*rows[:2], static(submit_s=300.0, steps=80)], 2)
    assert gavel_rounds(workload, GandivaFair(), rates, round_s=200.0).start_s.tolist() == [0.0, 200.0, 1_200.0]


def test_shares_are_followed_by_time_received():
    # Two jobs on a GPU, half each. Who received less goes first, and the first to arrive among equals; every start but
    # the first loses 20 s. Received, head starts of 60 s included, at 120, 240, ... s: 180 and 60, 180 and 160,
    # 180 and 280, 280 and 280, 400 and 280, 400 and 380; then 80 s are left of each.
    log = replayed(case([static(steps=420), static(steps=400)], 1), GandivaFair())
    assert spans(log) == [
        (0, 0.0, 120.0),
        (0, 360.0, 600.0),
        (0, 800.0, 880.0),
        (1, 120.0, 360.0),
        (1, 600.0, 800.0),
    ]


def test_a_clock_that_starts_late_changes_nothing():
    rows = [static(60.0 * index, 1 + index % 3, 300 + 37 * index, 0.7) for index in range(12)]
    early = replayed(case(rows, 4), Gavel())
    late = replayed(case(rows, 4, at_s=1.6e9), Gavel())
    for late_s, early_s in (
        (late.start_s, early.start_s),
        (late.end_s, early.end_s),
        (late.spans.from_s, early.spans.from_s),
        (late.spans.until_s, early.spans.until_s),
    ):
        assert (late_s - 1.6e9).tolist() == pytest.approx(early_s.tolist(), abs=1e-5)
    assert set(late.spans.node) == {-1}


def test_an_idle_cluster_waits_for_the_next_job():
    log = replayed(case([static(steps=50), static(submit_s=1_000.0, steps=50)], 1), InOrder())
    assert log.end_s.tolist() == [50.0, 1_050.0]
    assert spans(log) == [(0, 0.0, 50.0), (1, 1_000.0, 1_050.0)]


class Stubborn:
    def __init__(self, chosen):
        self.chosen = chosen

    def choose(self, state):
        return self.chosen(state)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (lambda state: [], r"at 120000\.0+ s: job 0000 waits while nobody runs for 1001 rounds"),
        (lambda state: [state.active[0].job] * 2, "chose a job twice"),
        (lambda state: [active.job for active in state.active], "take 2 GPUs of 1"),
        (lambda state: [Job(9, "other", "p", 0.0, 1)], "job other is not active"),
    ],
)
def test_impossible_answers_are_refused(chosen, message):
    refused(DecisionError, message, replayed, case([static(), static()], 1), Stubborn(chosen))


def test_what_cannot_be_replayed_is_refused():
    workload, rates = case([static()], 1)
    refused(ConfigError, "1 jobs but 0 step rates", gavel_rounds, workload, InOrder(), [])
    refused(ConfigError, "restarts of 120", gavel_rounds, workload, InOrder(), rates, restart_s=120.0)
    for per_s, told in (({1: 0.001}, r"0\.001"), ({}, "0")):
        with pytest.raises(TraceError, match=f"job 0000: batch size 1 makes no step in 100 s at {told} steps/s"):
            gavel_rounds(workload, InOrder(), [StepRates(250, 10, per_s, 250.0)])
    plain = Workload([Job(0, "a", "p", 0.0, 1)], [Outcome(5.0)], [Pool("p", 1)])
    refused(TraceError, "need training jobs", gavel_rounds, plain, InOrder(), rates)


def test_accordions_windows_are_those_of_the_table(published):
    starts = {}
    for row in pl.read_csv(published / "shockwave" / "regimes_simulator_accordion.csv").iter_rows(named=True):
        starts.setdefault((row["model"], row["initial_batch_size"]), []).append((row["epoch"], row["batch_size"]))
    assert {model for model, _ in starts} == set(CRITICAL)
    for (model, first), begins in starts.items():
        for epoch in range(400):
            small = [size for begin, size in begins if begin <= epoch][-1] == first
            largest = all(size == first for _, size in begins)  # it has nowhere to go
            assert small == (CRITICAL[model](first, epoch) or largest), (model, first, epoch)
