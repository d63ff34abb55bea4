"""Uncertain answers of registered predictors in a running cluster: the predictors' own, at the right instant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.features.arrivals import arrival_features
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.load_quantile import quantile_of
from jobcast.models.new_load import NewLoad, load_quantiles
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories

POOLS = ("busy", "calm")
HORIZONS_S = (300.0, 3600.0)
LEVELS = (0.2, 0.55, 0.9, 0.99)


@pytest.fixture(scope="module")
def learnt(small_trace):
    begin_s = float(np.floor(small_trace.submit_s[0] / 86400.0) * 86400.0)
    return NewLoad("quantile").fit(pool_histories(small_trace), begin_s, begin_s + 3 * 86400.0, (5, 60))


class Scenario:
    """A trace replayed as it ran."""

    def __init__(self, trace, predictors, loads=None, pools=POOLS):
        self.arrivals, sliding, self.durations = predictors.values()
        self.loads = loads or sliding
        self.jobs, duration_s = trace.to_jobs()
        self.history = RunHistory(pools, EarlierJobs(self.jobs, trace.start_s, trace.end_s, duration_s))
        self.source = RegistryForecasts(self.history, self.arrivals, self.loads, self.durations)
        self.end_s = float(trace.submit_s.max())

    def move(self, now_s):
        self.history.advance(now_s)
        self.source.advance(now_s)


@pytest.fixture
def scenario(small_trace, predictors, learnt):
    return Scenario(small_trace, predictors, learnt)


def test_answers_are_the_predictors_own(scenario, small_trace):
    histories = pool_histories(small_trace)
    at_s = np.floor((scenario.end_s - 5000.0) / 300.0) * 300.0
    scenario.move(at_s)
    for pool in POOLS:
        rows = scenario.loads.rows(histories[pool], [at_s])
        proba = scenario.arrivals.predict_proba(arrival_features(histories[pool], [at_s], HORIZONS_S))[0]
        lowest = np.zeros(len(LEVELS))
        for column, horizon_s in enumerate(HORIZONS_S):
            assert scenario.source.arrival_probability(pool, horizon_s) == proba[column]
            parts = scenario.loads.rule_.distributions_[column].parts(rows[:, column])
            lowest = np.maximum(lowest, [quantile_of(*parts, level)[0] for level in LEVELS])
            told = scenario.source.load_quantiles(pool, horizon_s, LEVELS)
            assert told == tuple(lowest)
            assert list(told) == sorted(told)
            assert scenario.source.load_quantile(pool, horizon_s, LEVELS[2]) == told[2]


def test_probabilities_of_durations_are_the_batch_ones_and_stay(scenario, small_trace):
    expected = scenario.durations.predict_proba(scenario.durations.rows(small_trace))
    for job in scenario.jobs:
        scenario.move(job.submit_s)
        told = scenario.source.duration_probabilities(job)
        assert told == tuple(expected[job.seq])
        assert sum(told) == pytest.approx(1.0)
    assert scenario.source.duration_probabilities(scenario.jobs[0]) == tuple(expected[0])


def test_an_answer_is_held_until_the_next_grid_instant(scenario):
    start_s = np.ceil(scenario.end_s / 300.0) * 300.0 + 600.0
    scenario.move(start_s)
    first = scenario.source.load_quantiles("busy", 300.0, LEVELS)
    scenario.move(start_s + 200.0)
    assert scenario.source.load_quantiles("busy", 300.0, LEVELS) is first
    scenario.move(start_s + 300.0)
    assert scenario.source.load_quantiles("busy", 300.0, LEVELS) is not first


@settings(max_examples=15)
@given(st.lists(st.tuples(st.floats(0.3, 1.0), st.sampled_from(POOLS), st.sampled_from(HORIZONS_S)), min_size=1))
def test_answers_do_not_depend_on_the_order_of_questions(small_trace, predictors, learnt, questions):
    told = []
    for order in (1, -1):
        scenario, found = Scenario(small_trace, predictors, learnt), {}
        begin_s = scenario.end_s - 3 * 86400.0
        for part in sorted({part for part, _, _ in questions}):
            now_s = begin_s + part * 3 * 86400.0
            scenario.move(now_s)
            for _, pool, horizon_s in [q for q in questions if q[0] == part][::order]:
                if order == 1:
                    scenario.source.new_load(pool, horizon_s)
                    scenario.source.load_quantile(pool, horizon_s, 0.5)
                found[now_s, pool, horizon_s] = scenario.source.load_quantiles(pool, horizon_s, LEVELS)
        told.append(found)
    assert told[0] == told[1]


def test_quantiles_of_the_past_windows_that_sliding_max_reads(predictors):
    loads = predictors["new-load"]
    rows = np.array([[[0.0, 0.0, 4.0, 8.0], [9.0, 1.0, 2.0, 3.0]]])
    assert load_quantiles(loads, rows, (0.5, 0.75, 0.99)).tolist() == [[[4.0, 8.0, 8.0], [4.0, 9.0, 9.0]]]
