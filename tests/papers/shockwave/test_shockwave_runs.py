"""Tables of Shockwave's figures: relative values, and who is better."""

import pytest

from papers.results import Replayed, means
from papers.shockwave.runs import MAKESPAN, comparison, ratio, who_is_better

FIGURES = {
    "makespan_s": 7200.0, "utilization": 0.5, "mean_jct_s": 3600.0, "worst_ftf": 1.0, "worst_ftf_lifetime": 2.0,
    "unfair_pct_100": 10.0, "unfair_pct_105": 5.0, "unfair_pct_110": 0.0, "unfair_pct_100_lifetime": 20.0,
}  # fmt: skip


def done(name, case="c", **other):
    return Replayed(case, name, {**FIGURES, **other}, log=None)


def test_runs_of_one_name_are_averaged_and_others_kept_in_order():
    found = means([done("b", worst_ftf=1.0), done("a"), done("b", worst_ftf=3.0), done("b", case="d")])
    assert list(found) == [("c", "b"), ("c", "a"), ("d", "b")]
    assert found["c", "b"]["worst_ftf"] == 2.0


def test_figures_are_relative_to_shockwave():
    found = means([done("shockwave"), done("allox", makespan_s=10800.0, mean_jct_s=1800.0), done("gavel")])
    assert ratio(found, "c", MAKESPAN, ("allox", "gavel")) == pytest.approx(1.25)
    table = comparison(found, "c").splitlines()
    assert table[3] == "| allox | 3.00 | 1.50 | 50.0 | 0.50 | 0.50 | 1.00 | 2.00 | 10.0 | 5.0 | 0.0 | 20.0 |"


def test_who_is_better_leaves_out_equals():
    found = means([done("shockwave"), done("a", makespan_s=7199.0, worst_ftf=0.5), done("b", worst_ftf=0.9)])
    assert who_is_better(found, "c") == (
        "Better than shockwave by makespan: nobody; by mean JCT: nobody; by worst FTF: a, b; "
        "by share of jobs with FTF above 1: nobody."
    )
