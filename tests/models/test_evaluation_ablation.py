import json
from dataclasses import replace

import numpy as np
import pytest

from jobcast.features.arrivals import FEATURE_SETS, PAPER_SETS
from jobcast.features.corpus import build_corpus
from jobcast.models.classifiers import BoosterSettings
from jobcast.models.evaluation.ablation import PAPER_RECIPE, PaperRecipe, _Bench, arrival_ablation
from jobcast.models.will_jobs_arrive import WillJobsArrive
from tests.features.pools import arrived

DAY_S = 86400.0
UNTIL_S = 12 * DAY_S
SPLIT_S = 6 * DAY_S


def in_closed_loop(seed):
    """One user: the next job comes 5 to 10 minutes after the last has ended, however long it ran."""
    rng = np.random.default_rng(seed)
    run_s = rng.choice([900.0, 7200.0], 2000)
    wait_s = rng.uniform(300.0, 600.0, 2000)
    arrival_s = np.cumsum(np.concatenate(([0.0], run_s + wait_s)))[:-1]
    return arrived(arrival_s, run_s=run_s)


@pytest.fixture(scope="module")
def corpus():
    return build_corpus({"a": in_closed_loop(1), "b": in_closed_loop(2)}, 0.0, UNTIL_S, (5, 60))


@pytest.fixture(scope="module")
def told(corpus):
    model = WillJobsArrive(settings=BoosterSettings(trees=40))
    return arrival_ablation(model, corpus, SPLIT_S, SPLIT_S, UNTIL_S, mean_min={"a": 4.0, "b": 90.0}, draws=100, seed=1)


def test_every_set_and_the_papers_recipe_have_figures_by_horizon_and_group(told):
    assert list(told["horizons"]) == ["5min", "60min"]
    for sets in told["horizons"].values():
        assert list(sets) == [*FEATURE_SETS, PAPER_RECIPE]
        for block in sets.values():
            assert {"precision", "recall", "f1", "pr_auc", "threshold", "pr_auc_interval"} <= set(block)
            assert list(block["by_duration_group"]) == ["<=5min", "60-720min"]
            assert block["n"] == sum(group["n"] for group in block["by_duration_group"].values())
        assert "pr_auc_gain" not in sets["periodic"]
        assert "pr_auc_gain" not in sets[PAPER_RECIPE]
        assert sets[PAPER_RECIPE]["threshold"] == 0.5
    assert told["horizons"]["5min"]["periodic"]["n"] == 2 * 6 * 288  # of two pools and six days
    assert told["feature_sets"] == {label: list(columns) for label, columns in FEATURE_SETS.items()}
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_gains_are_differences_with_intervals_of_paired_draws(told):
    sets = told["horizons"]["5min"]
    _, arrivals, completions, _ = PAPER_SETS
    gain = sets[completions]["pr_auc"] - sets[arrivals]["pr_auc"]
    assert sets[completions]["pr_auc_gain"] == pytest.approx(gain)
    low, high = sets[completions]["pr_auc_gain_interval"]
    assert low < gain < high
    assert high - low < sum(np.diff(sets[label]["pr_auc_interval"])[0] for label in (arrivals, completions))


def test_completions_are_worth_much_where_users_wait_for_them(told):
    gain = told["closed_loop"]["5min"]
    assert gain["pr_auc_gain"] > 0.2
    assert gain["pr_auc_gain_interval"][0] > 0.1


def test_twins_learn_nothing_after_the_split(corpus):
    """What comes after the split changes no probability of a twin: its scored rows alone differ."""
    model, done = WillJobsArrive(settings=BoosterSettings(trees=5)), []
    whole, cut = (
        arrival_ablation(
            model, rows, SPLIT_S, SPLIT_S, SPLIT_S + DAY_S, draws=0, progress=lambda *counts: done.append(counts)
        )
        for rows in (corpus, corpus.of_rows(corpus.tick_s < SPLIT_S + DAY_S))
    )
    assert whole == cut
    assert whole["horizons"]["5min"]["periodic"]["pr_auc_interval"] is None
    twins = len(FEATURE_SETS) + 1
    assert done == [(number + 1, twins) for number in range(twins)] * 2


def test_a_forecast_at_the_threshold_is_declared(corpus):
    bench = _Bench(corpus, 0, (SPLIT_S, UNTIL_S), {"some": ["b"]}, draws=0, seed=0)
    arrives = bench.arrives
    sure, coin = np.repeat(corpus.arrives[:, :1], 2, axis=1).astype(np.float64), np.full((len(corpus), 2), 0.5)
    told = bench.figures(coin, 0.5, None)
    assert (told["n"], told["recall"], told["precision"]) == (len(arrives), 1.0, pytest.approx(arrives.mean()))
    assert (told["by_duration_group"]["some"]["n"], told["by_duration_group"]["some"]["recall"]) == (
        len(arrives) / 2,
        1.0,
    )
    gain = {"pr_auc_gain": pytest.approx(1.0 - arrives.mean()), "pr_auc_gain_interval": None}
    assert bench.gain(sure, coin) == gain


def test_the_papers_recipe_weights_classes_to_balance(corpus):
    # Features that tell nothing leave the share of arrivals, which the weights make one half.
    blank = replace(corpus, X=np.zeros_like(corpus.X))
    rows = corpus.purged(SPLIT_S, 0)
    assert corpus.arrives[rows, 0].mean() < 0.2
    told = PaperRecipe().fit(blank, SPLIT_S).predict_proba(blank.X[:5])
    assert told.shape == (5, 2)
    assert told[:, 0] == pytest.approx(np.full(5, 0.5), abs=1e-3)


def test_the_papers_recipe_on_one_class_says_its_share(corpus):
    idle = corpus.of_rows(~corpus.arrives[:, 0])
    recipe = PaperRecipe().fit(idle, SPLIT_S)
    assert recipe.predict_proba(corpus.X[:3])[:, 0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
