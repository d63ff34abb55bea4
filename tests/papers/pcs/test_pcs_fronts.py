"""Which configurations of a front the figures take."""

import numpy as np
import pytest

from jobcast.pipelines.experiments.search.evaluation import parse_objectives
from jobcast.pipelines.experiments.search.front import Front, Row
from jobcast.schedulers.elastic.config import WfqConfig
from papers.pcs.figure9 import found_shares
from papers.pcs.fronts import behind, picks, uncovered

INF = float("inf")
ONE = WfqConfig()
TOLD = {"T": 1.0, "W": 1.0, "zeta_min": 0.5, "delta": 0.1}


def two(threshold):
    return WfqConfig((threshold, INF), (0.9, 0.1))


def front(*values, config=two):
    rows = [Row(pick, config(pick + 1.0), TOLD, one, one, True) for pick, one in enumerate(values)]
    rows.append(Row(len(rows), ONE, TOLD, (1000.0, 0.0), (1000.0, 0.0), True))
    references = {"elastic_fifo": (1000.0, 0.0), "srsf": (99.0, 50.0)}
    return Front(parse_objectives("jct:mean,error:mean"), tuple(rows), references)


def test_least_error_within_a_share_of_the_way_to_fifo():
    # lowest 100, FIFO 1000: 5 %, 20 %, 60 % of the way are 112, 158 and 398
    found = front((100.0, 40.0), (112.0, 30.0), (113.0, 20.0), (158.0, 10.0), (159.0, 8.0), (398.0, 5.0), (399.0, 1.0))
    assert {name: row.pick for name, row in picks(found).items()} == {"PCS-jct": 1, "PCS-bal": 3, "PCS-pred": 5}


def test_fifo_itself_is_no_choice():
    found = front((990.0, 40.0))
    assert {row.pick for row in picks(found).values()} == {0}


def test_rows_that_others_beat_on_fresh_samples_are_no_choice():
    good = front((100.0, 40.0), (101.0, 1.0))
    beaten = Row(1, two(2.0), TOLD, (101.0, 1.0), (101.0, 1.0), False)
    found = Front(good.objectives, (good.rows[0], beaten, good.rows[2]), good.references)
    assert {row.pick for row in picks(found).values()} == {0}


def test_distances_by_hand():
    """Against (100, 10) and (200, 5): (110, 10) is 10 % behind; (100, 9) is answered only with 11 % more error."""
    front = np.array([[100.0, 10.0], [200.0, 5.0]])
    points = np.array([[110.0, 10.0], [100.0, 10.0], [210.0, 10.0]])
    assert behind(points, front) == pytest.approx([0.1, 0.0, 1.0], abs=2e-3)
    assert uncovered(np.array([[100.0, 9.0], [300.0, 6.0]]), front) == pytest.approx([0.111, -0.166], abs=2e-3)


def test_points_found_by_hand():
    """Together (1, 9), (5, 5), (9, 1) lead. One finds two of them by 1 %, at first one; the other the third alone."""
    first = [np.array([[1.0, 9.0]]), np.array([[1.0, 9.0], [9.05, 1.0]])]
    other = [np.array([[5.0, 5.0]]), np.array([[5.0, 5.0], [9.0, 1.0], [9.0, 9.0]])]
    for shares in found_shares({"raw": first, "parameters": other}).values():
        assert shares == pytest.approx([1 / 3, 2 / 3])
