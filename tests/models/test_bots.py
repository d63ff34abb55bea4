import os
from pathlib import Path

import numpy as np
import pytest

from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import build_corpus
from jobcast.models.will_jobs_arrive import bot_pools, densest_share, like_clockwork

DAY_S = 86400.0


def pool(arrival_s):
    arrival_s = np.sort(arrival_s)
    ones = np.ones(len(arrival_s))
    return PoolHistory(arrival_s, ones, arrival_s, arrival_s + 60.0, arrival_s + 60.0, 60.0 * ones)


def test_densest_band_of_gaps_by_hand():
    # 600, 605 and 611 lie within 2 % of 600; 613 does not; 5 and 5 are too short to count as a band.
    assert densest_share(np.array([600.0, 605.0, 611.0, 613.0, 5.0, 5.0, 5.0, 5.0, 90.0, 2000.0])) == 0.3


def test_few_gaps_tell_nothing():
    assert not like_clockwork(np.full(49, 600.0))
    assert like_clockwork(np.full(50, 600.0))


def test_a_batch_submitted_at_once_is_no_clockwork():
    assert not like_clockwork(np.concatenate((np.full(300, 2.0), np.geomspace(60, 90_000, 100))))


def test_the_clockwork_is_found_from_what_was_seen():
    rng = np.random.default_rng(3)
    ticking = np.arange(600.0, 5 * DAY_S, 900.0) + rng.uniform(0, 8, 480)[: len(np.arange(600.0, 5 * DAY_S, 900.0))]
    people = rng.uniform(0, 10 * DAY_S, 3000)
    late = np.arange(5 * DAY_S, 10 * DAY_S, 600.0)
    corpus = build_corpus({"a": pool(people), "b": pool(ticking), "c": pool(late)}, 0.0, 10 * DAY_S, (60,))
    assert bot_pools(corpus, corpus.until(5 * DAY_S)) == ("b",)
    assert bot_pools(corpus, corpus.until(10 * DAY_S)) == ("b", "c")


def test_philly_has_one():
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: the Philly trace is not at hand")
    from jobcast.traces.history import pool_histories
    from jobcast.traces.readers import read_trace

    trace = read_trace(Path(os.environ["JOBCAST_DATA"]) / "philly/philly_jobs.csv")
    corpus = build_corpus(pool_histories(trace), 1506902400.0, 1509926400.0, (60,))
    assert bot_pools(corpus, corpus.until(1509926400.0)) == ("11cb48",)
