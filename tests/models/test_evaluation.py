import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import MemoryLimitError, RegistryError, TrainingError
from jobcast.domain.memory import memory_limit
from jobcast.features.arrivals import feature_names
from jobcast.features.corpus import build_corpus
from jobcast.models import scores
from jobcast.models.classifiers import BoosterSettings
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_loads
from jobcast.models.evaluation.arrivals import _precision_recall, arrival_block, recall_per_pool_hour
from jobcast.models.evaluation.intervals import days_of
from jobcast.models.evaluation.loads import ChosenMax, _intervals
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from tests.features.pools import arrived
from tests.models.drawn_days import drawn_intervals, near
from tests.shared import refused

DAY_S = 86400.0
FROM_S, UNTIL_S = 4 * DAY_S, 6 * DAY_S


@pytest.fixture(scope="module")
def histories():
    rng = np.random.default_rng(3)
    people = np.sort(rng.uniform(0, 7 * DAY_S, 500))
    return {"bot": arrived(np.arange(600.0, 7 * DAY_S, 2400.0), run_s=600.0), "people": arrived(people, 4.0, 600.0)}


@pytest.fixture(scope="module")
def corpus(histories):
    return build_corpus(histories, 0.0, UNTIL_S, (5, 60))


@pytest.fixture(scope="module")
def model(corpus):
    return WillJobsArrive(settings=BoosterSettings(trees=10)).fit(corpus, FROM_S)


@pytest.fixture(scope="module")
def told(model, corpus):
    return evaluate_arrivals(model, corpus, FROM_S, UNTIL_S, without=("bot",))


def test_windows_that_reach_past_until_are_not_scored(told):
    # Two days of 288 instants a pool: all windows of 5 minutes end in time, the last 11 of an hour do not.
    assert told["horizons"]["5min"]["n"] == 2 * 576
    assert told["horizons"]["60min"]["n"] == 2 * (576 - 11)


def test_figures_are_those_of_the_scored_rows(told, model, corpus):
    rows = (corpus.tick_s >= FROM_S) & (corpus.tick_s + 3600.0 <= UNTIL_S)
    arrives, probability = corpus.arrives[rows, 1], model.predict_proba(corpus.X[rows])[:, 1]
    block = told["horizons"]["60min"]
    assert block["base_rate"] == arrives.mean()
    assert block["pr_auc"] == scores.pr_auc(arrives, probability)
    declared = probability >= model.thresholds_f1_[1]
    assert block["precision"] == pytest.approx(arrives[declared].mean())
    assert block["recall"] == pytest.approx(declared[arrives].mean())
    passed = probability >= model.thresholds_gate_[1]
    assert block["gate"]["miss_rate"] == pytest.approx(1 - passed[arrives].mean())
    assert block["gate"]["freed_idle_share"] == pytest.approx(1 - passed[~arrives].mean())
    assert block["baselines"]["always"]["recall"] == 1.0
    assert block["baselines"]["always"]["precision"] == pytest.approx(arrives.mean())


def test_without_a_pool_is_the_other_pool_alone(model, corpus):
    told = evaluate_arrivals(model, corpus, FROM_S, UNTIL_S, without=("people",), draws=0)
    alone, other = told["without"]["horizons"]["5min"], told["horizons"]["5min"]["by_pool"]["bot"]
    assert told["without"]["pools"] == ["people"]
    assert {name: alone[name] for name in other} == other
    assert alone["intervals"] == {}


def test_without_bots_the_threshold_is_the_one_that_was_chosen_without_them(model, corpus):
    other = copy.copy(model)
    other.bot_pools_, other.thresholds_f1_others_ = ("bot",), np.array([0.125, 0.25])
    told = evaluate_arrivals(other, corpus, FROM_S, UNTIL_S, without=("bot",), draws=0)
    assert told["without_bots"]["pools"] == ["bot"]
    assert told["without_bots"] == told["without"]
    for name, threshold in (("5min", 0.125), ("60min", 0.25)):
        block, people = told["without_bots"]["horizons"][name], told["horizons"][name]["by_pool"]["people"]
        assert block["threshold"] == threshold
        assert block["pr_auc"] == people["pr_auc"]
        assert block["gate"] == people["gate"]


def test_groups_rules_hours_and_intervals_are_of_the_same_rows(model, corpus):
    coin = {"coin": np.full((len(corpus), 2), 0.5)}
    window = (0.0, UNTIL_S)
    told = evaluate_arrivals(
        model, corpus, *window, mean_min={"bot": 10.0, "people": 900.0}, rules=coin, draws=200, seed=4
    )
    for block in told["horizons"].values():
        assert list(block["by_duration_group"]) == ["5-60min", ">720min"]
        for label, pool_name in (("5-60min", "bot"), (">720min", "people")):
            group = {name: value for name, value in block["by_duration_group"][label].items() if name != "pools"}
            assert group == block["by_pool"][pool_name]
        assert block["baselines"]["coin"]["recall"] == 1.0
        assert block["recall_by_pool"]["pools"] == 2
        assert block["recall_per_pool_hour"]["cdf"][-1]["share"] == 1.0
        assert sum(row["n"] for row in block["reliability"]) == block["n"]
        figures = {**block, **block["gate"], "idle_f1": block["idle"]["f1"]}
        for name, (low, high) in block["intervals"].items():
            if name != "ece":  # a draw's calibration error is larger by chance
                assert low <= figures[name] <= high, name


def test_forecasts_at_a_threshold_are_declared():
    arrives, forecast = np.array([True, True, False, False]), np.array([0.5, 0.2, 0.5, 0.1])
    told = arrival_block(arrives, forecast, 0.5, 0.2)
    assert (told["precision"], told["recall"]) == (0.5, 0.5)
    assert told["gate"] == {"threshold": 0.2, "miss_rate": 0.0, "freed_idle_share": 0.5}


def test_hours_and_curves_declare_at_the_threshold_for_reports(model, corpus):
    other, rows = copy.copy(model), corpus.scored(0.0, UNTIL_S, 0)
    probability, arrives = model.predict_proba(corpus.X[rows])[:, 0], corpus.arrives[rows, 0]
    middle = np.sort(probability[arrives])[arrives.sum() // 2]
    other.thresholds_f1_, other.thresholds_gate_ = np.array([middle, 0.5]), np.array([0.9, 0.9])
    index, tick_s = corpus.pool_index[rows], corpus.tick_s[rows]
    expected = recall_per_pool_hour(arrives, probability >= middle, index, tick_s)
    assert expected != recall_per_pool_hour(arrives, probability > middle, index, tick_s)
    told = evaluate_arrivals(other, corpus, 0.0, UNTIL_S, draws=0)["horizons"]["5min"]
    curves = arrival_curves(other, corpus, 0.0, UNTIL_S)["5min"]
    assert told["recall_per_pool_hour"] == expected
    assert curves["recall_per_pool_hour"] == expected["cdf"]
    assert curves["recall_by_pool"] == told["recall_by_pool"]["cdf"]
    recalls = {name: block["recall"] for name, block in told["by_pool"].items()}
    assert recalls == {
        name: pytest.approx((probability >= middle)[arrives & (index == number)].mean())
        for number, name in enumerate(corpus.pools)
    }


def test_all_of_a_corpus_is_scored_where_no_span_is_named(model, corpus):
    told = evaluate_arrivals(model, corpus, draws=0)["horizons"]
    assert (told["5min"]["n"], told["60min"]["n"]) == (len(corpus), len(corpus) - 2 * 11)


def test_thresholds_without_bots_are_for_models_that_know_bots(model, corpus):
    other = copy.copy(model)
    other.bot_pools_, other.thresholds_f1_others_ = (), np.array([0.125, 0.25])
    told = evaluate_arrivals(other, corpus, FROM_S, UNTIL_S, without=("bot",), draws=0)
    assert told["without"]["horizons"]["5min"]["threshold"] == model.thresholds_f1_[0]
    for other.bot_pools_ in ((), ("bot", "people"), ("elsewhere",)):
        assert "without_bots" not in evaluate_arrivals(other, corpus, FROM_S, UNTIL_S, draws=0)


def test_two_hundred_points_of_a_curve_from_the_highest_threshold_to_the_lowest():
    rng = np.random.default_rng(0)
    points = _precision_recall(rng.random(1000) < 0.5, np.arange(1000) / 1000)
    assert (len(points), points[0]["threshold"], points[-1]["threshold"]) == (200, 0.999, 0.0)
    assert points[-1]["recall"] == 1.0
    assert _precision_recall(np.zeros(3, bool), np.zeros(3)) == []


def test_idle_windows_have_a_figure_that_no_threshold_interferes_with(told, model, corpus):
    rows = corpus.scored(FROM_S, UNTIL_S, 0)
    idle, probability = ~corpus.arrives[rows, 0], model.predict_proba(corpus.X[rows])[:, 0]
    assert told["horizons"]["5min"]["idle"]["pr_auc"] == scores.pr_auc(idle, -probability)


def test_a_horizon_that_does_not_fit_has_no_figures(model, corpus):
    told = evaluate_arrivals(model, corpus, FROM_S, FROM_S + 1800.0)["horizons"]
    assert told["5min"]["n"] == 2 * 6
    assert told["60min"]["n"] == 0
    assert told["60min"]["f1"] is None
    assert json.dumps(told, allow_nan=False)


def test_nothing_to_score_and_other_features_are_refused(model, corpus):
    with pytest.raises(TrainingError, match="no pool has a window of 5min or 60min"):
        evaluate_arrivals(model, corpus, UNTIL_S, UNTIL_S + 1)
    refused(TrainingError, "nothing to score", evaluate_arrivals, model, corpus.of_rows(np.zeros(len(corpus), bool)))
    with pytest.raises(RegistryError, match="feature 0 is 'arrivals_1h_ago' in the model and 'other' in the data"):
        evaluate_arrivals(model, replace(corpus, feature_names=("other", *corpus.feature_names[1:])))
    with pytest.raises(RegistryError, match=r"forecasts \[5, 60\] minutes, the features are of \[5, 90\]"):
        evaluate_arrivals(model, replace(corpus, horizons_min=(5, 90)))


def test_curves_end_where_everything_is_declared(model, corpus, told):
    curves = arrival_curves(model, corpus, FROM_S, UNTIL_S)
    points = [point["threshold"] for point in curves["60min"]["precision_recall"]]
    assert points == sorted(points, reverse=True)
    assert sum(row["n"] for row in curves["60min"]["reliability"]) == told["horizons"]["60min"]["n"]


def last_window():
    """An estimate that is the load of the last hour."""
    model = NewLoad("sliding-max")
    model.horizons_min_, model.rule_ = (60,), SlidingMax()
    model.rule_.windows_, model.rule_.coverages_, model.rule_.demands_ = (1,), (0.9,), (0.95,)
    model.rule_.lending_windows_ = (1,)
    return model


def test_loads_by_hand():
    # 4 GPUs every half hour; 12 in the hour from day 5 on, which an estimate from the hour before falls short of.
    arrival_s = np.arange(900.0, 7 * DAY_S, 1800.0)
    gpus = np.where((arrival_s > 5 * DAY_S) & (arrival_s < 5 * DAY_S + 3600), 6.0, 2.0)
    history = arrived(arrival_s, gpus)
    model = last_window()
    none = {"none": lambda history, at_s, horizon_s: np.zeros(len(at_s))}
    told = evaluate_loads(model, {"a": history}, 5 * DAY_S, 5 * DAY_S + 7200.0, step_s=3600.0, rules=none)
    block = told["horizons"]["60min"]
    # Two windows: load 12 estimated as 4, then load 4 estimated as 12.
    assert (block["n"], block["coverage"], block["coverage_nonzero"]) == (2, 0.5, 0.5)
    assert (block["over"], block["missed"]) == (1.0, 0.5)
    assert (block["worst_pool"], block["worst_pool_name"]) == (0.5, "a")
    assert block["baselines"]["persistence"]["coverage"] == 0.5
    assert block["baselines"]["max_of_week"]["missed"] == 0.5
    assert block["baselines"]["none"]["missed"] == 1.0


def test_instants_within_a_horizon_of_an_event_are_scored_however_long_it_is():
    """An arrival on day 100 and windows of 60 days, a day apart: from day 40 on, and until day 140 they end in time."""
    model = last_window()
    model.horizons_min_ = (60 * 1440,)
    told = evaluate_loads(model, {"a": arrived([100 * DAY_S])}, 0.0, 200 * DAY_S, step_s=DAY_S, draws=0)["horizons"]
    assert [block["n"] for block in told.values()] == [101]


class Gate:
    """Stands in for WillJobsArrive: jobs arrive after an hour with more than two."""

    name = "will-jobs-arrive"
    horizons_min_ = (60,)

    def predict(self, X, *, gate):
        assert gate
        return X[:, :, feature_names().index("arrivals_last_1k")] > 2


def test_total_new_load_by_hand():
    # A GPU at each half hour of day 5; in its second hour three jobs, in its third none.
    offset_s = np.array([900.0, 2700.0, 4000.0, 5000.0, 6000.0, 11700.0])
    arrival_s, gpus = 5 * DAY_S + offset_s, np.ones(6)
    history = arrived(arrival_s, gpus)
    told = evaluate_loads(
        last_window(), {"a": history}, 5 * DAY_S, 5 * DAY_S + 4 * 3600.0, step_s=3600.0, arrivals=Gate(), draws=0
    )
    # Loads 2, 3, 0, 1; the last hour's load as the estimate: 0, 2, 3, 0; the gate: only the third hour, 3 GPUs for 0.
    alone, total = told["horizons"]["60min"], told["total"]["horizons"]["60min"]
    assert (alone["n"], alone["coverage"], alone["over"]) == (4, 0.25, 5 / 6)
    assert (total["n"], total["coverage"], total["coverage_nonzero"]) == (4, 0.25, 0.0)
    assert (total["over"], total["missed"], total["base_rate"]) == (0.5, 1.0, 0.75)
    assert total["reserved"]["over"] == 0.5  # of the sliding maximum with the same n
    assert alone["lent"]["gated"] == {"n": 1, "coverage": 1.0, "coverage_nonzero": None, "over": None, "missed": None}
    assert total["by_pool"]["a"]["coverage"] == 0.25


def test_what_is_lent_is_scored_of_all_windows_and_where_the_gate_lets_pass(histories):
    told = evaluate_loads(last_window(), histories, FROM_S, UNTIL_S, arrivals=Gate())["horizons"]["60min"]
    alone = evaluate_loads(last_window(), histories, FROM_S, UNTIL_S)["horizons"]["60min"]
    lent = told["lent"]
    assert {name: lent[name] for name in ("coverage", "coverage_nonzero", "over", "missed")} == {
        name: told[name] for name in ("coverage", "coverage_nonzero", "over", "missed")
    }  # of the sliding maximum with the same n
    assert 0 < lent["gated"]["n"] <= told["n"]
    assert alone["lent"] == {name: figures for name, figures in lent.items() if name != "gated"}


def test_total_new_load_needs_equal_horizons(histories):
    gate = Gate()
    gate.horizons_min_ = (5, 60)
    with pytest.raises(RegistryError, match="will-jobs-arrive forecasts 5min, 60min, new-load 60min; train them"):
        evaluate_loads(last_window(), histories, FROM_S, UNTIL_S, arrivals=gate)


def test_n_is_chosen_on_what_came_before():
    # Two empty hours, then one with 4 GPUs: the largest of 3 hours covers all, of 1 and 2 not.
    arrival_s = np.arange(2 * 3600.0 + 60.0, 12 * DAY_S, 3 * 3600.0)
    histories = {"a": arrived(arrival_s, 4.0)}
    rule = ChosenMax.on(histories, 2 * DAY_S, 6 * DAY_S, last_window())
    assert rule.windows == {3600.0: 3}
    later = arrived(np.sort(np.concatenate([arrival_s, np.arange(6 * DAY_S, 9 * DAY_S, 1800.0)])), 4.0)
    assert ChosenMax.on({"a": later}, 2 * DAY_S, 6 * DAY_S, last_window()) == rule
    block = evaluate_loads(last_window(), histories, 7 * DAY_S, 8 * DAY_S, chosen_max=rule)["horizons"]["60min"]
    told = block["baselines"]["max_of_n"]
    assert (told["coverage"], told["windows"]) == (1.0, 3)
    assert told["over"] == pytest.approx(277 / 96)  # of 277 hours each arrival of 8 lies in 12
    assert block["coverage"] < 1.0


def test_estimates_beyond_the_limit_are_refused_before_they_are_made(histories):
    """Of two pools at 12 instants: columns of a pool's rows twice, loads and estimates of all four times."""
    model = last_window()
    size = 8 * 12 * 1 * (2 * len(model.columns) + 4 * 2)
    # That is enough for them, if not for the windows of a week beside them.
    with memory_limit(size), pytest.raises(MemoryLimitError, match="the largest of 168 windows"):
        evaluate_loads(model, histories, FROM_S, FROM_S + 3600.0, draws=0)
    with memory_limit(size - 1), pytest.raises(MemoryLimitError, match="estimates of 2 pools at 12 instants"):
        evaluate_loads(model, histories, FROM_S, FROM_S + 3600.0, draws=0)


def test_intervals_of_loads_are_of_the_figures_of_drawn_days():
    """Two pools, eight days of four windows each; in many nothing or a single GPU is asked for."""
    rng = np.random.default_rng(0)
    loads = {"a": rng.integers(0, 3, 32).astype(float), "b": np.zeros(32)}
    estimates = {pool: rng.integers(0, 3, 32).astype(float) for pool in loads}
    at_s = np.arange(32) * DAY_S / 4
    load, estimate = (np.concatenate([one["a"], one["b"]]) for one in (loads, estimates))
    expected = drawn_intervals(
        np.tile(days_of(at_s), 2), 20, 2, lambda rows: scores.coverage(load[rows], estimate[rows])
    )
    assert near(_intervals(loads, estimates, at_s, 20, 2), expected)
    assert _intervals(loads, estimates, at_s, 0, 2) == {}
    assert _intervals({}, {}, at_s, 20, 2) == {}


def test_loads_that_cannot_be_scored_are_refused(histories):
    model = last_window()
    refused(TrainingError, "nothing to score", evaluate_loads, model, histories, 0.0, 1800.0)
    refused(TrainingError, "nothing to score", evaluate_loads, model, {}, 0.0, DAY_S)
