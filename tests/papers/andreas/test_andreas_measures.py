"""What ANDREAS saves, by hand."""

import pytest

from papers.andreas.measures import ENERGY, TOTAL, holds, of_sums_pct, over, savings_pct
from papers.results import Done, Interval, interval_of

COSTS = {("10", "ANDREAS"): (40.0, 30.0), ("10", "FIFO"): (100.0, 100.0), ("20", "ANDREAS"): (50.0, 90.0)}
COSTS |= {("20", "FIFO"): (100.0, 100.0), ("10", "EDF"): (0.0, 60.0), ("20", "EDF"): (100.0, 90.0)}


@pytest.fixture
def done():
    """Two draws of each, those of the second seed first."""
    return [
        Done(case, name, {"total_eur": costs[seed], "energy_eur": costs[seed] / 2}, seed)
        for seed in (1, 0)
        for (case, name), costs in COSTS.items()
    ]


def test_savings_are_by_draw(done):
    assert savings_pct(TOTAL, done, "10", "FIFO").tolist() == [60.0, 70.0]
    assert savings_pct(ENERGY, done, "20", "FIFO").tolist() == [50.0, 10.0]


def test_over_cases_the_interval_is_of_the_draws_means(done):
    found = over(TOTAL, done, ["10", "20"], ["FIFO"])
    assert found == interval_of([(60.0 + 50.0) / 2, (70.0 + 10.0) / 2])
    assert found.mean == 47.5


def test_savings_of_the_sums(done):
    # 40 + 30 + 50 + 90 of 400
    assert of_sums_pct(TOTAL, done, ["10", "20"], "FIFO") == pytest.approx(47.5)
    assert of_sums_pct(TOTAL, done, ["10"], "EDF") == pytest.approx(100 * (1 - 70 / 60))


def test_a_direction_holds_with_confidence_or_is_open():
    assert holds(Interval(5.0, 1.0, 9.0)) is True
    assert holds(Interval(5.0, -1.0, 9.0)) is None
    assert holds(Interval(-5.0, -9.0, -1.0)) is False
    assert holds(interval_of([3.0])) is True
