"""What is measured of SIA's runs, over draws."""

import numpy as np

from papers.results import Done
from papers.sia.measures import GMEAN, SLOWED, TOTAL, mean, median, table, times_less, times_text
from tests.shared import refused


def done(name, seed, speed, total=0.0, case="2", **more):
    return Done(case, name, {"speedup_gmean": speed, "slowdown_total_min": total, "cpu_s": 0.1 * seed, **more}, seed)


RUNS = [
    done("sia", 2, 4.0),
    done("sia", 0, 1.5),
    done("sia", 1, 2.0, 30.0),
    done("mmfs", 0, 1.25, 7.0),
    done("sia", 0, 9.0, case="4"),
]


def test_a_measure_is_read_by_draw_of_one_case_and_policy():
    np.testing.assert_array_equal(GMEAN.of(RUNS, "2", "sia"), [1.5, 2.0, 4.0])
    assert median(GMEAN, RUNS, "2", "sia") == 2.0
    assert mean(GMEAN, RUNS, "2", "sia") == 2.5
    assert mean(TOTAL, RUNS, "2", "sia") == 10.0
    refused(KeyError, "slowed_pct", SLOWED.of, RUNS, "2", "sia")


def test_a_table_has_a_row_a_case_and_policy():
    assert table(RUNS, "queues", (GMEAN, TOTAL)).splitlines() == [
        "| queues | policy | speedup, geometric mean | slowdown, min in all |",
        "| --- | --- | --- | --- |",
        "| 2 | sia | 2.00 (1.50 to 4.00) | 0 (0 to 30) |",
        "| 2 | mmfs | 1.25 | 7 |",
        "| 4 | sia | 9.00 | 0 |",
    ]


def test_times_less_by_hand():
    assert [times_less(*pair) for pair in ((2.0, 8.0), (8.0, 2.0), (0.0, 8.0), (0.0, 0.0))] == [4, 0.25, np.inf, 1]
    assert [times_text(times) for times in (12345.6, np.inf)] == ["12,346", "all of it"]
