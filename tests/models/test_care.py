"""Care: a fitted predictor that takes another equals one that was trained with it, byte for byte."""

import numpy as np
import pytest

from jobcast.features.corpus import build_corpus
from jobcast.models.care import LADDER, Care
from jobcast.models.new_load import ALGORITHMS, NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from tests.features.pools import arrived
from tests.shared import kept

DAY_S = 86400.0
HORIZONS_MIN = (60, 720)
SHY = Care(0.01, 0.95, 400.0)


@pytest.fixture(scope="module")
def histories():
    """Twelve days of random arrivals, a few an hour."""
    rng = np.random.default_rng(3)
    return {"a": arrived(np.sort(rng.uniform(0, 12 * DAY_S, 600)), rng.choice([1.0, 2.0, 8.0], 600))}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_loads(histories, algorithm, tmp_path):
    bold, shy = (
        NewLoad(algorithm, lending_coverage=coverage).fit(histories, 0.0, 12 * DAY_S, HORIZONS_MIN)
        for coverage in (Care().lending_coverage, SHY.lending_coverage)
    )
    assert kept(bold, tmp_path / "bold") != kept(shy, tmp_path / "shy")
    bold.take(SHY)
    assert kept(bold, tmp_path / "took") == kept(shy, tmp_path / "again")


def test_arrivals(histories, tmp_path):
    corpus = build_corpus(histories, 0.0, 12 * DAY_S, HORIZONS_MIN, 1800.0)
    bold, shy = (WillJobsArrive("logistic", share).fit(corpus, 12 * DAY_S) for share in (0.2, SHY.miss_share))
    assert kept(bold, tmp_path / "bold") != kept(shy, tmp_path / "shy")
    bold.take(SHY)
    assert kept(bold, tmp_path / "took") == kept(shy, tmp_path / "again")


def test_the_ladder_begins_with_the_boldest_which_all_others_cover():
    assert all(care.covers(LADDER[0]) and not LADDER[0].covers(care) for care in LADDER[1:])
    assert len(set(LADDER)) == len(LADDER)
