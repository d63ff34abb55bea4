import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.horizons import duration_bin
from jobcast.features.durations import duration_columns, duration_rows
from jobcast.features.queueing import in_queues, queued
from jobcast.models.duration_booster import QUEUE_MODEL
from jobcast.models.duration_data import DurationData, bins_of
from jobcast.models.job_duration import ALGORITHMS, FLOOR, LEARNT, JobDuration, calibration_columns
from jobcast.simulator.history import EarlierJobs, RunHistory
from tests.scenarios import trace_of
from tests.shared import kept, refused

BINS = ("<=5min", "5-60min", "60-720min", ">720min")
DAY_S = 86400.0
HALF_A_MINUTE_S = 30.0


def trace(rows):
    """Rows of (submit_s, duration_s, gpus, pool, tag)."""
    return trace_of("submit_time duration gpus pool tag", rows)


TRAINING = [
    (0.0, 10.0, 1, "a", ""),
    (0.0, 1000.0, 1, "a", ""),
    (0.0, 4000.0, 1, "a", ""),
    (0.0, 1000.0, 1, "b", ""),
]


@pytest.fixture
def model():
    return JobDuration(algorithm="tag-pool-width", prior_weight=1.0).fit(trace(TRAINING), 5000.0)


def row(**counts):
    """A row with the counts of the last 50 finished jobs of some groups; all else unknown."""
    columns = duration_columns()
    told = np.full((1, len(columns)), np.nan)
    told[:, [i for i, name in enumerate(columns) if " last 5" in name or " last 20" in name]] = 0.0
    told[:, columns.index("log2 gpus")] = 0.0
    for group, by_bin in counts.items():
        for label, count in zip(BINS, by_bin, strict=True):
            told[0, columns.index(f"{group} last 50 {label}")] = count
    return told


def weeks(seed=0, n=1500, days=28):
    """Jobs whose bin is told by what the pool has run lately, with tags that share a run time."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, days * DAY_S, n)).round()
    pool = rng.choice(["a", "b", "c"], n)
    phase = (submit // (2 * DAY_S)).astype(int) + np.array([ord(p) for p in pool])
    tag = rng.integers(0, 40, n)
    level = np.where(rng.random(n) < 0.5, np.array([100.0, 1500.0, 9000.0])[phase % 3], 60.0 * 3.0 ** (tag % 5))
    duration = (level * rng.lognormal(0, 0.5, n)).round() + 1
    gpus = rng.choice([1, 2], n)
    return trace([(submit[i], duration[i], int(gpus[i]), str(pool[i]), f"t{tag[i]}") for i in range(n)])


@pytest.fixture(scope="module")
def campus():
    return weeks()


@pytest.fixture(scope="module")
def learnt(campus):
    return {name: JobDuration(algorithm=name).fit(campus, 21 * DAY_S) for name in LEARNT}


def test_prior_and_run_times_by_hand(model):
    assert model.prior_.tolist() == [0.25, 0.5, 0.25, 0.0]
    assert model.bin_duration_s_[:3] == pytest.approx([10.0, 1000.0, 4000.0])
    # No training job ran for over 12 hours: the geometric mean of 12 and 48 hours stands in.
    assert model.bin_duration_s_[3] == pytest.approx(24 * 3600.0)


def test_run_time_of_a_bin_is_a_geometric_mean():
    two = trace([(0.0, 400.0, 1, "a", ""), (0.0, 900.0, 1, "a", "")])
    assert JobDuration(algorithm="last-n").fit(two, 5000.0).bin_duration_s_[1] == pytest.approx(600.0)


def test_jobs_that_have_not_ended_do_not_train():
    model = JobDuration(algorithm="last-n").fit(trace(TRAINING), 4000.0)
    assert model.rows_ == 3
    assert model.prior_.tolist() == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0])


def test_jobs_before_the_window_do_not_train():
    rows = [*TRAINING, (1000.0, 100.0, 1, "a", "")]
    model = JobDuration(algorithm="last-n").fit(trace(rows), 5000.0, from_s=1000.0)
    assert model.rows_ == 1
    assert model.trained_from_s_ == 1000.0


@pytest.mark.parametrize(
    ("counts", "use_tags", "told"),
    [
        ({"tag": (0, 0, 3, 0), "pool_width": (9, 0, 0, 0), "pool": (9, 0, 0, 0)}, True, 2),  # three of the tag decide
        ({"tag": (0, 0, 3, 0), "pool_width": (9, 0, 0, 0), "pool": (9, 0, 0, 0)}, False, 0),
        ({"tag": (0, 0, 2, 0), "pool_width": (9, 0, 0, 0), "pool": (0, 0, 0, 9)}, True, 0),  # two are too few
        ({"pool": (0, 0, 0, 1), "all": (9, 0, 0, 0)}, True, 3),  # no job of the width has finished
        ({"all": (9, 0, 0, 0)}, True, 1),  # nor any of the pool: the training data decide
        ({"pool_width": (4, 0, 4, 1)}, True, 2),  # the longer of equals
    ],
)
def test_the_group_that_decides(model, counts, use_tags, told):
    model.use_tags = use_tags
    assert model.predict(row(**counts)).tolist() == [told]


def test_without_finished_jobs_probabilities_are_those_of_the_training(model):
    assert model.predict_proba(row()).tolist() == [model.prior_.tolist()]


def test_last_n_reads_no_tags():
    model = JobDuration(algorithm="last-n").fit(trace(TRAINING), 5000.0)
    assert model.predict(row(tag=(0, 0, 30, 0), pool_width=(9, 0, 0, 0))).tolist() == [0]


def test_probabilities_by_hand(model):
    # 4 votes and a prior of weight 1: (3 + .25, 1 + .5, .25, 0) / 5.
    assert model.predict_proba(row(pool_width=(3, 1, 0, 0)))[0] == pytest.approx([0.65, 0.3, 0.05, 0.0])


def test_what_a_scheduler_is_told_depends_on_the_cost(model):
    rows = row(pool_width=(3, 1, 0, 0))  # .65, .3, .05, 0
    model.overstay_h_ = np.triu(
        np.array([[0.0, 0.5, 4.0, 40.0], [0.0, 0.0, 2.0, 38.0], [0.0, 0.0, 0.0, 28.0], [0.0] * 4])
    )
    # Hours expected: .3 x .5 + .05 x 4 = .35, .05 x 2 = .1, 0; too long: 0, .65, 1.6 bins. A 1-GPU job, 10 lenders'.
    for under_cost, chosen in ((20.0, 0), (30.0, 1), (94.0, 1), (96.0, 2)):
        model.under_cost = under_cost
        assert model.choose(rows, 10.0).tolist() == [chosen]
    model.under_cost = 0.0
    assert model.choose(rows, 10.0).tolist() == model.predict(rows).tolist() == [0]


def test_wide_jobs_and_small_lenders_make_it_dear(model):
    model.under_cost, model.overstay_h_ = 20.0, np.triu(np.full((4, 4), 0.5), 1)
    rows = np.repeat(row(pool_width=(3, 1, 0, 0)), 3, axis=0)  # .35 and .05 are longer than the first two bins
    rows[:, model.columns.index("log2 gpus")] = 0.0, 0.0, 3.0
    # .35 x .5 x 20 x gpus / lenders: .035, 1.75 and 28 in bins too long, of which the second bin saves 6 in 7.
    assert model.choose(rows, [100.0, 2.0, 1.0]).tolist() == [0, 1, 2]


def test_run_time_stands_for_the_forecast_bin(model):
    assert model.predict_duration_s(row(pool_width=(0, 5, 0, 0))).tolist() == pytest.approx([1000.0])


@pytest.mark.parametrize("told_after_s", [0.0, DAY_S])
def test_live_and_batch_ways_give_the_same_forecasts(campus, told_after_s):
    """Of the algorithm that learns from how jobs turn out, too; rows of the others are held by test_durations.py."""
    campus = replace(campus, known_after_s=told_after_s)
    model = JobDuration(algorithm="blended").fit(campus, 14 * DAY_S)
    batch = model.rows(campus)
    proba, chosen = model.predict_proba(batch), model.choose(batch)
    jobs, duration_s = campus.to_jobs()
    history = RunHistory(campus.pools, EarlierJobs(jobs, campus.start_s, campus.known_s, duration_s))
    tracker = model.tracker()
    for job in jobs[::20]:
        history.advance(job.submit_s + 60.0)
        tracker.catch_up(history)
        live = tracker.row(job)[None]
        assert np.array_equal(live[0], batch[job.seq], equal_nan=True)
        assert np.allclose(model.predict_proba(live)[0], proba[job.seq], rtol=1e-12, atol=0)
        assert model.choose(live)[0] == chosen[job.seq]
    assert proba.sum(axis=1) == pytest.approx(1.0)


def test_what_has_happened_since_the_training_is_learnt_from(campus):
    """From half of the time on all jobs take 20 hours, which no training job did."""
    until_s = 14 * DAY_S
    late = campus.submit_s >= until_s
    lasts = pl.Series(np.where(late, 72_000.0, campus.duration_s))
    other = replace(campus, jobs=campus.jobs.with_columns(duration=lasts))
    model = JobDuration().fit(other, until_s)
    proba = model.predict_proba(model.rows(other, late))[:, -1]
    untaught = model.rows(other, late)
    untaught[:, -len(calibration_columns(model.horizons_min)) :] = model.calibration_.known("a")
    assert proba[-50:].mean() > 0.9
    assert proba[-50:].mean() > model.predict_proba(untaught)[-50:, -1].mean()
    again = JobDuration(algorithm="lightgbm").fit(other, until_s)
    assert proba[-50:].mean() > again.predict_proba(again.rows(other, late))[-50:, -1].mean()


def test_what_an_earlier_version_wrote_is_refused(campus, tmp_path):
    JobDuration(algorithm="last-n").fit(campus, 10 * DAY_S).save(tmp_path)
    file = tmp_path / "metadata.json"
    told = json.loads(file.read_text())
    del told["calibration"]
    file.write_text(json.dumps(told))
    with pytest.raises(RegistryError, match="a job-duration model of an older version of jobcast; train it again"):
        JobDuration.load(tmp_path)


def test_a_job_that_runs_on_is_learnt_from_when_the_last_bin_begins():
    rows = [(0.0, 10.0, 1, "a", ""), (0.0, 90_000.0, 1, "a", ""), (40_000.0, 90_000.0, 1, "a", "")]
    model = JobDuration(algorithm="last-n").fit(trace(rows), 50_000.0)
    assert model.prior_.tolist() == [0.5, 0.0, 0.0, 0.5]
    assert model.bin_duration_s_[3] == pytest.approx(24 * 3600.0)  # how long it ran was not known


def test_ends_that_are_told_a_day_late_make_no_job_long(campus, tmp_path):
    """What is known a day later is the same: a job of which nothing is heard for 12 hours may have ended long ago."""
    late = replace(campus, known_after_s=DAY_S)
    model = JobDuration(algorithm="last-n").fit(late, 21 * DAY_S)
    at_once = JobDuration(algorithm="last-n").fit(campus, 20 * DAY_S)
    assert (model.rows_, model.prior_.tolist()) == (at_once.rows_, at_once.prior_.tolist())
    assert (model.lag_s_, at_once.lag_s_) == (pytest.approx(DAY_S), 0.0)
    model.save(tmp_path)
    assert JobDuration.load(tmp_path).lag_s_ == model.lag_s_


def test_learning_beats_the_rule_on_later_jobs(campus, learnt):
    later = campus.submit_s >= 21 * DAY_S
    truth = bins_of(campus.duration_s, learnt["blended"].horizons_min)[later]
    rule = JobDuration(algorithm="tag-pool-width").fit(campus, 21 * DAY_S)

    def loss(model):
        proba = model.predict_proba(model.rows(campus, later))
        return -np.log(proba[np.arange(len(truth)), truth]).mean()

    assert loss(learnt["lightgbm"]) < loss(rule)
    assert loss(learnt["blended"]) < loss(rule)


def test_nothing_after_the_training_time_is_read(campus, learnt):
    """Runs that end later, and what is submitted later, may be anything."""
    until_s = 21 * DAY_S
    later = (campus.end_s >= until_s) | (campus.submit_s >= until_s)
    lasts = np.where(later, until_s + 5.0 - np.minimum(campus.submit_s, until_s), campus.duration_s)
    other = replace(campus, jobs=campus.jobs.with_columns(duration=pl.Series(lasts)))
    again = JobDuration().fit(other, until_s)
    assert again.booster_.to_text() == learnt["blended"].booster_.to_text()
    assert again.queue_booster_.to_text() == learnt["blended"].queue_booster_.to_text()
    assert np.array_equal(again.calibration_.state, learnt["blended"].calibration_.state)
    assert again.calibration_.shifts.keys() == learnt["blended"].calibration_.shifts.keys()
    assert np.array_equal(again.bin_duration_s_, learnt["blended"].bin_duration_s_)


def test_a_trace_without_starts_teaches_what_queues_would_have_shown(campus, learnt, tmp_path):
    model, waited = learnt["lightgbm"], queued(campus)
    at_once, in_queue = (duration_rows(one, model.horizons_min) for one in (campus, waited))
    assert not in_queues(at_once, model.horizons_min).any()
    held = in_queues(in_queue, model.horizons_min)
    assert 0.0 < held.mean() < 1.0

    def answers(booster, rows):
        return (1.0 - FLOOR) * booster.predict_proba(rows) + FLOOR / 4

    assert np.array_equal(model.predict_proba(at_once), answers(model.booster_, at_once))
    told = model.predict_proba(in_queue)
    assert np.array_equal(told[held], answers(model.queue_booster_, in_queue[held]))
    assert np.array_equal(told[~held], answers(model.booster_, in_queue[~held]))
    model.save(tmp_path)
    assert np.array_equal(JobDuration.load(tmp_path).predict_proba(in_queue), told)
    (tmp_path / QUEUE_MODEL).unlink()
    refused(RegistryError, QUEUE_MODEL, JobDuration.load, tmp_path)


def test_only_boosters_read_what_queues_would_have_shown(campus):
    data = DurationData.of(campus, (5, 60, 720))
    JobDuration((5, 60, 720), algorithm="last-n").fit_data(data, 21 * DAY_S)
    assert "rows" not in vars(data.queues)
    JobDuration((5, 60, 720), algorithm="lightgbm").fit_data(data, 21 * DAY_S)
    assert vars(data.queues)["rows"].shape == data.rows.shape


def test_a_trace_with_starts_shows_its_own_queues(campus):
    model = JobDuration(algorithm="lightgbm").fit(queued(campus), 21 * DAY_S)
    assert model.queue_booster_ is None
    assert JobDuration(algorithm="tag-pool-width").fit(campus, 21 * DAY_S).queue_booster_ is None


def test_new_pools_users_and_tags_are_served(learnt):
    rows = learnt["blended"].rows(trace([(0.0, 1.0, 7, "unheard of", "new")]))
    proba = learnt["blended"].predict_proba(rows)
    assert proba.sum() == pytest.approx(1.0)
    assert (proba > 0).all()


def test_tags_are_not_read_where_they_are_hidden(campus):
    model = JobDuration(algorithm="blended", use_tags=False).fit(campus, 14 * DAY_S)
    rows = model.rows(campus)
    columns = [i for i, name in enumerate(model.columns) if name.startswith("tag ")]
    assert len(columns) == 15 + 18
    hidden = rows.copy()
    hidden[:, columns] = 7.0
    assert np.array_equal(model.predict_proba(rows), model.predict_proba(hidden))


@pytest.mark.parametrize("rows", [1, 2, 60])
def test_few_jobs_of_one_bin_are_enough(rows):
    made = trace([(60.0 * i, HALF_A_MINUTE_S, 1, "a", "") for i in range(rows)])
    model = JobDuration().fit(made, 1e6)
    assert model.predict(model.rows(made)).tolist() == [0] * rows


@given(st.floats(0.001, 1e6))
def test_bins_are_those_of_the_domain(duration_s):
    assert bins_of(np.array([duration_s]), (5, 60, 720)).tolist() == [duration_bin(duration_s)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_folder_holds_all_of_it(campus, algorithm, tmp_path):
    model = JobDuration(algorithm=algorithm, under_cost=2.5).fit(campus, 10 * DAY_S)
    again = JobDuration(algorithm=algorithm, under_cost=2.5).fit(campus, 10 * DAY_S)
    first = kept(model, tmp_path / "first")
    read = JobDuration.load(tmp_path / "first")
    assert set(first) == {"metadata.json", *(["booster.txt", "queue_booster.txt"] if algorithm in LEARNT else [])}
    assert first == kept(again, tmp_path / "again") == kept(read, tmp_path / "read")
    rows = model.rows(campus)[-50:]
    assert np.array_equal(read.predict_proba(rows), model.predict_proba(rows))
    assert np.array_equal(read.rows(campus)[-50:], rows, equal_nan=True)
    assert vars(read).keys() == vars(model).keys()


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(TrainingError, match="job-duration: no job of test ended in the training time"):
        JobDuration().fit(trace(TRAINING), 5.0)


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(RegistryError, match="algorithm 'oracle' is not known; choose from blended, lightgbm"):
        JobDuration(algorithm="oracle")


@settings(max_examples=5)
@given(st.integers(1, 4), st.integers(0, 99))
def test_any_bins(count, seed):
    horizons = (3, 20, 90, 600)[:count]
    made = weeks(seed, n=120, days=6)
    model = JobDuration(horizons).fit(made, 5 * DAY_S)
    assert model.predict_proba(model.rows(made)).shape == (120, count + 1)
    assert model.choose(model.rows(made)).max() <= count
