from dataclasses import replace

import numpy as np
import pytest

from jobcast.features.corpus import build_corpus
from jobcast.models.arrival_folds import (
    Learner,
    averaged,
    cuts,
    folds_of,
    out_of_fold,
    thinned,
    training_rows,
)
from jobcast.models.classifiers import BoosterSettings
from tests.features.pools import arrived

DAY_S = 86400.0
HORIZONS_MIN = (5, 60, 720)
SMALL = BoosterSettings(trees=10)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(1)
    arrival_s = np.sort(rng.uniform(0, 20 * DAY_S, 900))
    return build_corpus({"one": arrived(arrival_s, run_s=60.0)}, 0.0, 20 * DAY_S, HORIZONS_MIN)


@pytest.mark.parametrize("horizon", range(3))
def test_a_fold_learns_from_windows_that_end_before_what_it_forecasts(corpus, horizon):
    instants = cuts(0.0, 20 * DAY_S)
    ends_s = corpus.tick_s + 60.0 * HORIZONS_MIN[horizon]
    folds = list(folds_of(corpus, horizon, 0.0, 20 * DAY_S))
    assert [number for number, _, _ in folds] == [0, 1, 2]
    for number, known, later in folds:
        assert ends_s[known].max() < instants[number] <= corpus.tick_s[later].min()
        assert ends_s[later].max() < instants[number + 1]


def test_long_windows_are_thinned_more_and_little_data_not_at_all(corpus):
    kept = [np.unique(np.diff(corpus.tick_s[training_rows(corpus, h, 20 * DAY_S)])) for h in range(3)]
    # 5760 instants of one pool: at most odd(5.76) = 7 steps apart, of 5 and 60 minutes 3, as windows of an hour
    # overlap 12 steps, of which six count.
    assert [gaps.tolist() for gaps in kept] == [[900.0], [900.0], [2100.0]]
    few = corpus.of_rows(corpus.until(3 * DAY_S))
    assert training_rows(few, 0, 3 * DAY_S).sum() == 3 * 288 - 1


def test_a_coarser_grid_is_thinned_less(corpus):
    """Every third instant is what windows of 5 and 60 minutes are learnt from at most, on either grid."""
    coarse = corpus.of_rows(corpus.tick_s % 900.0 == 0.0)
    assert (corpus.step_s, coarse.step_s, corpus.of_rows(corpus.tick_s == 0.0).step_s) == (300.0, 900.0, 300.0)
    for horizon in (0, 1):
        instants = [one.tick_s[training_rows(one, horizon, 20 * DAY_S)] for one in (corpus, coarse)]
        assert np.array_equal(*instants)
    # Scored is one instant in three of the finer one, between those that train, and all of the coarser: a fold is
    # four days of them, less the hour whose windows reach its end.
    for one, after_s in ((corpus, 300.0), (coarse, 0.0)):
        scored = [one.tick_s[later] for _, _, later in folds_of(one, 1, 0.0, 20 * DAY_S)]
        assert [len(instants) for instants in scored] == [4 * 96 - 4] * 3
        assert all((instants % 900.0 == after_s).all() for instants in scored)


def test_phases_share_out_the_instants(corpus):
    every = np.ones(len(corpus), bool)
    parts = np.stack([thinned(corpus, every, 3, phase) for phase in range(3)])
    assert (parts.sum(axis=0) == 1).all()


def test_what_is_forecast_out_of_fold_depends_on_earlier_rows_only(corpus):
    """Rows that reach the first cut are changed beyond recognition: the first fold's forecasts stay where they can."""
    learner, end_s = Learner("lightgbm", 0, SMALL), 20 * DAY_S
    told = out_of_fold(learner, corpus, 0.0, end_s)
    for horizon in range(3):
        cut_s = cuts(0.0, end_s)[0]
        arrives = corpus.arrives ^ ~corpus.purged(cut_s, horizon)[:, None]
        again = out_of_fold(learner, replace(corpus, arrives=arrives), 0.0, end_s)[horizon]
        first = told[horizon].fold == 0
        assert np.array_equal(again.probability[first], told[horizon].probability[first])
        assert not np.array_equal(again.probability[~first], told[horizon].probability[~first])


def test_no_fold_where_the_time_is_shorter_than_the_windows(corpus):
    told = out_of_fold(Learner("lightgbm", 0, SMALL), corpus, 0.0, 0.6 * DAY_S)
    assert len(told[2]) == 0
    assert len(told[0]) > 0


def test_columns_that_may_not_be_read_make_no_difference(corpus):
    learner = Learner("lightgbm", 0, SMALL, (0, 3, 25))
    rows = training_rows(corpus, 1, 20 * DAY_S)
    X = corpus.X.copy()
    X[:, :, [c for c in range(X.shape[2]) if c not in (0, 3, 25)]] = 7.0
    assert learner.fitted(corpus, 1, rows).files("a") == learner.fitted(replace(corpus, X=X), 1, rows).files("a")


def test_averaging_one_algorithm_changes_nothing(corpus):
    told = out_of_fold(Learner("lightgbm", 0, SMALL), corpus, 0.0, 20 * DAY_S)
    for one, both in zip(told, averaged([told, told]), strict=True):
        assert np.allclose(one.probability, both.probability, atol=1e-12)
