"""Answers of registered predictors in a running cluster: the right instant, the same rows as in training."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.bad_answers import BadAnswerError
from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.features.arrivals import arrival_features
from jobcast.models.duration_booster import LENDERS_GPUS
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.load_quantile import quantile_of
from jobcast.models.new_load import NewLoad, load_quantiles
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace
from tests.models.conftest import FROM_S, HORIZONS_MIN, UNTIL_S
from tests.shared import refused

POOLS = ("busy", "calm")
HORIZONS_S = (300.0, 3600.0)
LEVELS = (0.2, 0.55, 0.9, 0.99)


@pytest.fixture(scope="module")
def scenario(small_trace, predictors):
    return Scenario(small_trace, predictors)


@pytest.fixture(scope="module")
def learnt(small_trace, predictors):
    """The same with loads whose quantiles were learnt."""
    loads = NewLoad("quantile").fit(pool_histories(small_trace), FROM_S, UNTIL_S, HORIZONS_MIN)
    return Scenario(small_trace, {**predictors, "new-load": loads})


class Scenario:
    """A trace replayed as it ran, and what should be answered at any instant."""

    def __init__(self, trace: Trace, predictors):
        self.trace, self.predictors = trace, predictors
        self.histories = pool_histories(trace)
        self.jobs, self.duration_s = trace.to_jobs()
        self.start_s, self.end_s = trace.submit_s.min(), trace.submit_s.max()

    def source(self, pools: Sequence[str] = POOLS) -> tuple[RunHistory, RegistryForecasts]:
        earlier = EarlierJobs(self.jobs, self.trace.start_s, self.trace.end_s, self.duration_s)
        history = RunHistory(pools, earlier)
        return history, RegistryForecasts(history, *(self.predictors.values()))

    def answers_at(self, pool: str, at_s: float) -> list[object]:
        """What the predictors say from features over the whole trace, future and all, at an instant."""
        arrivals, loads, _ = self.predictors.values()
        probability = arrivals.predict_proba(arrival_features(self.histories[pool], [at_s], HORIZONS_S))[0]
        rows = loads.rows(self.histories[pool], [at_s])
        quantiles = [tuple(told) for told in load_quantiles(loads, rows, LEVELS)[0].tolist()]
        return [
            *(probability >= arrivals.thresholds_gate_).tolist(),
            *probability.tolist(),
            *loads.lend_rows(rows)[0].tolist(),
            *quantiles,
            *(told[-1] for told in quantiles),
        ]

    def instant(self, pool: str, now_s: float) -> float:
        """The instant that an answer at now belongs to: walk all events, as an eager source would."""
        at_s = np.floor(now_s / 300.0) * 300.0
        last_s = -np.inf
        for arrival_s in self.histories[pool].arrival_s:
            if arrival_s > now_s:
                break
            if arrival_s - last_s > 300.0 and arrival_s > at_s:
                at_s = arrival_s
            last_s = arrival_s
        return at_s


def asked(source: RegistryForecasts, pool: str, order: Sequence[int] = range(10)) -> list[object]:
    asks = (
        source.will_jobs_arrive,
        source.arrival_probability,
        source.new_load,
        lambda pool, horizon_s: source.load_quantiles(pool, horizon_s, LEVELS),
        lambda pool, horizon_s: source.load_quantile(pool, horizon_s, LEVELS[-1]),
    )
    questions = [(ask, horizon_s) for ask in asks for horizon_s in HORIZONS_S]
    told = {number: questions[number][0](pool, questions[number][1]) for number in order}
    return [told[number] for number in range(len(questions))]


def move(history: RunHistory, source: RegistryForecasts, now_s: float) -> None:
    history.advance(now_s)
    source.advance(now_s)


def test_answers_at_every_event_of_half_a_day(learnt):
    history, source = learnt.source()
    events = np.unique(np.concatenate([learnt.trace.submit_s, learnt.trace.end_s]))
    events = events[(events > learnt.end_s - 43_200) & (events <= learnt.end_s)]
    refreshed = 0
    for now_s in events:
        move(history, source, now_s)
        for pool in POOLS:
            at_s = learnt.instant(pool, now_s)
            refreshed += at_s % 300.0 != 0.0
            assert asked(source, pool) == learnt.answers_at(pool, at_s), (pool, now_s)
    assert len(events) > 50
    assert refreshed > 10  # some answers came from a first arrival after a quiet window


@settings(max_examples=25)
@given(st.data())
def test_answers_do_not_depend_on_when_or_whether_or_in_which_order_others_were_asked(learnt, data):
    share = st.floats(0.1, 1.0, allow_nan=False)
    moments = sorted(data.draw(st.lists(st.tuples(share, st.booleans()), min_size=1, max_size=12)))
    history, source = learnt.source()
    for part, ask in moments:
        now_s = learnt.start_s + part * (learnt.end_s - learnt.start_s)
        move(history, source, now_s)
        if ask:
            pool, order = data.draw(st.sampled_from(POOLS)), data.draw(st.permutations(range(10)))
            assert asked(source, pool, order) == learnt.answers_at(pool, learnt.instant(pool, now_s))


def test_quantiles_of_loads_are_what_was_learnt_and_no_smaller_for_longer_windows(learnt):
    loads = learnt.predictors["new-load"]
    rows = loads.rows(learnt.histories["busy"], [learnt.end_s])
    lowest = np.zeros(len(LEVELS))
    for column, distribution in enumerate(loads.rule_.distributions_):
        parts = distribution.parts(rows[:, column])
        lowest = np.maximum(lowest, [quantile_of(*parts, level)[0] for level in LEVELS])
        assert load_quantiles(loads, rows, LEVELS)[0, column].tolist() == sorted(lowest.tolist())


def test_quantiles_of_the_past_windows_that_sliding_max_reads(predictors):
    rows = np.array([[[0.0, 0.0, 4.0, 8.0], [9.0, 1.0, 2.0, 3.0]]])
    told = load_quantiles(predictors["new-load"], rows, (0.5, 0.75, 0.99))
    assert told.tolist() == [[[4.0, 8.0, 8.0], [4.0, 9.0, 9.0]]]


def test_an_answer_is_held_until_the_next_grid_instant(learnt):
    history, source = learnt.source()
    start_s = np.ceil(learnt.end_s / 300.0) * 300.0 + 600.0
    told = []
    for now_s in (start_s, start_s + 200.0, start_s + 300.0):
        move(history, source, now_s)
        told.append(source.load_quantiles("busy", 300.0, LEVELS))
    assert told[0] is told[1] is not told[2]


def test_a_first_arrival_after_a_quiet_window_is_answered_at_once(scenario):
    history, source = scenario.source(pools=("calm", "empty"))
    start_s = np.ceil(scenario.end_s / 300.0) * 300.0 + 30_000.0
    move(history, source, start_s + 10.0)
    before = source.new_load("empty", 300.0)
    move(history, source, start_s + 20.0)
    history.arrived(Job(9000, "9000", "empty", start_s + 20.0, 6))
    assert before == 0.0
    assert source.new_load("empty", 300.0) == 6.0
    move(history, source, start_s + 30.0)
    history.arrived(Job(9001, "9001", "empty", start_s + 30.0, 32))
    assert source.new_load("empty", 300.0) == 6.0  # no quiet window before it: held till the next grid instant
    move(history, source, start_s + 300.0)
    assert source.new_load("empty", 300.0) == 38.0


def test_an_answer_belongs_to_that_arrival_even_if_asked_later(scenario):
    history, source = scenario.source(pools=("empty",))
    start_s = np.ceil(scenario.end_s / 300.0) * 300.0 + 30_000.0
    for now_s, gpus in ((start_s - 3480.0, 7), (start_s + 20.0, 6)):
        move(history, source, now_s)
        history.arrived(Job(9000, "9000", "empty", now_s, gpus))
    move(history, source, start_s + 220.0)
    # The hour up to the arrival holds both jobs; the hour up to now, or to the grid instant, holds one.
    assert source.new_load("empty", 3600.0) == 13.0


def test_all_pools_are_computed_together_once_a_grid_instant_and_horizon(scenario, monkeypatch):
    arrivals = scenario.predictors["will-jobs-arrive"]
    rows = []

    def counted(X, horizon):
        rows.append((horizon, len(X)))
        return type(arrivals).horizon_proba(arrivals, X, horizon)

    monkeypatch.setattr(arrivals, "horizon_proba", counted, raising=False)
    pools = ("a", "b", "c", "d")
    history = RunHistory(pools)
    source = RegistryForecasts(history, *scenario.predictors.values())
    for now_s in (3000.0, 3001.0, 3299.9):
        move(history, source, now_s)
        for pool in pools:
            asked(source, pool)
    assert rows == [(0, 4), (1, 4)]
    for now_s in (3300.0, 3600.0, 3900.0):
        move(history, source, now_s)  # nobody asks: nothing is computed
    source.new_load("c", 300.0)
    assert rows == [(0, 4), (1, 4)]
    source.will_jobs_arrive("c", 3600.0)  # the other horizon is left alone
    assert rows == [(0, 4), (1, 4), (1, 4)]


def test_pools_unseen_in_training_are_answered(scenario):
    history, source = scenario.source(pools=("busy", "newcomer"))
    move(history, source, scenario.end_s)
    assert [type(answer) for answer in asked(source, "newcomer")[::2]] == [bool, float, float, tuple, float]
    assert source.new_load("newcomer", 300.0) == 0.0
    assert asked(source, "unlisted") == asked(source, "newcomer")
    assert asked(source, "busy") == scenario.answers_at("busy", scenario.instant("busy", scenario.end_s))


@pytest.mark.parametrize(("gate", "expected"), [(0.0, True), (1.1, False)])
def test_arrivals_are_told_by_the_gate(scenario, monkeypatch, gate, expected):
    arrivals = scenario.predictors["will-jobs-arrive"]
    monkeypatch.setattr(arrivals, "thresholds_gate_", np.full(2, gate))
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    assert {source.will_jobs_arrive(pool, k) for pool in POOLS for k in HORIZONS_S} == {expected}


def test_durations_are_the_batch_forecasts_and_stay(scenario, monkeypatch):
    durations = scenario.predictors["job-duration"]
    rows = durations.rows(scenario.trace)
    proba, lenders = durations.predict_proba(rows), LENDERS_GPUS
    # So dear that half of the 1-GPU jobs are told the second bin rather than the first.
    gains = proba[:, 0] / np.maximum(proba @ (durations.overstay_h_[0] - durations.overstay_h_[1]), 1e-9)
    monkeypatch.setattr(durations, "under_cost", float(np.median(gains)) * lenders)
    expected, likeliest_s = durations.choose(rows), durations.predict_duration_s(rows)
    history, source = scenario.source()
    for job in scenario.jobs:
        move(history, source, job.submit_s)
        assert source.duration_bin(job) == expected[job.seq]
        assert source.duration_s(job) == likeliest_s[job.seq]
        assert source.duration_probabilities(job) == tuple(proba[job.seq])
    assert len(set(expected.tolist())) > 1
    assert [source.duration_bin(job) for job in scenario.jobs] == expected.tolist()
    assert source.duration_probabilities(scenario.jobs[0]) == tuple(proba[0])


def test_a_horizon_that_no_predictor_knows(scenario):
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    line = "will-jobs-arrive knows the horizons 5min, 60min, not 30min; train it with `--horizons ...,30`"
    refused(RegistryError, line, source.will_jobs_arrive, "busy", 1800.0)
    refused(RegistryError, "new-load knows the horizons 5min, 60min, not 720min", source.new_load, "busy", 43_200.0)


def test_predictors_of_different_horizons_do_not_go_together(scenario):
    arrivals, loads, durations = scenario.predictors.values()
    assert scenario.source()[1].horizons_min == (5, 60)
    other = type(durations)((5, 60, 720))
    with pytest.raises(RegistryError, match=r"different horizons .*job-duration: 5min, 60min, 720min"):
        RegistryForecasts(RunHistory(POOLS), arrivals, loads, other)


def test_a_probability_that_is_the_gate_itself_declares_arrivals(scenario, monkeypatch):
    """Thresholds are observed probabilities, so that ties are the rule."""
    arrivals = scenario.predictors["will-jobs-arrive"]
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    told = [source.arrival_probability("busy", horizon_s) for horizon_s in HORIZONS_S]
    for gates, declared in ((np.array(told), True), (np.nextafter(told, 2.0), False)):
        monkeypatch.setattr(arrivals, "thresholds_gate_", gates)
        history, source = scenario.source()
        move(history, source, scenario.end_s)
        assert [source.will_jobs_arrive("busy", horizon_s) for horizon_s in HORIZONS_S] == [declared, declared]


def wrong_about(answer, bad, rows_of):
    """A predictor's method that is wrong about some rows; `bad`: what it says of them, or raises."""

    def wrong(*given):
        told = np.array(answer(*given), dtype=object)
        for row in rows_of(given[0]):
            if isinstance(bad, Exception):
                raise bad
            told[row] = bad
        return told

    return wrong


BAD_NUMBERS = [(np.nan, "not finite"), (-1000.0, "out of range"), (None, "no number"), (1j, "no number")]


@pytest.mark.parametrize(("bad", "reason"), [*BAD_NUMBERS, (RuntimeError("torn"), "raised")])
def test_a_bad_row_of_a_batch_spoils_that_pool_alone(scenario, monkeypatch, bad, reason):
    arrivals, loads, _ = scenario.predictors.values()
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    expected = asked(source, "busy")
    calm = arrival_features(scenario.histories["calm"], [np.floor(scenario.end_s / 300) * 300], HORIZONS_S)[0]
    gpus = loads.rows(scenario.histories["calm"], [np.floor(scenario.end_s / 300) * 300])[0]

    def of_calm(X, like):
        return [row for row in range(len(X)) if any(np.array_equal(X[row], one) for one in like)]

    for predictor, method, like in ((arrivals, "horizon_proba", calm), (loads, "lend_rows", [gpus])):
        answer = getattr(predictor, method)
        monkeypatch.setattr(
            predictor, method, wrong_about(answer, bad, lambda X, like=like: of_calm(X, like)), raising=False
        )
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    assert asked(source, "busy") == expected
    for ask in (source.will_jobs_arrive, source.arrival_probability, source.new_load):
        for _ in range(2):
            with pytest.raises(BadAnswerError) as told:
                ask("calm", 300.0)
            assert told.value.reason == reason


@pytest.mark.parametrize("gate", [np.nan, np.inf, 1e300])
def test_a_threshold_that_is_none_declares_nothing(scenario, monkeypatch, gate):
    monkeypatch.setattr(scenario.predictors["will-jobs-arrive"], "thresholds_gate_", np.array([gate, 0.5]))
    history, source = scenario.source()
    move(history, source, scenario.end_s)
    refused(BadAnswerError, "", source.will_jobs_arrive, "busy", 300.0)
    assert source.will_jobs_arrive("busy", 3600.0) in (True, False)


@pytest.mark.parametrize(("bins", "reason"), [([-1], "out of range"), ([1.5], "out of range"), ([], "wrong shape")])
def test_a_bin_that_is_none_is_not_told(scenario, monkeypatch, bins, reason):
    monkeypatch.setattr(scenario.predictors["job-duration"], "choose", lambda *_: np.array(bins), raising=False)
    _, source = scenario.source()
    with pytest.raises(BadAnswerError) as told:
        source.duration_bin(scenario.jobs[0])
    assert told.value.reason == reason


@pytest.mark.parametrize("chances", [[np.nan] * 3, [0.9, 0.9, 0.9], [-1.0, 1.0, 1.0]])
def test_no_bin_and_no_run_time_follow_from_probabilities_that_are_none(scenario, monkeypatch, chances):
    monkeypatch.setattr(
        scenario.predictors["job-duration"], "predict_proba", lambda rows: np.array([chances]), raising=False
    )
    _, source = scenario.source()
    for ask in (source.duration_bin, source.duration_s, source.duration_probabilities):
        refused(BadAnswerError, "", ask, scenario.jobs[0])
