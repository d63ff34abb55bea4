"""The corpus: its grid, its masks, its file."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import MemoryLimitError, TrainingError
from jobcast.domain.memory import memory_limit
from jobcast.features.arrivals import arrival_features, feature_names
from jobcast.features.corpus import SCORED, Corpus, active_grid, build_corpus, grid
from jobcast.features.targets import arrivals_within, load_within
from tests.features.pools import arrived, random_pool
from tests.shared import refused

DAY = 86400.0
ARRAYS = ("pool_index", "tick_s", "X", "arrives", "load")


@pytest.fixture
def histories():
    return {"b": random_pool(1, 120, "minutes"), "a": random_pool(2, 40, "instants"), "c": random_pool(3, 0, "minutes")}


@pytest.fixture
def corpus(histories):
    return build_corpus(histories, 0.0, DAY, (5, 7.5, 720))


def same(one, other):
    told = [[getattr(corpus, name) for name in ("pools", "horizons_min", "feature_names")] for corpus in (one, other)]
    arrays = [(getattr(one, name), getattr(other, name)) for name in ARRAYS]
    return told[0] == told[1] and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)


def test_grid_holds_its_beginning_and_not_its_end():
    assert grid(300.0, 900.0).tolist() == [300.0, 600.0]
    assert grid(3000.0, 3600.0).tolist() == [3000.0, 3300.0]
    assert grid(300.5, 900.5).tolist() == [600.0, 900.0]
    assert grid(0.0, 0.0).size == 0


def test_progress_is_told_pool_by_pool(histories):
    told = []
    build_corpus(histories, 0.0, 600.0, (5,), progress=lambda *counts: told.append(counts))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_rows_are_by_pool_then_instant(histories, corpus):
    assert corpus.pools == ("a", "b", "c")
    ticks = grid(0.0, DAY)
    assert len(corpus) == 3 * ticks.size
    assert corpus.X.shape == (3 * ticks.size, 3, len(feature_names()))
    rows = corpus.pool_index == corpus.pools.index("b")
    assert np.array_equal(corpus.tick_s[rows], ticks)
    horizons_s = [300.0, 450.0, 43200.0]
    assert np.array_equal(corpus.X[rows], arrival_features(histories["b"], ticks, horizons_s).astype(np.float32))
    assert np.array_equal(corpus.arrives[rows], arrivals_within(histories["b"], ticks, horizons_s))
    assert np.array_equal(corpus.load[rows], load_within(histories["b"], ticks, horizons_s))


def test_masks_at_a_split(corpus):
    split = 43200.0
    assert corpus.tick_s[corpus.until(split)].max() == split - 300.0
    assert corpus.tick_s[corpus.purged(split, 0)].max() == split - 600.0, "the window that ends at the split is out"
    assert corpus.tick_s[corpus.purged(split, 1)].max() == split - 600.0
    assert not corpus.purged(split, 2).any()
    scored = corpus.tick_s[corpus.scored(split, DAY, 0)]
    assert (scored.min(), scored.max()) == (split, DAY - 300.0)


def test_purged_rows_do_not_change_with_what_comes_at_the_split(histories, corpus):
    split = 43200.0
    more = {name: _with_arrival(history, split) for name, history in histories.items()}
    other = build_corpus(more, 0.0, DAY, (5, 7.5, 720))
    for h in range(2):
        mask = corpus.purged(split, h)
        for one, two in zip(corpus.horizon_matrix(h, mask), other.horizon_matrix(h, mask), strict=True):
            assert np.array_equal(one, two)
        assert other.arrives[corpus.tick_s == split - 300.0, h].all()


def _with_arrival(history, time_s):
    at = np.searchsorted(history.arrival_s, time_s)
    return replace(
        history,
        arrival_s=np.insert(history.arrival_s, at, time_s),
        arrival_gpus=np.insert(history.arrival_gpus, at, 1.0),
    )


def test_of_pools_keeps_their_rows(histories, corpus):
    subset = corpus.of_pools(["c", "b"])
    assert same(subset, build_corpus({name: histories[name] for name in "bc"}, 0.0, DAY, (5, 7.5, 720)))
    refused(ValueError, r"\['nobody'\].*\['a', 'b', 'c'\]", corpus.of_pools, ["a", "nobody"])


def test_file_brings_the_corpus_back(histories, corpus, tmp_path):
    for whole in (corpus, build_corpus(histories, 0.0, 0.0, (5, 7.5, 720))):
        whole.save(tmp_path / "corpus.parquet")
        back = Corpus.read(tmp_path / "corpus.parquet")
        assert same(back, whole)
        assert [type(k) for k in back.horizons_min] == [int, float, int]


BUILD = """
import sys, numpy as np
from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import build_corpus
times = np.arange(0.0, 86400.0, 77.0)
pool = PoolHistory(times, np.ones_like(times), times, times + 500, times + 500, np.full_like(times, 500.0))
build_corpus({"a": pool, "b": pool}, 0.0, 86400.0, (5, 60)).save(sys.argv[1])
"""


def test_file_is_the_same_to_the_byte_in_every_process(tmp_path, monkeypatch):
    one, other = tmp_path / "one.parquet", tmp_path / "two.parquet"
    subprocess.run([sys.executable, "-c", BUILD, str(one)], check=True)
    monkeypatch.setattr(sys, "argv", ["", str(other)])
    exec(BUILD, {})
    assert one.read_bytes() == other.read_bytes()


def test_says_what_is_no_corpus(tmp_path):
    refused(TrainingError, "no such corpus", Corpus.read, tmp_path / "missing.parquet")
    (tmp_path / "text.parquet").write_text("pool,tick_s")
    refused(TrainingError, "not a Parquet file", Corpus.read, tmp_path / "text.parquet")
    for columns in ({"pool": ["a"]}, {"pool": ["a"], "tick_s": [0.0]}, {"tick_s": [0.0], "load@5min": [0.0]}):
        pl.DataFrame(columns).write_parquet(tmp_path / "other.parquet")
        refused(TrainingError, "not a corpus", Corpus.read, tmp_path / "other.parquet")


def test_instants_far_from_every_event_are_left_out():
    pools = {"a": arrived([0.0, DAY]), "b": arrived([60 * DAY, 400 * DAY])}
    ticks = active_grid(pools, -100 * DAY, 800 * DAY)
    whole = grid(-100 * DAY, 800 * DAY)
    near = [(-28, 29), (32, 88), (372, 428)]
    expected = np.concatenate([whole[(whole >= a * DAY) & (whole < b * DAY)] for a, b in near])
    assert np.array_equal(ticks, expected)
    assert np.array_equal(
        active_grid(pools, 10 * DAY, 400 * DAY), expected[(expected >= 10 * DAY) & (expected < 400 * DAY)]
    )


@pytest.mark.parametrize("gap_days", [1, 55.9])
def test_a_silence_of_less_than_eight_weeks_changes_nothing(gap_days):
    pools = {"a": arrived([0.0, gap_days * DAY])}
    assert np.array_equal(active_grid(pools, 0.0, gap_days * DAY), grid(0.0, gap_days * DAY))


def test_a_long_horizon_reaches_further():
    pools = {"a": arrived([0.0, 1000 * DAY])}
    ticks = active_grid(pools, 0.0, 1000 * DAY, DAY, 90 * DAY)
    assert ticks.tolist() == [DAY * day for day in (*range(90), *range(910, 1000))]


def test_rows_of_a_sparse_corpus_are_those_of_the_whole():
    pools = {"a": arrived([*np.arange(0, DAY, 700.0), *np.arange(200 * DAY, 201 * DAY, 900.0)])}
    sparse = build_corpus(pools, 0.0, 201 * DAY, (5, 720), 7200.0)
    rows = arrival_features(pools["a"], grid(0.0, 201 * DAY, 7200.0), np.array([300.0, 43200.0])).astype(np.float32)
    kept = np.isin(grid(0.0, 201 * DAY, 7200.0), sparse.tick_s)
    assert kept.sum() < 0.3 * len(kept)
    assert np.array_equal(sparse.X, rows[kept])


def test_a_corpus_beyond_the_limit_is_refused_before_it_is_built():
    with (
        memory_limit(10**7),
        pytest.raises(MemoryLimitError, match=r"features of 1 pools at 7,999 instants needs .* in its --params"),
    ):
        build_corpus({"a": arrived([0.0, 7999 * 300.0])}, 0.0, 7999 * 300.0, (5, 60))
    with memory_limit(10**9), pytest.raises(MemoryLimitError, match="a grid without a single job"):
        build_corpus({"a": arrived([])}, -2e12, 2e12, (5,))


@pytest.mark.parametrize(("holds", "corpora"), [({}, 12), ({"copies": SCORED}, 4)])
def test_a_training_holds_twelve_corpora_and_a_scoring_four(holds, corpora):
    pools = {"a": arrived([0.0]), "b": arrived([3600.0])}
    made = build_corpus(pools, 0.0, 3600.0, (5, 60))
    size = corpora * (made.X.nbytes + made.arrives.nbytes + made.load.nbytes)
    with memory_limit(size):
        build_corpus(pools, 0.0, 3600.0, (5, 60), **holds)
    with memory_limit(size - 1), pytest.raises(MemoryLimitError):
        build_corpus(pools, 0.0, 3600.0, (5, 60), **holds)
    with memory_limit(96):
        assert len(active_grid({"a": arrived([])}, 0.0, 3600.0)) == 12
    with memory_limit(95), pytest.raises(MemoryLimitError):
        active_grid({"a": arrived([])}, 0.0, 3600.0)
