"""Waits: hazards by hand, censored rows that count, shifts that cover, answers that cannot be and their stand-ins."""

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
    LEVELS,
    MEDIAN,
    HazardSettings,
    QueueWait,
    WaitHazard,
    guarded_waits,
    known_quantile,
    moved,
    passed,
)
from jobcast.traces.readers import read_sources
from tests.queue_cases import DAY_S, queued_trace, snapshot_frame

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
    kept = jobs.filter(pl.Series(~later | (rng.uniform(size=len(trace)) < 0.5)))
    other = QueueWait(SMALL).fit(replace(trace, jobs=kept), model.trained_from_s_, until_s)
    for name, one in (("first", model), ("other", other)):
        one.save(tmp_path / name)
    for file in ("metadata.json", "hazard.txt"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


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
    with pytest.raises(RegistryError, match="reads other columns of the queue"):
        load_predictor("queue-wait", tmp_path / "queue-wait")


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
    with pytest.raises(TrainingError, match="0 pending jobs whose wait was over, 50 are needed"):
        QueueWait(SMALL).fit(trace, 0.0, DAY_S)
