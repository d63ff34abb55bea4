"""What cannot be trusted lends nothing, whatever is wrong with it and whichever policy asks."""

from dataclasses import replace
from functools import cache
from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.bad_answers import ARRIVALS, DURATIONS, LOADS, BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import ConfigError, RegistryError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.policies import POOLS
from jobcast.schedulers.registry import find_policy, make_policy, names_of
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle
from jobcast.simulator.guard import GuardedForecasts, Nobody
from jobcast.simulator.workload import Workload
from tests.contract.random_jobs import most_held

STRIKES, STEP_S, REST_STEPS = 3, 300.0, 12
"""As the documentation tells: after three bad answers in a row nobody is asked for an hour of five-minute steps."""
PARTS = {
    ARRIVALS: ("will_jobs_arrive", "arrival_probability"),
    LOADS: ("new_load", "load_quantile", "load_quantiles"),
    DURATIONS: ("duration_bin", "duration_probabilities", "duration_s"),
}
PART_OF = {question: part for part, questions in PARTS.items() for question in questions}
OF_POOLS = ["sia", "sia_risk", "sia_plan", "sia_preempt", "ssf", "sjf", "gssf", "themis_np", "easy_forecast"]
LOCAL = "sia with locality"
OF_ROUNDS = ["srpt", "allox", "themis_filter"]
POLICIES = [*OF_POOLS, LOCAL, *OF_ROUNDS]
SEQUENCES = ("load_quantiles", "duration_probabilities")


def fraction(question):
    """No yes or no, no bin, no probability, no load, no run time."""
    return {"will_jobs_arrive": 0.5, "arrival_probability": 1.5, "duration_bin": 1.5}.get(question, -0.5)


def contradiction(question):
    """Quantiles that fall, probabilities that add up to 2; of a single number, one that is none and says it is."""
    if question == "load_quantiles":
        return tuple(float(12 - number) for number in range(12))
    return (0.5, 0.5, 0.5, 0.5) if question == "duration_probabilities" else object()


BAD = {
    "raises": None,
    "none": lambda question: None,
    "text": lambda question: "soon",
    "complex": lambda question: 1 + 1j,
    "array": lambda question: np.ones((2, 2)),
    "nan": lambda question: (nan,) * 4 if question in SEQUENCES else nan,
    "inf": lambda question: inf,
    "-inf": lambda question: np.float64(-inf),
    "-1": lambda question: -1,
    "1e300": lambda question: 1e300,
    "fraction": fraction,
    "empty": lambda question: (),
    "too many": lambda question: [0.1] * 40,
    "contradiction": contradiction,
}
"""Fourteen kinds of bad answer: question -> answer; None: it raises."""


def a_workload(servers=()):
    """Three pools under load, of which some jobs may be stopped."""
    rng = np.random.default_rng(5)
    jobs, outcomes = [], []
    for number in range(40):
        pool, gpus = f"p{rng.integers(3)}", int(rng.choice([1, 2, 4]))
        at_s = float(np.round(rng.uniform(0, 11_000.0)))
        jobs.append(Job(0, f"{number:03d}", pool, at_s, gpus, preemptible=bool(rng.random() < 0.4)))
        outcomes.append(Outcome(float(np.round(np.exp(rng.uniform(np.log(60), np.log(9000)))))))
    return Workload(jobs, outcomes, [Pool(f"p{i}", 4) for i in range(3)], resume_s=60.0, servers=servers)


PLAIN, ON_SERVERS = a_workload(), a_workload(servers=(4, 4, 4))
ROUNDS = replace(PLAIN, jobs=[replace(job, preemptible=True) for job in PLAIN.jobs])


def workload_of(policy):
    return ON_SERVERS if policy == LOCAL else ROUNDS if policy in OF_ROUNDS else PLAIN


def run(policy, source):
    """Starts and ends by job."""
    workload = workload_of(policy)
    rule = make_policy("sia", source, cells={}) if policy == LOCAL else make_policy(policy, source, {})
    log = replay(workload, rule, source)
    return log.start_s.tolist(), log.end_s.tolist()


class Faulty:
    """A source some of whose answers about some parts are bad.

    `made` counts those by part.
    """

    def __init__(self, source, kind, parts, share=1.0, seed=0):
        self._source, self._bad, self._parts, self._share = source, BAD[kind], parts, share
        self._rng = np.random.default_rng(seed)
        self.horizons_min = source.horizons_min
        self.made = dict.fromkeys(PARTS, 0)

    def advance(self, now_s):
        self._source.advance(now_s)

    def __getattr__(self, question):
        def answer(*asked):
            part = PART_OF[question]
            if part not in self._parts or self._rng.random() >= self._share:
                return getattr(self._source, question)(*asked)
            self.made[part] += 1
            if self._bad is None:
                raise RuntimeError("no model\nto ask")
            return self._bad(question)

        return answer


class Spy:
    """Looks at everything that reaches a policy, with checks of its own."""

    def __init__(self, source):
        self._source = source
        self.horizons_min = source.horizons_min
        self.asked = dict.fromkeys(PARTS, 0)

    def advance(self, now_s):
        self._source.advance(now_s)

    def __getattr__(self, question):
        def answer(*asked):
            self.asked[PART_OF[question]] += 1
            told = getattr(self._source, question)(*asked)
            assert good(question, told, len(self.horizons_min) + 1), (question, told)
            return told

        return answer


def good(question, told, bins):
    if question == "will_jobs_arrive":
        return told is True or told is False
    if question == "duration_bin":
        return type(told) is int and 0 <= told < bins
    if question in SEQUENCES:
        numbers = all(isinstance(one, float | int) and isfinite(one) and one >= 0 for one in told)
        if question == "load_quantiles":
            return numbers and list(told) == sorted(told)
        return numbers and len(told) == bins and abs(sum(told) - 1) < 1e-3
    low, high = (0, 1) if question == "arrival_probability" else (0, 1e10)
    return isinstance(told, float | int) and low <= told <= high and (question != "duration_s" or told > 0)


def guarded(source, policy, **others):
    told = BadAnswers()
    return GuardedForecasts(source, workload_of(policy), told, **others), told


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in OF_ROUNDS[1:]])
def test_the_workload_tells_good_forecasts_from_conservative_ones(policy):
    assert run(policy, Oracle(workload_of(policy))) != conservative_run(policy)


def test_all_policies_of_pools_that_ask_are_tried():
    specs = [find_policy(name) for name in names_of(POOLS)]
    assert {spec.name for spec in specs if spec.asks and not spec.needs_every_job} == set(OF_POOLS)


@pytest.mark.parametrize(
    "policy", [pytest.param(n, marks=() if n not in OF_ROUNDS[1:] else pytest.mark.slow) for n in POLICIES]
)
@pytest.mark.parametrize("kind", BAD)
def test_all_answers_bad_is_the_conservative_run_job_by_job(policy, kind):
    workload = workload_of(policy)
    source, told = guarded(Faulty(Oracle(workload), kind, PARTS), policy)
    assert run(policy, Spy(source)) == conservative_run(policy)
    asked = [part for part in PARTS if part in told.figures()]
    assert asked
    for part in asked:
        assert told.figures()[part]["bad"] == told.figures()[part]["checked"] > 0


@cache
def conservative_run(policy):
    return run(policy, Conservative(workload_of(policy)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", BAD)
def test_some_answers_bad_none_reaches_the_policy_and_each_is_counted(policy, kind):
    workload = workload_of(policy)
    faulty = Faulty(Noisy(workload, 0.3), kind, PARTS, share=0.4)
    source, told = guarded(faulty, policy)
    spy = Spy(source)
    assert all(isfinite(end_s) for end_s in run(policy, spy)[1])
    for part, figures in told.figures().items():
        not_asked = figures["reasons"].get(str(Reason.BREAKER), 0)
        assert figures["bad"] - not_asked == faulty.made[part]
        assert figures["checked"] == spy.asked[part]
    assert {part for part in PARTS if faulty.made[part]} == set(told.figures())


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=3),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.lists(st.floats(), max_size=4),
    st.tuples(*[st.floats(0, 1)] * 4),
    st.sampled_from([ValueError, KeyError, ZeroDivisionError, RecursionError, BadAnswerError]),
)


@settings(max_examples=15)
@given(data=st.data(), policy=st.sampled_from(OF_POOLS))
def test_whatever_a_source_answers_the_run_ends_and_capacity_holds(data, policy):
    replies = data.draw(st.lists(ANYTHING, min_size=1, max_size=8))
    seed = data.draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)

    class Any(Faulty):
        def __getattr__(self, question):
            def answer(*asked):
                told = replies[rng.integers(len(replies))]
                if isinstance(told, type):
                    raise told(Reason.RAISED, "x") if told is BadAnswerError else told
                return told

            return answer

    workload = workload_of(policy)
    source, _ = guarded(Any(Oracle(workload), "raises", PARTS), policy)
    starts_s, ends_s = run(policy, Spy(source))
    assert all(isfinite(end_s) for end_s in ends_s)
    if policy != "sia_preempt":  # whose jobs are stopped meanwhile: the engine itself refuses more than there is
        gpus = np.array([job.gpus for job in workload.jobs])
        assert most_held(np.array(starts_s), np.array(ends_s), gpus) <= workload.total_gpus


class Scripted:
    """Says about arrivals what a script says, and counts how often it was asked."""

    horizons_min = (5.0, 60.0)

    def __init__(self, *script):
        self.script, self.asked, self.moved = list(script), 0, []

    def advance(self, now_s):
        self.moved.append(now_s)

    def will_jobs_arrive(self, pool, horizon_s):
        self.asked += 1
        return self.script.pop(0)


def ask_at(source, *times_s, pool="p0", horizon_s=300.0):
    found = []
    for at_s in times_s:
        source.advance(at_s)
        found.append(source.will_jobs_arrive(pool, horizon_s))
    return found


def test_a_breaker_opens_after_bad_answers_in_a_row_and_closes_after_a_good_one():
    script = Scripted(*[nan] * STRIKES, nan, False, False)
    source, told = guarded(script, "sia")
    strikes = [STEP_S * number for number in range(STRIKES)]
    assert ask_at(source, *strikes) == [True] * STRIKES
    rest_until_s = strikes[-1] + REST_STEPS * STEP_S
    assert ask_at(source, strikes[-1], strikes[-1] + 1.0, rest_until_s - 1.0) == [True] * 3
    assert script.asked == STRIKES
    assert ask_at(source, rest_until_s) == [True]  # one probe, which is bad again
    assert script.asked == STRIKES + 1
    assert ask_at(source, rest_until_s + STEP_S) == [True]
    assert script.asked == STRIKES + 1
    assert ask_at(source, rest_until_s + REST_STEPS * STEP_S, rest_until_s + REST_STEPS * STEP_S) == [False, False]
    figures = told.figures()[ARRIVALS]
    assert figures["reasons"] == {"breaker open": 4, "not finite": 4}
    assert figures["breakers"] == {"pool p0, 5 min": 2}


def test_bad_answers_within_a_step_count_once_and_a_good_one_forgets_them():
    script = Scripted(*[nan] * 6, False, nan, nan, False)
    source, told = guarded(script, "sia")
    assert ask_at(source, *range(6)) == [True] * 6
    assert ask_at(source, STEP_S, 2 * STEP_S, 3 * STEP_S, 4 * STEP_S) == [False, True, True, False]
    assert "breakers" not in told.figures()[ARRIVALS]


def test_breakers_belong_to_a_pool_and_horizon_and_of_durations_to_a_pool():
    exact = Oracle(PLAIN)
    faulty = Faulty(exact, "nan", {ARRIVALS, DURATIONS})
    source, told = guarded(faulty, "sia")
    ask_at(source, *(STEP_S * number for number in range(STRIKES)))
    before = faulty.made[ARRIVALS]
    source.will_jobs_arrive("p0", 3600.0)
    source.will_jobs_arrive("p1", 300.0)
    assert faulty.made[ARRIVALS] == before + 2
    for job in [job for job in PLAIN.jobs if job.pool == "p2"][: STRIKES + 2]:
        assert source.duration_bin(job) == len(source.horizons_min)
    assert faulty.made[DURATIONS] == STRIKES
    assert told.figures()[DURATIONS]["breakers"] == {"pool p2": 1}
    assert {row.horizon_s for row in source.replaced if row.kind == DURATIONS} == {0.0}


def test_it_is_known_since_when_answers_were_replaced():
    source, _ = guarded(Scripted(False, nan, nan, -1, False), "sia")
    ask_at(source, 0.0, 10.0, 20.0, 30.0, 40.0)
    told = [(row.at_s, row.kind, row.pool, row.horizon_s, row.reason) for row in source.replaced]
    where = (ARRIVALS, "p0", 300.0)
    assert told == [(10.0, *where, "not finite"), (30.0, *where, "out of range"), (40.0, *where, None)]


def test_a_source_that_cannot_move_is_not_believed_until_it_can():
    class Stuck(Scripted):
        def advance(self, now_s):
            if now_s < 20.0:
                raise OSError("clock lost")

    script = Stuck(False)
    source, told = guarded(script, "sia")
    assert ask_at(source, 0.0, 10.0, 20.0) == [True, True, False]
    assert script.asked == 1
    assert told.figures()[ARRIVALS]["first"] == "pool p0, 5 min: OSError: clock lost"


@pytest.mark.parametrize(
    "error", [RegistryError("no such horizon"), ConfigError("none"), MemoryError(), KeyboardInterrupt()]
)
def test_what_the_user_did_wrong_and_what_cannot_go_on_still_ends_the_run(error):
    class Refusing(Scripted):
        def will_jobs_arrive(self, pool, horizon_s):
            raise error

    source, _ = guarded(Refusing(), "sia")
    with pytest.raises(type(error)):
        ask_at(source, 0.0)


def test_a_source_need_not_have_what_it_is_not_asked_for():
    source, told = guarded(Scripted(), "sia_risk")
    assert source.load_quantiles("p0", 300.0, (0.5, 0.9)) == (4, 4)
    assert told.figures()[LOADS]["reasons"] == {"raised": 1}


def test_good_answers_pass_as_they_are_and_nothing_is_told():
    exact = Oracle(PLAIN)
    source, told = guarded(exact, "sia")
    levels = (0.1, 0.5)
    held = (1.0, 2.0)
    exact.load_quantiles = lambda *asked: held
    for now_s in (0.0, 5000.0):
        source.advance(now_s)
        assert source.will_jobs_arrive("p1", 3600.0) == exact.will_jobs_arrive("p1", 3600.0)
        assert source.new_load("p1", 3600.0) == exact.new_load("p1", 3600.0)
        assert source.load_quantiles("p1", 3600.0, levels) is held  # held answers are known by their identity
    exact.load_quantiles = lambda *asked: np.array(held)
    assert source.load_quantiles("p0", 3600.0, levels) == held
    assert [source.duration_s(job) for job in PLAIN.jobs] == [exact.duration_s(job) for job in PLAIN.jobs]
    assert told.figures() == {}
    assert source.replaced == []


@pytest.mark.parametrize("horizons", [(), (0.0, 5.0), (60.0, 5.0), (5.0, nan), None, "soon"])
def test_horizons_that_are_none_are_refused(horizons):
    source = Scripted()
    source.horizons_min = horizons
    with pytest.raises(ConfigError, match="horizons"):
        guarded(source, "sia")


def test_where_there_is_nobody_to_ask_all_is_conservative_and_degraded():
    source, told = guarded(Nobody("no model", (5, 60, 720)), "sia")
    assert run("sia", source) == run("sia", Conservative(PLAIN))
    figures = told.figures()
    assert {reason for one in figures.values() for reason in one["reasons"]} == {"degraded"}
    assert all("breakers" not in one for one in figures.values())


def test_pools_that_were_never_seen_are_not_asked_about():
    faulty = Faulty(Oracle(PLAIN), "raises", {})
    source, told = guarded(faulty, "sia", unseen={ARRIVALS: ["p1"]})
    source.advance(0.0)
    for _ in range(2):
        assert source.will_jobs_arrive("p1", 300.0) is True
        source.will_jobs_arrive("p0", 300.0)
    assert told.figures()[ARRIVALS]["reasons"] == {"degraded": 2}
    assert LOADS not in told.figures()
