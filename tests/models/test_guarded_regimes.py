"""Regimes that cannot be: none of them reaches a policy, whatever is wrong with it and whichever policy asks."""

from math import inf, isclose, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.bad_answers import REGIMES, BadAnswers, Reason
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes import Restatement
from jobcast.models.regimes.guarded import MOST_REGIMES, GuardedRegimes
from jobcast.models.regimes.trajectories import progress_at
from jobcast.pipelines.experiments.rounds import Declared
from jobcast.schedulers.policies import ROUNDS
from jobcast.schedulers.registry import find_policy, make_policy, names_of
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload

TRAINING = Training("LM", 10, 12, "gns", {10: 60.0, 20: 40.0, 40: 25.0})
ASKING = [name for name in names_of(ROUNDS) if find_policy(name).asks]


def raised(job, progress):
    raise RuntimeError("no\nidea")


def left_of(progress):
    return TRAINING.epochs - progress.epochs


def at(progress, epochs, *more):
    """The running batch size for so long."""
    return (Regime(progress.batch_size, epochs), *more)


BAD = {
    "raises": (raised, Reason.RAISED),
    "none": (lambda job, now: None, Reason.WRONG_SHAPE),
    "text": (lambda job, now: "soon", Reason.WRONG_SHAPE),
    "list of numbers": (lambda job, now: (1.0, 2.0), Reason.WRONG_SHAPE),
    "empty": (lambda job, now: (), Reason.WRONG_SHAPE),
    "complex": (lambda job, now: at(now, 1j), Reason.NO_NUMBER),
    "epochs in words": (lambda job, now: at(now, "3"), Reason.NO_NUMBER),
    "nan": (lambda job, now: at(now, nan), Reason.NOT_FINITE),
    "inf": (lambda job, now: at(now, inf), Reason.NOT_FINITE),
    "-inf": (lambda job, now: at(now, left_of(now), Regime(40, -inf)), Reason.NOT_FINITE),
    "negative": (lambda job, now: at(now, left_of(now) + 5.0, Regime(40, -5.0)), Reason.OUT_OF_RANGE),
    "1e300": (lambda job, now: at(now, 1e300), Reason.INCONSISTENT),
    "zero": (lambda job, now: at(now, -0.001, Regime(now.batch_size, left_of(now))), Reason.OUT_OF_RANGE),
    "adds up to more": (lambda job, now: at(now, left_of(now) + 0.01), Reason.INCONSISTENT),
    "unknown size": (lambda job, now: at(now, left_of(now), Regime(80, 0.0)), Reason.OUT_OF_RANGE),
    "size in words": (lambda job, now: at(now, left_of(now), Regime("20", 0.0)), Reason.NO_NUMBER),
    "another size first": (
        lambda job, now: (Regime(10 if now.batch_size != 10 else 40, left_of(now)),),
        Reason.INCONSISTENT,
    ),
    "endless": (lambda job, now: at(now, 0.0) * (MOST_REGIMES + 1), Reason.WRONG_SHAPE),
}

CASES = [*((ASKING[0], kind) for kind in BAD), *((policy, "nan") for policy in ASKING[1:])]
"""Every bad answer to one policy, and one of them to every policy: how it is judged does not depend on who asks."""


class Rule:
    """Answers badly every `every`-th time, else as greedy does."""

    def __init__(self, answer, every=1):
        self.answer, self.every, self.asked, self.bad = answer, every, 0, 0

    def regimes(self, job, progress):
        self.asked += 1
        if self.asked % self.every:
            return at(progress, max(0.0, left_of(progress)))
        self.bad += 1
        return self.answer(job, progress)


class Kept:
    """Keeps what a policy is told."""

    def __init__(self, rule):
        self.rule, self.told = rule, []

    def regimes(self, job, progress):
        self.told.append((progress, self.rule.regimes(job, progress)))
        return self.told[-1][1]


def workload():
    """Four jobs on two GPUs; all double their batch sizes, at other epochs."""
    rows = [(0.0, 1, (4, 8, 0)), (10.0, 2, (6, 3, 3)), (300.0, 1, (12, 0, 0)), (310.0, 1, (2, 2, 8))]
    jobs, outcomes = [], []
    for seq, (submit_s, gpus, epochs) in enumerate(rows):
        regimes = tuple(Regime(size, float(e)) for size, e in zip((10, 20, 40), epochs, strict=True) if e)
        jobs.append(Job(seq, f"j{seq}", "p", submit_s, gpus, preemptible=True, training=TRAINING))
        outcomes.append(Outcome(TRAINING.run_time_s(regimes), regimes))
    return Workload(jobs, outcomes, [Pool("p", 2)], restart_s=5.0)


def run(policy, rule):
    made = workload()
    log = replay(made, make_policy(policy, Declared(made, rule)))
    return log.start_s.tolist(), log.end_s.tolist(), log.preemptions.tolist()


@pytest.fixture(scope="module")
def restated():
    """What the restatement rule makes of each policy."""
    return {policy: run(policy, Restatement()) for policy in ASKING}


@pytest.mark.parametrize(("policy", "kind"), CASES)
def test_where_all_answers_are_bad_a_run_is_that_of_the_restatement_rule(policy, kind, restated):
    answer, reason = BAD[kind]
    told, rule = BadAnswers(), Rule(answer)
    assert run(policy, GuardedRegimes(rule, told)) == restated[policy]
    figures = told.figures()[REGIMES]
    assert figures["checked"] == figures["bad"] == rule.asked > 0
    assert figures["reasons"] == {str(reason): rule.asked}


@pytest.mark.parametrize(("policy", "kind"), CASES)
def test_where_some_are_bad_none_of_these_reaches_a_policy(policy, kind):
    told, rule = BadAnswers(), Rule(BAD[kind][0], every=3)
    kept = Kept(GuardedRegimes(rule, told))
    run(policy, kept)
    assert rule.bad > 0
    assert told.figures()[REGIMES]["bad"] == rule.bad < len(kept.told)
    for progress, regimes in kept.told:
        assert regimes[0].batch_size == progress.batch_size
        assert all(isfinite(one.epochs) and one.epochs >= 0 and one.batch_size in TRAINING.epoch_s for one in regimes)
        assert isclose(sum(one.epochs for one in regimes), left_of(progress), abs_tol=1e-4)


def test_what_was_bad_is_told_by_job():
    told = BadAnswers()
    job = Job(0, "j7", "p", 0.0, 1, training=TRAINING)
    guarded = GuardedRegimes(Rule(lambda job, now: at(now, 3.0)), told)
    assert guarded.regimes(job, Progress(4.0, (Regime(10, 4.0),))) == (
        Regime(10, 0.0),
        Regime(20, 4.0),
        Regime(40, 4.0),
    )
    assert told.lines() == [
        "regimes: 1 of 1 answers were bad and took the conservative value (inconsistent 1; first: job j7 after 4 "
        "epochs: regimes of 3 epochs in all, 8 are left)"
    ]


@pytest.mark.parametrize(("answer", "told"), [(90.0, 90.0), (nan, None), (-1.0, None), (inf, None), ("soon", None)])
def test_a_quantile_that_cannot_be_is_none_and_counted(answer, told):
    tally, now = BadAnswers(), Progress(4.0, (Regime(10, 4.0),))
    job, rule = Job(0, "j7", "p", 0.0, 1, training=TRAINING), Rule(lambda job, now: at(now, left_of(now)))
    rule.left_quantile_s = lambda job, progress, level: answer
    assert GuardedRegimes(rule, tally).left_quantile_s(job, now, 0.9) == told
    assert ("bad" in str(tally.lines())) == (told is None)


def test_where_the_restatement_rule_stands_in_no_quantile_of_the_model_is_told():
    now, job = Progress(4.0, (Regime(10, 4.0),)), Job(0, "j7", "p", 0.0, 1, training=TRAINING)
    rule = Rule(raised)
    rule.left_quantile_s = lambda job, progress, level: 90.0
    guarded = GuardedRegimes(rule, BadAnswers())
    guarded.regimes(job, now)
    assert guarded.left_quantile_s(job, now, 0.9) is None


def test_what_a_rule_raises_is_told_in_one_line():
    told = BadAnswers()
    job = Job(0, "j7", "p", 0.0, 1, training=TRAINING)
    GuardedRegimes(Rule(raised), told).regimes(job, Progress(0.0, (Regime(10, 0.0),)))
    assert told.figures()[REGIMES]["first"] == "job j7 after 0 epochs: RuntimeError: no idea"


@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=3),
    st.floats(0.0, 1.0),
    st.sampled_from([1.0, 1 + 1e-9, 1 - 1e-9]),
)
def test_what_is_left_of_a_job_is_a_good_answer_but_for_rounding(shares, done, rounding):
    total = sum(shares)
    whole = tuple(Regime(size, 12.0 * share / total) for size, share in zip((10, 20, 40), shares, strict=False))
    progress = progress_at(whole, 12.0 * done)
    seen = len(progress.regimes)
    now = whole[seen - 1]
    left = max(0.0, now.epochs - progress.regimes[-1].epochs)
    answer = (Regime(now.batch_size, left * rounding), *whole[seen:])
    told = BadAnswers()
    job = Job(0, "a", "p", 0.0, 1, training=TRAINING)
    assert GuardedRegimes(Rule(lambda job, now: answer), told).regimes(job, progress) is answer
    assert told.figures() == {}
