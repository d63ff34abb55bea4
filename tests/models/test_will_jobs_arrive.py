from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.features.corpus import build_corpus
from jobcast.models.algorithms import AverageSettings
from jobcast.models.arrival_folds import Learner, out_of_fold, training_rows
from jobcast.models.classifiers import BoosterSettings, ForestSettings
from jobcast.models.evaluation import evaluate_arrivals
from jobcast.models.will_jobs_arrive import WillJobsArrive, best_f1_threshold
from jobcast.traces.history import pool_histories
from jobcast.traces.readers import read_trace
from tests.features.pools import arrived
from tests.models.test_algorithms import FILES
from tests.shared import kept, refused

DAY_S = 86400.0
UNTIL_S = 8 * DAY_S
HORIZONS_MIN = (5, 60)
SMALL = BoosterSettings(trees=25)
SETTINGS = {"lightgbm": SMALL, "average": AverageSettings(lightgbm=SMALL, extra_trees=ForestSettings(trees=20))}
"""Of one algorithm, and of one whose members are most of the others; what each learns is held by test_algorithms.py."""


def histories(days=12.0):
    """A bot that submits every 20 minutes, and people who work from 8 to 18 o'clock."""
    rng = np.random.default_rng(7)
    people = rng.uniform(0, days * DAY_S, 1500)
    people = people[(people % DAY_S > 8 * 3600) & (people % DAY_S < 18 * 3600)]
    return {"bot": arrived(np.arange(600.0, days * DAY_S, 1200.0), run_s=600.0), "people": arrived(people, run_s=600.0)}


@pytest.fixture(scope="module")
def corpus():
    return build_corpus(histories(), 0.0, 12 * DAY_S, HORIZONS_MIN)


@pytest.fixture(scope="module", params=SETTINGS)
def model(request, corpus):
    return WillJobsArrive(request.param, settings=SETTINGS[request.param]).fit(corpus, UNTIL_S)


def test_tells_quiet_windows_from_busy_ones_after_the_training_time(model, corpus):
    probability = model.predict_proba(corpus.X)
    assert probability.shape == (len(corpus), 2)
    for horizon in range(2):
        rows = corpus.scored(UNTIL_S, 12 * DAY_S, horizon)
        arrives = corpus.arrives[rows, horizon]
        right = (probability[rows, horizon] >= model.thresholds_f1_[horizon]) == arrives
        assert right.mean() > max(arrives.mean(), 1 - arrives.mean()) + 0.05


def test_gate_keeps_its_promise_on_later_windows_like_the_past(model, corpus):
    declared = model.predict(corpus.X, gate=True)
    for horizon in range(2):
        rows = corpus.scored(UNTIL_S, 12 * DAY_S, horizon)
        missed = ~declared[rows, horizon][corpus.arrives[rows, horizon]]
        assert missed.mean() < 0.08


def test_gate_lies_below_the_threshold_with_the_best_f1_when_misses_are_dear(corpus):
    model = WillJobsArrive(miss_share=0.001, settings=SMALL).fit(corpus, UNTIL_S)
    assert (model.thresholds_gate_ <= model.thresholds_f1_).all()


def test_nothing_from_until_on_is_read(corpus, tmp_path):
    """Other truths and features in every window that reaches `until_s` give the same files."""
    untouched = np.stack([corpus.purged(UNTIL_S, horizon) for horizon in range(2)], axis=1)
    arrives = np.where(untouched, corpus.arrives, ~corpus.arrives)
    X = np.where(untouched[:, :, None], corpus.X, -1.0).astype(np.float32)
    both = corpus, replace(corpus, arrives=arrives, X=X)
    one, other = (WillJobsArrive(settings=SMALL).fit(rows, UNTIL_S) for rows in both)
    assert kept(one, tmp_path / "true") == kept(other, tmp_path / "false")


def test_same_training_same_bytes_and_reading_gives_the_same_answers(model, corpus, tmp_path):
    first = kept(model, tmp_path / "first")
    again = WillJobsArrive(model.algorithm, settings=model.settings).fit(corpus, UNTIL_S)
    read = WillJobsArrive.load(tmp_path / "first")
    assert first == kept(again, tmp_path / "again") == kept(read, tmp_path / "read")
    assert np.array_equal(read.predict_proba(corpus.X), model.predict_proba(corpus.X))
    assert np.array_equal(read.thresholds_gate_, model.thresholds_gate_)
    assert np.array_equal(read.thresholds_f1_others_, model.thresholds_f1_others_)
    assert read.bot_pools_ == model.bot_pools_
    expected = {f"{k}min.{suffix}" for k in (5, 60) for suffix in FILES[model.algorithm]}
    assert set(first) == {"metadata.json", *expected}


def test_knows_what_it_was_trained_on(model, corpus):
    assert (model.trained_from_s_, model.trained_until_s_) == (0.0, UNTIL_S)
    assert model.pools_ == ("bot", "people")
    # 8 days of 288 instants: the last window of 5 minutes that ends before until starts two instants earlier, and
    # one instant in three is kept; windows of an hour lose the last 12 instants, and as few of the rest are kept.
    assert model.rows_ == (2 * 768, 2 * 764)
    kept = training_rows(corpus, 1, UNTIL_S)
    assert model.base_rates_[1] == pytest.approx(corpus.arrives[kept, 1].mean())
    assert model.unfolded_ == ()


def test_knows_the_bot_and_a_threshold_without_it(model, corpus):
    assert model.bot_pools_ == ("bot",)
    told = out_of_fold(model.trainer, corpus, 0.0, UNTIL_S)
    for horizon, told_of in enumerate(told):
        people = told_of.picked(corpus.pool_index[told_of.row] == corpus.pools.index("people"))
        assert model.thresholds_f1_others_[horizon] == best_f1_threshold(people.arrives, people.probability)
        assert model.thresholds_f1_[horizon] == best_f1_threshold(told_of.arrives, told_of.probability)


def test_without_a_bot_the_other_threshold_is_the_threshold(corpus):
    model = WillJobsArrive(settings=SMALL).fit(corpus.of_pools(["people"]), UNTIL_S)
    assert model.bot_pools_ == ()
    assert model.thresholds_f1_others_.tolist() == model.thresholds_f1_.tolist()


def test_with_bots_alone_there_are_thresholds_all_the_same(corpus):
    model = WillJobsArrive(settings=SMALL).fit(corpus.of_pools(["bot"]), UNTIL_S)
    assert model.bot_pools_ == ("bot",)
    assert model.thresholds_f1_others_.tolist() == model.thresholds_f1_.tolist()


def test_forecasts_that_are_known_already_give_the_same_model(corpus, tmp_path):
    model = WillJobsArrive("logistic")
    told = out_of_fold(Learner("logistic"), corpus, 0.0, UNTIL_S)
    own = WillJobsArrive("logistic").fit(corpus, UNTIL_S)
    assert kept(model.fit(corpus, UNTIL_S, told), tmp_path / "given") == kept(own, tmp_path / "own")


def test_reads_only_the_columns_that_it_may(corpus, tmp_path):
    names = ("renewal_probability", "hour_sin")
    model = WillJobsArrive(settings=SMALL, columns=names).fit(corpus, UNTIL_S)
    X = corpus.X.copy()
    X[:, :, [i for i, name in enumerate(corpus.feature_names) if name not in names]] = np.nan
    expected = model.predict_proba(corpus.X)
    assert np.array_equal(model.predict_proba(X), expected)
    assert list(model.feature_importances["5min"]) == ["hour_sin", "renewal_probability"]
    model.save(tmp_path / "model")
    assert np.array_equal(WillJobsArrive.load(tmp_path / "model").predict_proba(X), expected)


@pytest.mark.parametrize("columns", [(), ("hour_sin", "colour")])
def test_unknown_or_no_columns_are_refused(corpus, columns):
    with pytest.raises(RegistryError, match=r"columns: (none|colour); choose from arrivals_1h_ago"):
        WillJobsArrive(settings=SMALL, columns=columns).fit(corpus, UNTIL_S)


@pytest.mark.parametrize("horizons", [(15, 120), (30,), (2.5, 7, 1440)])
def test_any_horizons_and_a_pool_that_was_never_seen(horizons):
    people = histories()["people"]
    known = build_corpus({"people": people}, 0.0, UNTIL_S, horizons)
    model = WillJobsArrive(settings=SMALL).fit(known, UNTIL_S)
    new = arrived(np.arange(9 * DAY_S, 11 * DAY_S, 700.0), run_s=600.0)
    later = build_corpus({"new": new}, 9 * DAY_S, 12 * DAY_S, horizons)
    probability = model.predict_proba(later.X)
    assert probability.shape == (len(later), len(horizons))
    assert np.isfinite(probability).all()
    assert model.predict(later.X, gate=True).any()


def test_a_horizon_without_folds_says_so_and_always_passes_the_gate():
    short = build_corpus(histories(), 0.0, DAY_S, (5, 720))
    model = WillJobsArrive(settings=SMALL).fit(short, DAY_S)
    assert model.unfolded_ == (720,)
    assert model.thresholds_gate_[1] == 0.0
    assert model.thresholds_f1_[1] == 0.5
    assert model.thresholds_gate_[0] > 0.0


def test_importances_name_the_features(model, corpus):
    gains = model.feature_importances
    assert list(gains) == ["5min", "60min"]
    assert tuple(gains["5min"]) == corpus.feature_names
    assert sum(gains["5min"].values()) > 0


def test_first_different_feature_is_named(model, corpus):
    names = list(corpus.feature_names)
    model.check_features(names)
    with pytest.raises(RegistryError, match=f"feature 1 is '{names[1]}' in the model and '{names[2]}' in the data"):
        model.check_features([names[0], names[2], names[1], *names[3:]])
    with pytest.raises(RegistryError, match=f"feature {len(names) - 1} is '{names[-1]}' in the model and missing"):
        model.check_features(names[:-1])
    with pytest.raises(RegistryError, match=f"feature {len(names)} is missing in the model and 'new' in the data"):
        model.check_features([*names, "new"])


def test_rows_of_other_horizons_are_refused(model, corpus):
    refused(RegistryError, r"reads rows of shape \(n, 2, \d+\)", model.predict_proba, corpus.X[:, :1])


def test_a_horizon_longer_than_the_training_time_is_refused(corpus):
    with pytest.raises(TrainingError, match="no window of 60min ends before 1970-01-01T00:30:00"):
        WillJobsArrive(settings=SMALL).fit(corpus, 1800.0)


def test_a_pool_that_never_sees_a_job_always_passes_the_gate():
    silent = build_corpus({"silent": arrived(np.empty(0), run_s=600.0)}, 0.0, 3 * DAY_S, HORIZONS_MIN)
    model = WillJobsArrive().fit(silent, 3 * DAY_S)
    probability = model.predict_proba(silent.X)
    assert np.isfinite(probability).all()
    assert probability.max() < 0.01
    assert model.thresholds_gate_.tolist() == [0.0, 0.0]
    assert model.predict(silent.X, gate=True).all()


@pytest.mark.parametrize(("days", "pools"), [(8, 1), (13, 2), (27, 1)])
def test_where_every_window_has_seen_jobs_they_are_always_said_to_come(days, pools):
    # The last two teach fewer rows in all than their folds do.
    busy = {
        str(start_s): arrived(np.arange(start_s, days * DAY_S, 900.0), run_s=600.0) for start_s in range(1, 1 + pools)
    }
    rows = build_corpus(busy, 0.0, days * DAY_S, (60, 720))
    model = WillJobsArrive(settings=SMALL).fit(rows, days * DAY_S)
    assert model.base_rates_ == (1.0, 1.0)
    assert model.predict(rows.X).all()
    assert model.predict(rows.X, gate=True).all()
    assert model.unfolded_ == ()


PHILLY_S = (1506902400.0, 1509926400.0, 1511740800.0)
"""2 October, when training begins, 6 November, when it ends, and 27 November 2017."""


def busy_pools(philly):
    """Histories of the pools with at least 100 jobs in the training time."""
    trace = read_trace(philly / "philly_jobs.csv")
    counts = trace.between(*PHILLY_S[:2]).jobs["pool"].value_counts()
    busy = set(counts.filter(counts["count"] >= 100)["pool"])
    return {name: history for name, history in pool_histories(trace).items() if name in busy}


@pytest.mark.slow
def test_philly_is_forecast_as_well_as_is_known_to_be_possible(philly):
    """Three later weeks; a PR-AUC above .97 at 720 minutes would mean that a feature sees the future (SIA, Table 9)."""
    corpus = build_corpus(busy_pools(philly), *PHILLY_S[::2], (5, 60, 720))
    model = WillJobsArrive("average").fit(corpus, PHILLY_S[1])
    told = evaluate_arrivals(model, corpus, *PHILLY_S[1:], draws=0)
    blocks = told["horizons"]
    assert [blocks[k]["pr_auc"] > least for k, least in (("5min", 0.725), ("60min", 0.83))] == [True, True]
    assert 0.94 < blocks["720min"]["pr_auc"] < 0.97
    for block, least_f1, most_ece, least_freed in zip(
        blocks.values(), (0.65, 0.72, 0.86), (0.02, 0.03, 0.07), (0.57, 0.50, 0.37), strict=True
    ):
        assert block["f1"] > least_f1
        assert block["ece"] < most_ece
        assert block["gate"]["miss_rate"] <= 0.06
        assert block["gate"]["freed_idle_share"] >= least_freed
        assert block["pr_auc"] > block["baselines"]["trailing_rate"]["pr_auc"]
        assert block["f1"] > max(rule["f1"] for rule in block["baselines"].values())
    assert told["without_bots"]["pools"] == ["11cb48"]
    assert told["without_bots"]["horizons"]["5min"]["f1"] > 0.31
    assert told["without_bots"]["horizons"]["5min"]["pr_auc"] > 0.33


def test_a_feature_that_sees_the_future_would_be_noticed_on_philly(philly):
    """SIA, Table 9, as printed counts arrivals up to 11 hours ahead at 720 minutes: PR-AUC goes beyond .97."""
    kept = busy_pools(philly)
    corpus = build_corpus(kept, *PHILLY_S[::2], (720,), step_s=1800.0)
    X = corpus.X.copy()
    for i, name in enumerate(corpus.pools):
        rows = corpus.pool_index == i
        for back in (1, 2, 3):
            begin_s = corpus.tick_s[rows] - 3600.0 * back
            counted = np.searchsorted(kept[name].arrival_s, np.stack([begin_s, begin_s + 43200.0]), side="right")
            X[rows, 0, corpus.feature_names.index(f"arrivals_{back}h_ago")] = counted[1] - counted[0]
    leaking = replace(corpus, X=X)
    told = [
        evaluate_arrivals(WillJobsArrive().fit(rows, PHILLY_S[1]), rows, *PHILLY_S[1:], draws=0)["horizons"]["720min"]
        for rows in (corpus, leaking)
    ]
    assert told[0]["pr_auc"] < 0.97 < told[1]["pr_auc"]
