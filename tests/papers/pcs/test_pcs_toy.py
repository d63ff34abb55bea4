"""The toy of PCS, Figure 1: golden values worked out by hand, and the figure's numbers."""

import pytest

from jobcast.simulator.metrics import errors_pct, excess_pct
from papers.pcs.figure1 import expected_ends, play_toy


def test_themis_shares_by_leases():
    assert expected_ends("elastic_themis") == [[10], [18, 15], [19, 16, 3], [19, 16, 3, 27]]


def test_fifo_keeps_what_it_forecasts():
    assert expected_ends("elastic_fifo") == [[10], [10, 18], [10, 18, 19], [10, 18, 19, 27]]


def test_under_processor_sharing_the_short_one_ends_first():
    """By hand: two share until 1, three until 4 (J3 ends), two until 10, three until 20.5 (J2 ends), two until 24.5."""
    assert play_toy("elastic_fair").end_s == pytest.approx([24.5, 20.5, 4.0, 27.0])


@pytest.mark.parametrize(
    ("policy", "jct", "unfair", "error"),
    [("srsf", 11.25, 10, 46), ("elastic_themis", 13.5, 0, 24), ("elastic_fifo", 15.75, 500, 0)],
)
def test_the_figures_numbers(policy, jct, unfair, error):  # PCS, figure 1b
    log = play_toy(policy)
    assert log.jct_s.mean() == jct
    assert round(excess_pct(log, play_toy("elastic_fair").jct_s).max()) == unfair
    assert round(errors_pct(log).mean()) == error
