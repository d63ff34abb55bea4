"""The audit: attacks find what is there to be found, and nothing where nothing is."""

import numpy as np
import pytest

from jobcast.domain.clock import WEEK_S
from jobcast.traces.generators import generate
from jobcast.traces.likeness import likeness, linkage, membership, weighted_auc
from jobcast.traces.table import Trace
from jobcast.traces.twin import twin_of


@pytest.fixture(scope="module")
def campus() -> Trace:
    return generate("campus", 5, {"weeks": "4", "pools": "3", "jobs": "3000"})[0]


def test_area_by_hand():
    scores, member = np.array([4.0, 2.0, 3.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    assert weighted_auc(scores, member, np.ones(4)) == 0.75
    # the member that is above both counts twice: (2 * 2 + 1) / (3 * 2)
    assert weighted_auc(scores, member, np.array([2.0, 1.0, 1.0, 1.0])) == pytest.approx(5 / 6)
    assert weighted_auc(np.ones(4), member, np.ones(4)) == 0.5
    assert np.isnan(weighted_auc(scores, np.ones(4), np.ones(4)))


def test_a_copy_is_found_out(campus):
    """A release that is the log itself has every member at distance 0."""
    attack = membership(campus, lambda half, seed: half, "weeks")
    assert attack is not None
    assert attack.auc > 0.95
    assert linkage(campus, campus)["missed"] == 0.0
    told = likeness(campus, campus)
    assert set(told["ks"].values()) == {0.0}
    assert (told["gpu_time"], told["load_error_max"], told["week_profile_tv"]) == (1.0, 0.0, 0.0)


def test_a_release_that_knows_nothing_gives_nothing_away(campus):
    other = generate("campus", 6, {"weeks": "4", "pools": "3", "jobs": "3000"})[0]
    attack = membership(campus, lambda half, seed: other, "weeks")
    assert attack is not None
    assert attack.auc == pytest.approx(0.5, abs=1e-9)


def test_a_twin_hardly_tells_who_was_in_the_log(campus):
    attack = membership(campus, lambda half, seed: twin_of(half, seed=seed), "weeks")
    assert attack is not None
    assert attack.auc <= 0.55
    assert attack.low <= attack.auc <= attack.high
    assert (attack.units, attack.members + attack.others) == (4, len(campus))


def test_linkage_by_hand(make_trace):
    log = make_trace(("a", 0, 100, 1), ("a", 10, 101, 1), ("a", 7200, 100, 1), ("a", 7300, 100, 2))
    export = make_trace(("b", 30, 100, 1), ("b", 40, 102, 1), ("b", 7500, 100, 1), ("b", 11000, 100, 2))
    assert linkage(log, export) == {"median_set": 1.5, "alone": 0.25, "missed": 0.25, "alone_by_wait": None}


def test_a_pool_of_cores_alone_has_no_load_to_be_off_by(make_trace):
    log = make_trace(("gpu", 0, 100, 1), ("cpu", 10, 100, 0))
    release = make_trace(("gpu", 0, 150, 1), ("cpu", 10, 100, 1))
    told = likeness(log, release)
    assert (told["load_error_mean"], told["load_error_max"], told["gpu_time"]) == (0.5, 0.5, 2.5)
    cores = make_trace(("cpu", 0, 100, 0), ("cpu", 10, 100, 0))
    assert likeness(cores, cores)["load_error_max"] == 0.0


def test_who_is_known_by_a_waiting_time(make_trace):
    """They waited 0, 5, 5 and 7 s: of those that waited one of three is known by that."""
    rows = [("a", 0.0, 100.0, 1), ("a", 10.0, 101.0, 1), ("a", 7200.0, 100.0, 1), ("a", 7300.0, 100.0, 2)]
    starts = [0.0, 15.0, 7205.0, 7307.0]
    moved = [(pool, at + 86400.0, lasts, gpus) for pool, at, lasts, gpus in rows]
    log = make_trace(*rows, start_time=starts)
    export = make_trace(*moved, start_time=[one + 86400.0 for one in starts])
    assert linkage(log, export)["alone_by_wait"] == pytest.approx(1 / 3)


def test_nothing_to_part(make_trace):
    trace = make_trace(("a", 0, 100, 1), ("a", 10, 101, 1))
    assert membership(trace, lambda half, seed: half, "weeks") is None
    assert membership(trace, lambda half, seed: half, "users") is None


@pytest.mark.parametrize(
    ("weeks", "jobs", "error"),
    [
        # the log's first week alone
        (1, [("a", 0, 100, 1)], 0.0),
        (1, [("a", 0, 150, 1)], 0.5),
        # the log's second week ends at its last submission, an hour after it began
        (
            3,
            [("a", 0, 100, 1), ("a", WEEK_S + 3600, 300, 1), ("a", WEEK_S + 3601, 9e3, 1), ("a", 2 * WEEK_S, 9e3, 1)],
            0.0,
        ),
    ],
)
def test_loads_are_compared_for_as_long_as_log_and_release_last(make_trace, weeks, jobs, error):
    log = make_trace(("a", 0, 100, 1), ("a", WEEK_S + 3600, 300, 1))
    told = likeness(log, make_trace(*jobs), weeks=weeks)
    assert (told["load_error_mean"], told["load_error_max"]) == (error, error)
