import gc
import weakref
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from jobcast.domain.errors import DecisionError
from jobcast.domain.policy import Cell, Decision, Grant, Trigger
from jobcast.simulator import engine
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.laws.run_time import RunTime
from tests.shared import refused
from tests.simulator.pool_cases import Script


def rows(log):
    return list(zip(log.start_s.tolist(), log.end_s.tolist(), strict=True))


def test_completions_then_arrivals_then_one_call(workload):
    made = workload([("a", "p", 0, 5, 2), ("b", "p", 5, 1, 2), ("c", "q", 5, 1, 1)], {"p": 2, "q": 1})
    told = []

    class Seeing(Script):
        def decide(self, view):
            waiting = sorted(job.job_id for seq, job in view.active.items() if seq not in view.running)
            touched = sorted(pool.name for pool in view.touched)
            told.append((view.now_s, waiting, list(view.running), touched, view.free_gpus))
            return super().decide(view)

    log = replay(made, Seeing({0.0: {"a": 2}, 5.0: {"b": 2, "c": 1}}, {0.0: inf}))
    assert told == [(0.0, ["a"], [], ["p"], 3.0), (5.0, ["b", "c"], [], ["p", "q"], 3.0)]
    assert rows(log) == [(0, 5), (5, 6), (5, 6)]
    assert log.events == 6
    assert log.policy == "script"


def test_few_jobs_tell_how_far_they_are_each_time_one_ends(workload):
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 0, 7, 1), ("c", "p", 0, 9, 1)], {"p": 3})
    told = []
    replay(made, Script({0.0: dict.fromkeys("abc", 1)}), progress=lambda *counts: told.append(counts))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_when_all_is_over_a_step_changes_nothing(workload):
    made = workload([("a", "p", 0, 5, 1)], {"p": 1})
    run = Simulation(made, Script({0.0: {"a": 1}}))
    assert run.log().dedicated.tolist() == [False]  # who never started counts against no quota
    run.wait(inf)
    run.step()
    assert run.look() is None
    assert (run.decisions, run.events, run.now_s, rows(run.log())) == (1, 2, 5.0, [(0, 5)])


class Leasing:
    """Starts all that wait, whenever it is asked; keeps when that was. It may ask to be woken."""

    name = "leasing"

    def __init__(self, wakes_s=(), **trigger):
        self.trigger, self.wakes_s, self.asked = Trigger(**trigger), dict(wakes_s), []

    def decide(self, view):
        self.asked.append(view.now_s)
        starts = {seq: Grant(job.gpus) for seq, job in view.active.items() if seq not in view.running}
        return Decision(starts, self.wakes_s.get(view.now_s, inf))


@pytest.mark.parametrize(
    ("trigger", "asked", "events"),
    [
        ({"lease_s": 10.0}, [0, 10, 20, 24, 29, 39, 49], 8),
        ({"lease_s": 10.0, "on_events": False}, [10, 20, 34, 49, 59], 9),
        ({"period_s": 15.0, "on_events": False}, [0, 15, 30, 45], 7),  # the first submission's is no further event
    ],
)
def test_a_lease_runs_from_the_last_instant_at_which_anything_happened(workload, trigger, asked, events):
    policy = Leasing(**trigger)
    log = replay(workload([("a", "p", 0, 50, 1), ("b", "p", 24, 5, 1)], {"p": 2}), policy)
    assert policy.asked == asked
    assert log.events == events


@pytest.mark.parametrize(("before_s", "asked_s"), [(2.5e-7, 13 - 2.5e-7), (5e-7, 13)])
def test_a_grid_runs_from_the_first_submission_and_each_point_is_one_instant(workload, before_s, asked_s):
    """An arrival is at a point of the grid, or by the rounding of a double too early for it."""
    policy = Leasing(on_events=False, period_s=10.0)
    replay(workload([("a", "p", 3, 35, 1), ("b", "p", 13 - before_s, 5, 1)], {"p": 2}), policy)
    assert policy.asked == [3, asked_s, 23, 33]


@pytest.mark.parametrize("each", [True, False])
def test_submissions_of_one_instant_are_asked_about_one_by_one_or_all_at_once(workload, each):
    """Half a microsecond apart is one instant: b's end, and d's arrival."""
    made = workload(
        [*((name, "p", 0, 5, 1) for name in "ab"), ("c", "p", 0, 9, 1), ("d", "p", 5 + 5e-7, 2, 1)], {"p": 4}
    )
    policy, asked = Leasing(each_event=each), []
    run = Simulation(made, policy)
    while (view := run.look()) is not None:
        asked.append((view.now_s, "".join(sorted(job.job_id for job in view.active.values()))))
        run.carry_out(policy.decide(view))
    alone = [(0.0, "a"), (0.0, "ab"), (0.0, "abc"), (5.0, "c"), (5 + 5e-7, "cd"), (7 + 5e-7, "c")]
    assert asked == (alone if each else [(0.0, "abc"), (5 + 5e-7, "cd"), (7 + 5e-7, "c")])


def test_who_is_to_arrive_at_the_same_instant_has_not_finished(workload):
    run = Simulation(workload([(name, "p", 0, 5, 1) for name in "ab"], {"p": 2}), Leasing(each_event=True))
    run.look()
    refused(DecisionError, r"change job b: it is submitted only at 0\.000000 s", run.carry_out, Decision({1: Grant(1)}))


def test_in_a_far_future_two_steps_of_the_clock_are_one_instant(workload):
    """There doubles lie 2^-12 s apart. Arrivals at 0 and 2, at 3 and a wake-up at 5, at 10 and an end at 12."""
    far_s, step_s = 2.0**40, 2.0**-12
    made = workload([(f"{at}", "p", far_s + at * step_s, 10 * step_s, 1) for at in (0, 2, 3, 10)], {"p": 4})
    policy = Leasing({far_s + 2 * step_s: far_s + 5 * step_s})
    replay(made, policy)
    assert [(at_s - far_s) / step_s for at_s in policy.asked] == [2, 3, 12, 13]


def test_lane_and_key_are_asked_once_a_job_even_if_it_is_stopped(workload):
    made = workload([("a", "p", 0, 5, 1)], {"p": 1}, preemptible=True)
    policy = Script({0.0: {"a": 1}, 2.0: {"a": None}, 4.0: {"a": 1}})
    log = replay(made, policy)
    assert policy.asked == [("lane", "a"), ("key", "a")]
    assert rows(log) == [(0, 7)]  # 2 s of work were kept
    assert log.preemptions.tolist() == [1]
    spans = log.spans
    assert list(zip(spans.job, spans.from_s, spans.until_s, spans.node, strict=True)) == [(0, 0, 2, -1), (0, 4, 7, -1)]
    assert log.events == 1 + 1 + 1 + 2  # arrival, stop, completion, two wake-ups


def test_a_stopped_job_can_start_again_and_its_old_end_is_void(workload):
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 3, 1, 1)], {"p": 2}, preemptible=True)
    steps = {0.0: {"a": 1}, 3.0: {"a": None}, 4.0: {"a": Grant(1, dedicated=False), "b": 1}}
    log = replay(made, Script(steps))
    assert rows(log) == [(0, 6), (4, 5)]
    assert log.preemptions.tolist() == [1, 0]
    assert log.dedicated.tolist() == [False, True]


def test_the_newest_wake_replaces_the_old_one_and_none_keeps_it(workload):
    made = workload([(name, "p", at, 1, 1) for at, name in enumerate("abcd")], {"p": 1})
    touched = []

    class Seeing(Script):
        def decide(self, view):
            touched.append((view.now_s, len(view.touched)))
            return super().decide(view)

    wakes_s = {0.0: 7.0, 1.0: 4.0, 2.0: 5.0, 3.0: inf}
    replay(made, Seeing({5.0: {"a": 1}, 6.0: {"b": 1}, 7.0: {"c": 1}, 8.0: {"d": 1}}, wakes_s))
    # Nothing is touched by a wake-up.
    assert touched == [(0, 1), (1, 1), (2, 1), (3, 1), (5, 0), (6, 1), (7, 1), (8, 1)]


START_A = {0.0: {"a": 2}}
REFUSALS = {
    "capacity": ({**START_A, 1.0: {"b": 2}}, {}, "start job b: it needs 2 GPUs, 1 are free"),
    "future": ({0.0: {1: 2}}, {}, "change job b: it is submitted only at 1.000000 s"),
    "finished": ({**START_A, 5.0: {0: 2}}, {}, "change job a: it has finished"),
    "stop": ({0.0: {"a": None}}, {}, "stop job a: it is not running"),
    "rigid": ({**START_A, 1.0: {"a": None}}, {}, "stop job a: it is not preemptible"),
    "past": ({}, {0.0: -1.0}, "asks to be woken at -1.000000 s"),
    "now": ({}, {0.0: 0.0}, "asks to be woken at 0.000000 s"),
    "nan": ({}, {0.0: float("nan")}, "asks to be woken at nan"),
    "deadlock": (START_A, {}, "1 jobs are pending, job b first, while none gets on"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_an_impossible_answer_names_policy_time_and_job(workload, kind):
    steps, wakes_s, message = REFUSALS[kind]
    made = workload([("a", "p", 0, 5, 2), ("b", "p", 1, 1, 2)], {"p": 3})
    told = refused(DecisionError, "", replay, made, Script(steps, wakes_s))
    assert message in told
    assert told.startswith("policy script at ")


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, 11),
        ({0.0: {0: Grant(1)}, 3.0: {0: None}}, 4 + 11),  # it was on its way when it was stopped
        ({0.0: {0: Grant(1)}}, 5 + 11),  # it ends at 5
    ],
)
def test_a_policy_that_wakes_for_ever_is_found_out(workload, monkeypatch, changes, asked):
    monkeypatch.setattr(RunTime, "patience", 10)
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 0, 5, 1)], {"p": 1}, preemptible=True)
    calls = []

    class Sleeper:
        name = "sleeper"
        lane = staticmethod(lambda job: 0)
        key = staticmethod(lambda job: 0.0)

        def decide(self, view):
            calls.append(view.now_s)
            return Decision(changes.get(view.now_s, {}), view.now_s + 1)

    refused(DecisionError, "policy sleeper at", replay, made, Sleeper())
    assert len(calls) == asked


def test_progress_is_told_rarely_and_at_the_end(workload):
    class Greedy:
        lane = staticmethod(lambda job: 0)
        key = staticmethod(lambda job: 0.0)

        def decide(self, view):
            head = view.pools["p"].pending.head()
            return Decision({head.seq: Grant(1)} if head else {})

    for jobs, ends in ((2000, range(20, 2001, 20)), (250, [*range(3, 250, 3), 250])):
        made, told = workload([(f"{i:05}", "p", i, 1, 1) for i in range(jobs)], {"p": 2}), []
        log = replay(made, Greedy(), progress=lambda done, count, told=told: told.append((done, count)))
        assert told == [(end, jobs) for end in ends]
        assert np.array_equal(log.end_s, np.arange(jobs) + 1.0)
        assert log.policy == "Greedy"  # which has no name


@pytest.mark.parametrize("frozen_from", [1, 5_000])
def test_what_a_run_leaves_is_collected(workload, monkeypatch, frozen_from):
    """Thousands of runs train a scheduler: what one leaves goes by itself, what a large one leaves at the next."""

    class Cyclic:
        def __init__(self):
            self.itself = self

        def decide(self, view):
            head = view.pools["p"].pending.first(1, 0)  # who says nothing has one lane, 0
            return Decision({head.seq: Grant(1)} if head else {})

    monkeypatch.setattr(engine, "FROZEN_FROM", frozen_from)
    made = workload([("a", "p", 0, 10, 1)], {"p": 1})
    policy = Cyclic()
    left = weakref.ref(policy)
    replay(made, policy)
    del policy
    if frozen_from == 1:
        replay(made, Cyclic())
    else:
        gc.collect(1)  # the young alone, as the collector does of itself
    assert left() is None


def test_sources_move_before_each_question_and_after_the_history(workload):
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 5, 1, 1)], {"p": 1})
    policy = Script({0.0: {"a": 1}, 5.0: {"b": 1}})
    history = RunHistory(["p"])
    told = []

    class Source:
        def advance(self, now_s):
            past = history.pool("p")
            told.append((now_s, history.now_s, len(past.arrival_s), len(past.completion_s), len(policy.asked)))

    replay(made, policy, Source(), history)
    assert told == [(0.0, 0.0, 1, 0, 0), (5.0, 5.0, 2, 1, 2), (6.0, 6.0, 2, 2, 4)]


def test_an_empty_workload_gives_an_empty_log(workload):
    made = workload([], {"p": 1})
    log = replay(made, Script({}))
    assert len(log) == 0
    assert log.events == 0
    assert log.spans.job.shape == (0,)


class Told(Script):
    """Keeps what p's quota bears, and what it could lend."""

    def __init__(self, steps):
        super().__init__(steps)
        self.borne, self.room = [], []

    def decide(self, view):
        pool = view.pools["p"]
        running = {run.job.job_id: run.dedicated for run in view.running.values()}
        self.borne.append((view.now_s, pool.dedicated, pool.allocated, view.free_gpus, running))
        self.room.append({name: gpus for name, (_, gpus) in view.tally.roomy.items()})
        return super().decide(view)


ONE, TWO = (Grant(gpus, dedicated=False) for gpus in (1, 2))
"""Spare GPUs; what is given as a number is of the quota."""


def test_a_promoted_job_counts_against_its_quota_until_it_ends(workload):
    made = workload([("a", "p", 0, 10, 2), ("b", "p", 0, 10, 1)], {"p": 3})
    policy = Told({0.0: {"a": TWO, "b": ONE}, 4.0: {"a": 2}, 5.0: {}})
    log = replay(made, policy)
    assert policy.borne == [
        (0.0, 0, 0, 3, {}),
        (4.0, 0, 3, 0, {"a": False, "b": False}),
        (5.0, 2, 3, 0, {"a": True, "b": False}),
    ]
    assert policy.room == [{}, {"p": 3}, {"p": 1}]  # GPUs of its quota that it could lend
    assert log.dedicated.tolist() == [True, False]
    assert rows(log) == [(0, 10), (0, 10)]  # its start and its work are as they were
    assert log.preemptions.tolist() == [0, 0]
    assert len(log.spans.job) == 2
    assert log.events == 2 + 2 + 2  # arrivals, wake-ups, completions


def test_a_promoted_job_that_is_stopped_gives_its_quota_back(workload):
    made = workload([("a", "p", 0, 10, 2)], {"p": 3}, preemptible=True)
    policy = Told({0.0: {"a": TWO}, 2.0: {"a": 2}, 3.0: {"a": None}, 4.0: {"a": TWO}})
    log = replay(made, policy)
    assert [borne[:2] for borne in policy.borne] == [(0.0, 0), (2.0, 0), (3.0, 2), (4.0, 0)]
    assert log.dedicated.tolist() == [False]  # it last started on spare GPUs


def test_what_a_job_holds_already_changes_nothing(workload):
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 0, 9, 1)], {"p": 2})
    log = replay(made, Script({0.0: {"a": ONE, "b": ONE}, 1.0: {"a": 1, "b": ONE}, 2.0: {"a": 1}}))
    assert rows(log) == [(0, 5), (0, 9)]
    assert log.dedicated.tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: Grant(1)}, "cannot start job a: it needs 2 GPUs, it is given 1"),
        ({0: Grant(3)}, "cannot start job a: it needs 2 GPUs, it is given 3"),
        ({0: Grant(2, (Cell(0, 0, 2),))}, "cannot start job a: the cluster has no servers, it is given 1 cells"),
        ({7: Grant(2)}, "cannot change job number 7: it is none of this run's jobs"),
        ({-1: None}, "cannot change job number -1: it is none of this run's jobs"),
    ],
)
def test_a_grant_that_cannot_be_is_refused(workload, change, message):
    made = workload([("a", "p", 0, 5, 2)], {"p": 4})

    class Odd:
        name = "odd"

        def decide(self, view):
            return Decision(change)

    refused(DecisionError, f"policy odd at 0.000000 s: {message}", replay, made, Odd())


STOPS = {0.0: {"a": 1}, 2.0: {"a": None}, 4.0: {"a": 1}}


@pytest.mark.parametrize(
    ("restart_s", "resume_s", "end_s"),
    [
        (0.0, 0.0, 12.0),  # 2 s of 10 done, 8 s more from 4 on
        (0.0, 3.0, 15.0),
        (1.0, 0.0, 14.0),  # 1 s done by 2, another second is lost at 4
        (1.0, 3.0, 17.0),
    ],
)
def test_resuming_costs_at_starts_after_a_stop_alone(workload, restart_s, resume_s, end_s):
    made = replace(
        workload([("a", "p", 0, 10, 1), ("b", "p", 20, 10, 1)], {"p": 1}, preemptible=True),
        restart_s=restart_s,
        resume_s=resume_s,
    )
    log = replay(made, Script({**STOPS, 20.0: {"b": 1}}))
    assert rows(log) == [(0, end_s), (20, 30 + restart_s)]  # b was never stopped


def test_a_job_stopped_while_it_resumes_loses_that_again(workload):
    made = replace(workload([("a", "p", 0, 10, 1)], {"p": 1}, preemptible=True), resume_s=3.0)
    log = replay(made, Script({**STOPS, 5.0: {"a": None}, 6.0: {"a": 1}}))
    assert rows(log) == [(0, 17)]  # 2 s done, at 5 still resuming: 3 s and 8 s from 6 on
    assert log.preemptions.tolist() == [2]
