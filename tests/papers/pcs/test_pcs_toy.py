"""The toy of PCS, Figure 1: golden values worked out by hand, and the text's statements."""

import numpy as np
import pytest

from jobcast.simulator.metrics import errors_pct
from papers.pcs.toy import expected_ends, play_toy


def test_themis_shares_by_leases():
    ends = expected_ends("elastic_themis")
    assert ends[1][0] - ends[0][0] == 8  # the text: J1 put off by eight units when J2 arrives
    assert ends == [[10], [18, 16], [19, 17, 10], [19, 17, 10, 27]]


def test_fifo_keeps_what_it_forecasts():
    assert expected_ends("elastic_fifo") == [[10], [10, 18], [10, 18, 19], [10, 18, 19, 27]]


@pytest.mark.parametrize(("policy", "printed"), [("srsf", 46), ("elastic_themis", 24), ("elastic_fifo", 0)])
def test_mean_errors_are_the_printed_ones(policy, printed):
    assert round(float(errors_pct(play_toy(policy)).mean())) == printed  # PCS, section 2.2


def test_mean_jcts_are_ordered_as_the_text_says():
    mean = {
        policy: float(np.mean(play_toy(policy).end_s - play_toy(policy).submit_s))
        for policy in ("srsf", "elastic_themis", "elastic_fifo")
    }
    assert mean == {"srsf": 11.5, "elastic_themis": 14.0, "elastic_fifo": 14.25}
