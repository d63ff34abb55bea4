"""Shockwave, Table 1, Figures 1 and 15: printed figures are the golden values."""

import pytest

from papers.shockwave.__main__ import PAPER
from papers.shockwave.table1 import Fraction, agrees, table1, table1_rows

THIRD, TWO_THIRDS, ONE = Fraction(1, 3), Fraction(2, 3), Fraction(1)


@pytest.fixture(scope="module")
def rows():
    return {row.printed["filter"]: row for row in table1_rows()}


# Filter: worst rho, average JCT, makespan and sharing incentive, as Table 1 rounds them.
TABLE_1 = {
    "Adaptive - 1/⅓/⅔": (0.83, 5.0, 7, True),
    "Fixed - 1/3": (1.0, 5.7, 7, True),
    "Fixed - 2/3": (1.1, 5.7, 7, False),
    "Fixed - 1": (1.1, 6.0, 7, False),
}


@pytest.mark.parametrize(("name", "printed"), TABLE_1.items())
def test_printed_schedules_have_the_printed_figures(rows, name, printed):
    worst, mean_jct, makespan, fair = printed
    scored = rows[name].scored
    assert scored.worst_rho == pytest.approx(worst, abs=0.05 if worst > 1 else 0.005)
    assert scored.mean_jct == pytest.approx(mean_jct, abs=0.05)
    assert scored.makespan == makespan
    assert (scored.worst_rho <= 1.0) is fair
    assert agrees(rows[name])
    assert [float(rows[name].printed[figure]) for figure in ("worst_rho", "mean_jct")] == [worst, mean_jct]


def test_rho_of_figure_1(rows):
    """Its caption: (0.78, 0.83, 1.1) for A, B and C."""
    assert rows["Fixed - 2/3"].scored.rho == pytest.approx((0.78, 0.83, 1.1), abs=0.015)


@pytest.mark.parametrize("name", ["Fixed - 1/3", "Fixed - 2/3", "Fixed - 1"])
def test_schedules_of_fixed_filters_come_out_of_one(rows, name):
    row = rows[name]
    assert row.leaves_filter_at is None
    assert row.scored in row.reachable


def test_ties_decide_whether_a_fixed_filter_is_fair(rows):
    for name in ("Fixed - 1/3", "Fixed - 2/3", "Fixed - 1"):
        reached = rows[name].reachable
        assert reached[0].worst_rho == pytest.approx(1.0)
        assert reached[-1].worst_rho == pytest.approx(10 / 9)


def test_the_adaptive_schedule_comes_out_of_no_filter(rows):
    row = rows["Adaptive - 1/⅓/⅔"]
    assert row.leaves_filter_at == 1
    assert row.scored not in row.reachable


def test_the_page_is_written_and_the_same_each_time(tmp_path):
    table1(tmp_path / "no data needed", PAPER.page("table1", tmp_path / "docs" / "shockwave"))
    table1(tmp_path, PAPER.page("table1", tmp_path / "again"))
    text = (tmp_path / "docs" / "shockwave" / "table1.md").read_text(encoding="utf-8")
    assert text == (tmp_path / "again" / "table1.md").read_text(encoding="utf-8")
    assert "| Fixed - 2/3 | 1 | 0.78, 0.83, 1.11 | 1.11 | 1.1 | no | 5.67 | 5.7 | 7 | 7 | 0.58 |" in text
    assert "worst rho is at least 0.83, mean JCT at least 5.00 and makespan at least 7, and it reaches all" in text
    widths = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert widths == [12] * 6 + [4] * 6
