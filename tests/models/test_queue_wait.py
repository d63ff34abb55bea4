"""Waits: hazards by hand, censored rows that count, shifts that cover, answers that cannot be and their stand-ins."""

import json
from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.features.queue_state import queue_columns
from jobcast.features.wait_rows import WaitRows
from jobcast.models.evaluation.queue_waits import WaitScores, fold_figures, wait_figures
from jobcast.models.predictors import load_predictor, served_form
from jobcast.models.queue_wait import (
    BOUND,
    DRAIN,
    LEVELS,
    MEDIAN,
    Fold,
    HazardSettings,
    QueueWait,
    WaitHazard,
    by_drain,
    drain_is_better,
    drain_ratios,
    guarded_waits,
    known_quantile,
    moved,
    passed,
)
from jobcast.traces.readers import read_sources
from tests.queue_cases import DAY_S, queued_trace, snapshot_frame
from tests.shared import kept, refused

SMALL = HazardSettings(stretches=6, trees=15, least_rows=10)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    snapshot_frame().write_parquet(path)
    return read_sources([path], format="queue-snapshots").trace


@pytest.fixture(scope="module")
def until_s(trace):
    return float(np.unique(trace.seen_s)[9])


@pytest.fixture(scope="module")
def model(trace, until_s):
    return QueueWait(SMALL).fit(trace, float(trace.seen_s.min()), until_s)


def test_what_still_waits_has_passed_the_stretches_before():
    row, stretch, label = passed(np.array([0, 2, 3]), np.array([True, False, True]), 3)
    assert row.tolist() == [0, 1, 1, 2, 2, 2]
    assert stretch.tolist() == [0, 0, 1, 0, 1, 2]
    assert label.tolist() == [True, False, False, False, False, False]


def test_quantiles_of_what_is_not_over():
    values, known = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    # Of four one is at 1, then one leaves: each of the last two holds three eighths.
    assert [known_quantile(values, known, np.ones(4), level) for level in (0.25, 0.5, 0.63)] == [1.0, 3.0, 4.0]
    assert known_quantile(values, np.ones(4, bool), np.array([1.0, 1.0, 1.0, 5.0]), 0.5) == 4.0


def test_hazards_without_features_are_the_shares_of_what_came():
    rng = np.random.default_rng(0)
    logs = rng.uniform(0.0, 4.0, 4000)
    hazard = WaitHazard.fit(np.zeros((4000, 1), np.float32), logs, np.ones(4000, bool), np.ones(4000), SMALL, 0)
    told = hazard.quantiles(np.zeros((1, 1), np.float32), (0.1, 0.5, 0.9))[0]
    assert told.tolist() == pytest.approx([0.4, 2.0, 3.6], abs=0.15)


def test_leaving_out_what_still_waits_would_be_too_short():
    rng = np.random.default_rng(1)
    logs = rng.uniform(0.0, 4.0, 4000)
    seen, started = np.minimum(logs, 2.5), logs <= 2.5
    X, weight = np.zeros((4000, 1), np.float32), np.ones(4000)
    with_all = WaitHazard.fit(X, seen, started, weight, SMALL, 0).quantiles(X[:1], (0.5,))[0, 0]
    over = started
    left_out = WaitHazard.fit(X[over], seen[over], started[over], weight[over], SMALL, 0).quantiles(X[:1], (0.5,))[0, 0]
    assert with_all == pytest.approx(2.0, abs=0.15)
    assert left_out < 1.5


def rows_of(at_s, wait_s, drain):
    """Of one account, by log10 of the days that their pool takes to drain."""
    X = np.zeros((len(at_s), len(queue_columns())), np.float32)
    X[:, DRAIN] = drain
    at_s = np.array(at_s, float)
    nobody = np.zeros(len(X), int)
    return WaitRows(X, nobody, at_s, at_s + np.array(wait_s, float), nobody, np.ones(len(X)))


def test_the_drain_time_tells_multiples_of_itself_and_all_waits_where_it_is_not_known():
    rows = rows_of([0.0] * 3, [2e4, 2e5, 7.0], [0.0, 1.0, np.nan])
    ratios = drain_ratios(rows, 1e9)
    assert ratios == pytest.approx([np.log10(2e4)] * len(LEVELS))
    told = by_drain(rows.X, ratios, np.arange(6.0))
    assert told[:2, BOUND].tolist() == pytest.approx([np.log10(2e4), np.log10(2e5)])
    assert told[2].tolist() == [*range(6)]
    # Nothing tells a drain time, so that all waits answer.
    nowhere = rows_of([0.0], [7.0], [np.nan])
    assert by_drain(nowhere.X, drain_ratios(nowhere, 1e9), np.arange(6.0)).tolist() == [[*range(6)]]


def test_hazards_answer_if_they_are_better_beyond_doubt():
    """Waits of ten seconds in each of seven parts, told to be of ten (1) or of another power (2, 9)."""
    rows, right, wrong = rows_of(range(7), [10.0] * 7, [0.0] * 7), np.full((7, 6), 1.0), np.full((7, 6), 2.0)
    assert not drain_is_better([Fold(rows, right, wrong), Fold(rows, right, wrong)], 100.0)
    assert drain_is_better([Fold(rows, right, wrong), Fold(rows, wrong, right)], 100.0)
    assert drain_is_better([Fold(rows, right, right)], 100.0)
    # Better by 1 in six parts, worse by 2 in one: .57 on average, give or take 1.05 (2.447 * 1.134 / sqrt(7)).
    once = np.where(np.arange(7)[:, None] == 3, 3.0, right)
    assert drain_is_better([Fold(rows, once, np.where(once == 3.0, 1.0, wrong))], 100.0)
    assert not drain_is_better([], 100.0)


def test_the_bound_follows_queues_that_are_longer_than_any_before(tmp_path):
    """Waits are some times as long as the queue takes to drain; later queues take ten times as long as any did."""
    rng = np.random.default_rng(0)
    at_s, until_s = np.sort(rng.uniform(0.0, 28 * DAY_S, 900)), 20 * DAY_S
    early = at_s < until_s
    drain = np.where(early, rng.uniform(-3.0, -1.5, 900), rng.uniform(-0.5, 0.0, 900))
    rows = rows_of(at_s, DAY_S * 10.0 ** (drain + rng.normal(0.0, 0.2, 900)), drain)
    model = QueueWait(SMALL).fit_rows(rows.among(early), np.full(early.sum(), "p"), 0.0, until_s)
    later = rows.among(~early)
    assert model.by_drain_
    held = np.mean(later.log_wait() <= np.log10(model.forecast(later.X)[:, BOUND]))
    assert held == pytest.approx(0.9, abs=0.07)
    assert np.mean(later.log_wait() <= moved(model.hazard_.quantiles(later.X, LEVELS), model.shifts_)[:, BOUND]) < 0.1
    model.save(tmp_path)
    assert load_predictor("queue-wait", tmp_path).forecast(later.X).tolist() == model.forecast(later.X).tolist()


def test_a_version_of_before_drain_times_answers_by_its_hazards(model, trace, until_s, tmp_path):
    model.save(tmp_path)
    saved = json.loads((tmp_path / "metadata.json").read_text())
    assert saved.pop("by_drain") is False
    del saved["drain_ratios"]
    (tmp_path / "metadata.json").write_text(json.dumps(saved))
    X = WaitRows.of(trace, until_s, np.inf).X[:5]
    assert load_predictor("queue-wait", tmp_path).forecast(X).tolist() == model.forecast(X).tolist()


def test_quantiles_are_moved_around_the_median():
    told, shifts = np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([3.0, 0.5, 0.0, -2.0, 1.0, -3.0])
    assert moved(told, shifts).tolist() == [[2.0, 2.0, 2.0, 2.0, 5.0, 5.0]]


def test_it_learns_that_wide_jobs_wait_longer_and_its_bound_holds(model, trace, until_s):
    later = WaitRows.of(trace, until_s, np.inf)
    told = model.forecast(later.X)
    cores = later.X[:, queue_columns().index("cores")]
    assert np.median(told[cores == 64, MEDIAN]) > 10 * np.median(told[cores == 1, MEDIAN])
    figures = wait_figures(WaitScores.of(later, told, trace, {}), until_s, draws=20)
    assert 0.8 <= figures["coverage_90"] <= 1.0
    assert figures["n"] == len(later) == sum(week["n"] for week in figures["weeks"])
    assert figures["mse_log10"] < 0.5 * np.var(later.log_wait())
    assert set(fold_figures(model.folds_, until_s)) >= {"mae_log10", "coverage_90", "n"}


def test_a_shuffled_future_teaches_nothing(model, trace, until_s, tmp_path):
    import polars as pl

    rng = np.random.default_rng(5)
    later, open_ = trace.seen_s >= until_s, trace.start_s > until_s
    jobs = trace.jobs
    days = pl.Series(rng.integers(40, 400, len(trace)))
    for name in ("start_time", "end_time"):
        jobs = jobs.with_columns(
            pl.when(pl.Series(open_)).then(pl.col(name) + pl.duration(days=days)).otherwise(pl.col(name))
        )
    fewer = jobs.filter(pl.Series(~later | (rng.uniform(size=len(trace)) < 0.5)))
    other = QueueWait(SMALL).fit(replace(trace, jobs=fewer), model.trained_from_s_, until_s)
    first = kept(model, tmp_path / "first")
    assert set(first) == {"metadata.json", "hazard.txt"}
    assert kept(other, tmp_path / "other") == first


def test_it_is_kept_whole_and_served_by_rows(model, trace, until_s, tmp_path):
    model.save(tmp_path / "queue-wait")
    read = load_predictor("queue-wait", tmp_path / "queue-wait")
    X = WaitRows.of(trace, until_s, np.inf).X[:5]
    assert read.forecast(X).tolist() == model.forecast(X).tolist()
    assert read.conservative_s.tolist() == model.conservative_s.tolist()
    form = served_form("queue-wait")(read)
    told = form.predict(form.example())
    assert list(told) == list(form.outputs)
    assert (told["wait_95_s"] >= told["wait_5_s"]).all()
    text = (tmp_path / "queue-wait" / "metadata.json").read_text()
    (tmp_path / "queue-wait" / "metadata.json").write_text(text.replace('"q_jobs_above"', '"q_jobs"'))
    refused(RegistryError, "reads other columns of the queue", load_predictor, "queue-wait", tmp_path / "queue-wait")


def test_a_bad_answer_becomes_the_conservative_one(model):
    class Broken(QueueWait):
        def forecast(self, X):
            return np.array([[1.0] * len(LEVELS), [np.nan] * len(LEVELS), list(range(len(LEVELS)))[::-1]])[: len(X)]

    broken, bad = Broken(SMALL), BadAnswers()
    broken.prior_ = model.prior_
    told = guarded_waits(broken, np.zeros((3, 1), np.float32), bad)
    assert told[0].tolist() == [1.0] * len(LEVELS)
    assert told[1].tolist() == told[2].tolist() == model.conservative_s.tolist()
    assert bad.figures()["waits"]["bad"] == 2
    # Fewer answers than questions, as a damaged model may give: none is believed.
    assert guarded_waits(broken, np.zeros((4, 1), np.float32), bad)[0].tolist() == model.conservative_s.tolist()
    assert bad.figures()["waits"]["reasons"]["wrong shape"] == 4


def test_a_trace_without_waits_is_too_little():
    trace = queued_trace([(float(i), float(i), 5.0) for i in range(100)])
    refused(TrainingError, "0 pending jobs whose wait was over, 50 are needed", QueueWait(SMALL).fit, trace, 0.0, DAY_S)
