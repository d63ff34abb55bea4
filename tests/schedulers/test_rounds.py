"""Rounds on the engine: who runs when, what starts cost, and what a policy is shown."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from jobcast.domain.energy import EnergyCluster, EpochTimes
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.training import Goodputs, Progress, Regime, Training
from jobcast.schedulers.gavel import Gavel, centre, water
from jobcast.schedulers.placement import NodePlacement
from jobcast.schedulers.policies import ROUNDS
from jobcast.schedulers.registry import make_policy, names_of
from jobcast.schedulers.round_rules import LeastAttained
from jobcast.schedulers.rounds import OneRoundLate, Rounds, ShareRounds, expected, speeds_of
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.rounds_driver import Equal, InOrder, active, gangs, seqs, state
from tests.simulator.laws.test_epochs import NODES, TIMES, gang, world


def test_rounds_are_fixed_and_a_start_costs_its_time():
    # The second job finds its GPU free at 100 s, within a round; it starts at 120 s and loses 20 s.
    log = replay(gangs([(0, 80, 1), (0, 50, 1)], 1), Rounds(InOrder(), "in_order"))
    assert log.start_s.tolist() == [0.0, 120.0]
    assert log.end_s.tolist() == [100.0, 190.0]


def test_a_job_that_goes_on_pays_once():
    log = replay(gangs([(0, 300, 1)], 1), Rounds(InOrder(), "in_order"))
    assert log.end_s.tolist() == [320.0]
    assert log.preemptions.tolist() == [0]


def test_rounds_begin_with_the_first_arrival_and_go_on_through_idle_times():
    # First at 50 s: rounds at 50, 170, 290, ...; the second comes at 300 s, in the round from 290 to 410 s.
    rule = InOrder()
    log = replay(gangs([(50, 10, 1), (300, 10, 1)], 1), Rounds(rule, "in_order"))
    assert log.start_s.tolist() == [50.0, 410.0]
    assert [(one.now_s, one.index) for one in rule.states if one.active] == [(50.0, 0), (410.0, 3)]


def test_least_attained_takes_turns_and_every_return_is_charged():
    policy = Rounds(LeastAttained(), "las")
    log = replay(gangs([(0, 200, 1), (0, 200, 1)], 1), policy)
    # First from 0 to 120 s (100 s of progress), second from 120 s on: at 240 s both have held as long, and the one that
    # runs stays until its end at 340 s. The first comes back at 360 s, pays 20 s and needs 100 s.
    assert log.end_s.tolist() == [480.0, 340.0]
    assert log.preemptions.tolist() == [1, 0]
    assert policy.figures()["rounds"] == 4


TRAINING = Training("LM", 10, 4, "gns", {10: 60.0, 20: 40.0})


def test_a_policy_is_told_what_changed():
    job = Job(0, "a", "all", 0.0, 1, preemptible=True, training=TRAINING)
    regimes = (Regime(10, 2.0), Regime(20, 2.0))
    rule = InOrder()
    work = Workload([job], [Outcome(200.0, regimes)], [Pool("all", 1)], 0.0)
    log = replay(work, Rounds(rule, "in_order", round_s=50.0))
    assert log.end_s.tolist() == [200.0]
    assert [(state.now_s, state.changed, state.adapted) for state in rule.states] == [
        (0.0, True, False),
        (50.0, False, False),
        (100.0, False, False),
        (150.0, True, True),
    ]
    # As told unless something else is.
    assert {(one.round_s, one.restart_s, one.index) for one in rule.states[:1]} == {(50.0, 20.0, 0)}
    assert rule.states[1].active[0].progress == Progress(50.0 / 60.0, (Regime(10, 50.0 / 60.0),))
    assert rule.states[3].active[0].progress == Progress(2.75, (Regime(10, 2.0), Regime(20, 0.75)))


def test_jobs_that_may_not_be_stopped_keep_their_gpus_unseen():
    rule = InOrder()
    work = gangs([(0, 300, 1), (10, 300, 1)], 2, preemptible=False)
    log = replay(work, Rounds(rule, "in_order"))
    assert log.preemptions.tolist() == [0, 0]
    assert [len(state.active) for state in rule.states] == [1, 1, 0, 0]
    assert [state.total_gpus for state in rule.states[:2]] == [2, 1]


def test_where_jobs_that_may_not_be_stopped_hold_all_gpus_nobody_is_asked():
    rule = InOrder()
    log = replay(gangs([(0, 300, 2), (10, 50, 1)], 2, preemptible=False), Rounds(rule, "in_order"))
    assert log.end_s.tolist() == [320.0, 430.0]
    assert [state.now_s for state in rule.states] == [0.0, 360.0]


def test_equal_shares_take_turns_and_a_tie_stays_where_it_is():
    # Owed half a round each round: first, second; a tie, second again; then twice the first, whose 60 s end it.
    log = replay(gangs([(0, 300, 1), (0, 300, 1)], 1, restart_s=0.0), Rounds(ShareRounds(Equal()), "equal"))
    spans = sorted(zip(log.spans.from_s.tolist(), log.spans.job.tolist(), strict=True))
    assert spans == [(0.0, 0), (120.0, 1), (360.0, 0), (600.0, 1)]


class Told:
    """Shares by job, and whom it was asked about."""

    def __init__(self, **shares):
        self.by_name, self.asked = shares, []

    def shares(self, now):
        self.asked.append([one.job.job_id for one in now.active])
        return [self.by_name[f"job_{one.job.job_id}"] for one in now.active]


def test_the_smallest_difference_in_what_is_owed_decides():
    rounds = ShareRounds(Told(job_0=0.3, job_1=0.30001))
    assert seqs(rounds.choose(state([active(0), active(1)], 1))) == [1]
    # Owed 0.6 and 0.60002 less 1: now the first.
    assert seqs(rounds.choose(state([active(0), active(1)], 1, changed=False))) == [0]
    # Who comes is promised a share from now on: 0.9 less 1, 0.90003 less 1, and 0.05.
    rounds = ShareRounds(Told(job_0=0.3, job_1=0.30001, job_2=0.05))
    for _ in range(2):
        rounds.choose(state([active(0), active(1)], 1))
    assert seqs(rounds.choose(state([active(0), active(1), active(2)], 1))) == [2]
    assert seqs(rounds.fill(state([active(0), active(1), active(2), active(3)], 4))) == [3, 1, 0, 2]


def test_rounds_are_given_in_proportion_to_shares():
    rounds = ShareRounds(Told(job_0=0.75, job_1=0.25))
    given = [seqs(rounds.choose(state([active(0), active(1)], 1)))[0] for _ in range(8)]
    assert sorted(given) == [0] * 6 + [1] * 2


def test_shares_are_asked_for_again_when_jobs_change_or_one_is_not_known():
    policy = Told(job_0=0.5, job_1=0.5)
    rounds = ShareRounds(policy)
    rounds.choose(state([active(0), active(1)], 2))
    rounds.choose(state([active(0), active(1)], 2, changed=False))
    rounds.choose(state([active(0)], 2))
    rounds.choose(state([active(0), active(1)], 2, changed=False))
    assert policy.asked == [["0", "1"], ["0"], ["0", "1"]]


THREE = [(0, 80, 1, True), (0, 300, 1, True), (0, 50, 1, True)]


def test_gpus_of_jobs_that_finished_idle_for_a_round_where_nobody_fills_them():
    # The plan for 120 s was made at 0 s, with the first job, which ends at 100 s; the third is planned then for 240 s.
    rule = InOrder()
    log = replay(gangs(THREE, 2), Rounds(OneRoundLate(rule), "in_order"))
    assert log.start_s.tolist() == [0.0, 0.0, 240.0]
    assert log.end_s.tolist() == [100.0, 320.0, 310.0]


def test_gpus_of_jobs_that_finished_are_filled_at_once_by_a_rule_that_can():
    fill = InOrder()
    log = replay(gangs(THREE, 2), Rounds(OneRoundLate(InOrder(), fill.choose), "in_order"))
    assert log.start_s.tolist() == [0.0, 0.0, 120.0]
    assert [([one.job.seq for one in state.active], state.total_gpus) for state in fill.states] == [([2], 1)]


def test_arrivals_wait_for_the_next_plan():
    # The second comes in the round from 0 to 120 s; the plan made at 120 s is the first that holds it.
    log = replay(gangs([(0, 500, 1, True), (10, 50, 1, True)], 2), Rounds(OneRoundLate(InOrder()), "in_order"))
    assert log.start_s.tolist() == [0.0, 240.0]


def test_where_nobody_planned_is_left_the_rule_is_asked_at_once():
    # The first ends at 100 s; at 120 s nobody runs, and nothing could be planned beside.
    rule = InOrder()
    log = replay(gangs([(0, 80, 1, True), (0, 50, 1, True)], 1), Rounds(OneRoundLate(rule), "in_order"))
    assert log.start_s.tolist() == [0.0, 120.0]
    assert [state.now_s for state in rule.states] == [0.0, 120.0]


def test_the_rule_is_shown_the_round_to_come_and_asked_once_a_round():
    class Counted(InOrder):
        def figures(self):
            return {"asked": float(len(self.states))}

    rule = Counted()
    policy = Rounds(OneRoundLate(rule), "in_order")
    replay(gangs([(0, 430, 1, True), (0, 90, 1, True)], 1), policy)
    # At 0 s as it is; at 120 s the state expected at 240 s: 100 s of progress so far, 120 s more by then.
    assert [(state.now_s, state.index) for state in rule.states[:3]] == [(0.0, 0), (240.0, 2), (360.0, 3)]
    first, second = rule.states[1].active
    assert (first.running, first.held_s, first.run_s) == (True, 240.0, 220.0)
    assert (second.running, second.held_s, second.run_s) == (False, 0.0, 0.0)
    assert policy.figures() == {"rounds": 5.0, "asked": 5.0}  # at 480 s the first is gone and the second runs at once


def trained(seq, epochs, running):
    job = Job(seq, str(seq), "all", 0.0, 1, preemptible=True, training=TRAINING)
    regimes = (Regime(10, 1.0), Regime(20, epochs - 1.0))
    return ActiveJob(job, 300.0, 60.0 + 40.0 * (epochs - 1.0), running, Progress(epochs, regimes))


def test_what_is_expected_of_training_jobs():
    going, coming, ending, waiting = (
        trained(seq, epochs, running)
        for seq, epochs, running in [(0, 1.0, True), (1, 1.0, False), (2, 3.5, True), (3, 2.0, True)]
    )
    later = expected(state([going, coming, ending, waiting], 4, 600.0), [going.job, coming.job, ending.job])
    assert (later.now_s, later.index, later.total_gpus) == (720.0, 6, 4)
    assert [one.running for one in later.active] == [True, True, True, False]
    assert [one.held_s for one in later.active] == [420.0, 420.0, 420.0, 300.0]
    # 120 s of epochs of 40 s; 100 s of them after a start; no further than to the end; none.
    assert [one.progress.epochs for one in later.active] == pytest.approx([4.0, 3.5, 4.0, 2.0])
    assert [one.progress.regimes[-1].epochs for one in later.active] == pytest.approx([3.0, 2.5, 3.0, 1.0])
    assert [one.run_s for one in later.active] == pytest.approx([180.0, 160.0, 180.0, 100.0])
    assert all(one.progress.epochs < 4.0 for one in later.active)
    assert later.active[3] == ActiveJob(waiting.job, 300.0, 100.0, False, waiting.progress)


def test_jobs_that_may_not_be_stopped_leave_the_plan_once_they_run():
    rigid = Job(0, "0", "all", 0.0, 3)
    other = Job(1, "1", "all", 0.0, 1, preemptible=True)
    actives = [ActiveJob(job, 0.0, 0.0, False) for job in (rigid, other)]
    later = expected(state(actives, 4, 600.0), [rigid])
    assert ([one.job.seq for one in later.active], later.total_gpus) == ([1], 1)


@pytest.mark.parametrize("name", names_of(ROUNDS))
def test_every_policy_can_be_planned_beside(name):
    work = gangs([(90 * i, 200 + 70 * (i * 5 % 8), 1 + i % 3, True) for i in range(8)], 4)
    policy = make_policy(name, Oracle(work), {"solve": "beside"})
    assert isinstance(policy._policy, OneRoundLate)
    log = replay(work, policy)
    held = np.bincount(log.spans.job, log.spans.until_s - log.spans.from_s)
    assert held == pytest.approx(log.duration_s + 20.0 * (1 + log.preemptions), abs=1e-6)
    before, default = (make_policy(name, Oracle(work), settings) for settings in ({"solve": "before"}, {}))
    assert replay(work, before).end_s.tolist() == replay(work, default).end_s.tolist()


def test_settings_that_cannot_be_used():
    with pytest.raises(ConfigError, match="policy las: setting solve must be before or beside, got later"):
        make_policy("las", None, {"solve": "later"})
    with pytest.raises(ConfigError, match="solve=beside and mechanism=gavel exclude each other"):
        make_policy("las", None, {"solve": "beside", "mechanism": "gavel"})


# Rounds in a law in which GPUs of a job may change: what policies are told of it, what becomes of their answers.


class Numbers:
    """Runs all jobs in each round on so many GPUs, by job; keeps what it was shown."""

    def __init__(self, *rounds):
        self.rounds, self.seen = rounds, []

    def choose(self, state):
        gpus = self.rounds[min(state.index, len(self.rounds) - 1)]
        self.seen.append({one.job.job_id: one for one in state.active})
        return [replace(one.job, gpus=gpus.get(one.job.job_id, one.job.gpus)) for one in state.active]


def speeds(*times_s, asked):
    """By GPUs from one on."""
    return {gpus: pytest.approx(times_s[asked - 1] / one) for gpus, one in enumerate(times_s, 1)}


def played(policy, *jobs, nodes=(), **given):
    workload, law = world(*jobs, **given)
    seats = NodePlacement(nodes) if nodes else None
    return Simulation(workload, Rounds(policy, "numbers", 30.0, 0.0, seats), law=law).run().log()


@pytest.mark.parametrize("nodes", [(), (2, 4, 4)])
def test_a_job_gets_on_by_the_gpus_that_it_is_given(nodes):
    """5 epochs of 6 s on 2 GPUs in the first round, 5 of 4 s on 4 GPUs after it."""
    policy = Numbers({"a": 2}, {"a": 4})
    log = played(policy, gang("a", gpus=4, min_gpus=1), nodes=nodes)
    assert log.end_s.tolist() == [50.0]
    assert log.spans.gpus.tolist() == [2.0, 4.0]
    assert [one["a"].gpus for one in policy.seen] == [0, 2]
    assert [one["a"].run_s for one in policy.seen] == [0.0, 20.0]  # of 40 s on the 4 GPUs asked for


def test_policies_are_told_what_jobs_may_have():
    """Those that tell no fewest GPUs, or may not be stopped, keep their number."""
    policy = Numbers({})
    jobs = (
        gang("a", gpus=2, min_gpus=1),
        gang("b", gpus=4, min_gpus=3),
        gang("c", gpus=2),
        gang("e", gpus=3, min_gpus=3),
    )
    played(policy, *jobs, replace(gang("d", gpus=1, min_gpus=1), preemptible=False))
    told = {name: one.speeds for name, one in policy.seen[0].items()}
    assert told["a"] == speeds(*TIMES, asked=2)
    assert told["b"] == {gpus: speed for gpus, speed in speeds(*TIMES, asked=4).items() if gpus >= 3}
    assert told["c"] == told["d"] == {}
    assert told["e"] == {3: 1.0, 4: pytest.approx(5 / 4)}


@pytest.mark.parametrize("epoch_s", [TIMES[:2], (10.0, 6.0, np.inf, 4.0)])
def test_whose_own_number_takes_for_ever_keeps_it(epoch_s):
    """Nothing is known of 3 GPUs, or no node runs the job on so many."""
    facts = {EpochTimes: EpochTimes(np.ones(1), np.array([[epoch_s] * 3])), EnergyCluster: NODES}
    assert speeds_of(gang("a", gpus=3, min_gpus=1), SimpleNamespace(facts=facts.__getitem__)) == {}


def test_a_number_may_take_all_gpus_of_a_kind():
    """Nodes of the first kind, which are two GPUs in all, are twice as fast on both; other types do not count."""
    policy, others = Numbers({}), (1.0, 0.5, 0.4, 0.3)
    played(policy, gang("a", gpus=1, min_gpus=1), epoch_s=((10.0, 3.0, 2.0, 1.0), TIMES, others))
    assert policy.seen[0]["a"].speeds == {1: 1.0, 2: pytest.approx(10 / 3)}


def test_numbers_that_are_no_faster_than_smaller_ones_are_none():
    policy = Numbers({})
    times = (10.0, 6.0, 6.0, 4.0)
    played(policy, gang("a", gpus=3, min_gpus=1), epoch_s=(times, times, times))
    assert list(policy.seen[0]["a"].speeds) == [1, 2, 3, 4]  # what it asks for it may always have
    policy = Numbers({})
    played(policy, gang("a", gpus=1, min_gpus=1), epoch_s=(times, times, times))
    assert list(policy.seen[0]["a"].speeds) == [1, 2, 4]


def test_goodput_in_a_law_of_epochs_is_the_speedup():
    workload, law = world(gang("a", gpus=2, min_gpus=1), gang("b", gpus=3, min_gpus=2))
    seen = {}

    class Looks(Numbers):
        def choose(self, state):
            seen.setdefault("goodputs", law.facts(run, Goodputs))
            return super().choose(state)

    run = Simulation(workload, Rounds(Looks({}), "looks", 30.0, 0.0), law=law)
    run.run()
    assert seen["goodputs"] == {0: pytest.approx((1.0, 10 / 6)), 1: pytest.approx((0.0, 10 / 6, 2.0))}


def test_a_round_ahead_a_job_has_got_on_by_its_gpus_and_paid_for_a_change():
    job = gang("a", gpus=4, min_gpus=1)
    one = ActiveJob(job, 300.0, 200.0, True, None, {2: 0.5, 4: 1.0}, 4)
    now = state([one], 8, 600.0)
    (stays,), (changed,) = (expected(now, [replace(job, gpus=gpus)]).active for gpus in (4, 2))
    assert (stays.run_s, stays.gpus) == (320.0, 4)
    assert (changed.run_s, changed.gpus, changed.running) == (250.0, 2, True)  # 100 s at half the speed


JOBS = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=12)


def least(widths, weights, shares):
    return float((widths * shares / weights).min())


def by_highs(widths, weights, gpus):
    """Value of the programme of the docstring."""
    count = len(widths)
    rows = np.zeros((count + 1, count + 1))
    rows[:count, :count], rows[:count, -1], rows[-1, :count] = -np.diag(widths), weights, widths
    cost = np.append(np.zeros(count), -1.0)
    answer = linprog(cost, rows, np.append(np.zeros(count), gpus), bounds=[(0, 1)] * count + [(0, None)])
    return -answer.fun


@given(jobs=JOBS, gpus=st.integers(8, 40))
def test_both_fills_reach_the_value_of_the_programme(jobs, gpus):
    widths, weights = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    value = by_highs(widths, weights, gpus)
    for fill in (centre, water):
        shares = fill(widths, weights, float(gpus))
        assert least(widths, weights, shares) == pytest.approx(value, rel=1e-7)
        assert (shares >= 0).all()
        assert (shares <= 1 + 1e-12).all()
        assert widths @ shares <= gpus * (1 + 1e-9)


@given(jobs=JOBS, gpus=st.integers(8, 40))
def test_water_wastes_nothing(jobs, gpus):
    widths, weights = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    shares = water(widths, weights, float(gpus))
    assert widths @ shares == pytest.approx(min(gpus, widths.sum()))
    # whoever has less than all of the time has as much as the level of the others that do
    levels = (widths * shares / weights)[shares < 1 - 1e-9]
    assert levels == pytest.approx(np.full(len(levels), levels.max(initial=0.0)))


def test_more_jobs_than_gpus_leaves_one_optimum():
    # 4 jobs on 3 GPUs: each 3/4 of a GPU's time
    jobs = [active(seq, gpus) for seq, gpus in enumerate([1, 1, 2, 4])]
    for fill in ("centre", "water"):
        assert Gavel(fill).shares(state(jobs, 3)) == pytest.approx([0.75, 0.75, 0.375, 0.1875])


def test_a_weight_of_two_gets_twice_the_share():
    jobs = [active(0), active(1, weight=2.0)]
    assert Gavel().shares(state(jobs, 1)) == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize("fill", [centre, water])
def test_who_is_bound_by_its_whole_time_runs_always_and_not_longer(fill):
    # 1.7 x (7 / 1.7) / 7 is a little more than 1 in doubles; the other has room above its floor, 0.51
    shares = fill(np.array([7.0, 4.0]), np.array([1.7, 0.5]), 11.0)
    assert shares[0] == 1.0
    assert 0.6 < shares[1] <= 1.0


def test_the_centre_maximises_the_product_of_slacks():
    # widths 1, 4 and 4 on 8 GPUs: the first runs always, the others between a quarter and all of the time
    widths, weights = np.array([1.0, 4.0, 4.0]), np.ones(3)
    shares = centre(widths, weights, 8.0)
    grid = np.linspace(0.2501, 0.8749, 20_001)
    best = grid[np.argmax(2 * np.log((grid - 0.25) * grid * (1 - grid)) + np.log(8 - 1 - 8 * grid))]
    assert shares[0] == 1.0
    assert shares[1] == shares[2] == pytest.approx(best, abs=1e-4)
    # widths 2 and 4, weights 1 and a half on 4 GPUs: the second runs between a quarter and a half of the time
    shares = centre(np.array([2.0, 4.0]), np.array([1.0, 0.5]), 4.0)
    grid = np.linspace(0.2501, 0.4999, 20_001)
    best = grid[np.argmax(np.log((grid - 0.25) * grid * (1 - grid)) + np.log(4 - 2 - 4 * grid))]
    assert shares.tolist() == [1.0, pytest.approx(best, abs=1e-4)]
