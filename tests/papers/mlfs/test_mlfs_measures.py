"""Orders and relative changes of the paper."""

import pytest

from papers.mlfs.measures import (
    DEADLINE,
    JCT,
    ORDERS,
    PRINTED,
    PRINTED_MS,
    apart,
    compare_order,
    gain_pct,
    load_claims,
    order_claim,
    order_text,
    relative,
)
from papers.mlfs.rows import BASELINES
from papers.results import HOLDS, REVERSED, Done

OURS = {"MLFS", "MLF-RL", "MLF-H"}


def done(name, seed, jct_s=60.0, deadline=0.5):
    return Done("x = 1", name, {"mean_jct_s": jct_s, "deadline_ratio": deadline}, seed, (jct_s,))


def test_each_order_ranks_all_policies_of_the_paper_once():
    for groups in (*ORDERS["most"].values(), *ORDERS["least"].values()):
        named = [name for group in groups for name in group]
        assert sorted(named) == sorted({*OURS, *BASELINES})
    known = OURS | set(BASELINES)
    assert {name for row in PRINTED for name in (row["better"], row["worse"])} <= known
    assert set(PRINTED_MS) <= known


def test_changes_are_relative_to_the_worse_one():
    # MLFS, section 4.1: |y - z| / z
    assert gain_pct(JCT, {"mean_jct_s": 66.0}, {"mean_jct_s": 100.0}) == pytest.approx(34.0)
    assert gain_pct(DEADLINE, {"deadline_ratio": 0.9}, {"deadline_ratio": 0.6}) == pytest.approx(50.0)
    assert gain_pct(JCT, {"mean_jct_s": 120.0}, {"mean_jct_s": 100.0}) == pytest.approx(-20.0)


def test_an_order_counts_pairs_of_different_groups_that_were_run():
    found = {name: {"mean_jct_s": jct} for name, jct in {"MLFS": 5.0, "MLF-H": 3.0, "Tiresias": 4.0, "RL": 9.0}.items()}
    pairs, wrong = compare_order(JCT, ORDERS["most"][JCT], found)
    assert pairs == 5  # Tiresias and RL are of one group
    assert set(wrong) == {("MLFS", "MLF-H"), ("MLFS", "Tiresias")}
    assert order_text(JCT, ORDERS["most"][JCT], list(found)) == "MLFS < MLF-H < Tiresias ~ RL"
    claim = order_claim("x = 3", JCT, ORDERS["most"][JCT], found)
    assert claim.here == "3 of 5 pairs; not: MLF-H before MLFS, Tiresias before MLFS"
    assert claim.holds is False
    alone = {("x = 3", "RL"): {"mean_jct_s": 1.0}, ("x = 1", "RL"): {"mean_jct_s": 1.0}}
    assert load_claims("x = 1", "x = 3", alone, real=True) == []


def test_intervals_are_of_differences_draw_by_draw():
    runs = [done("a", seed, 60.0 * 2**seed, 0.9) for seed in range(3)]
    runs += [done("b", seed, 120.0 * 2**seed, 0.8 - 0.01 * seed) for seed in range(3)]
    half = relative(JCT, runs, "x = 1", "a", "b")
    assert (half.mean, half.low, half.high) == pytest.approx((50.0, 50.0, 50.0))
    points = apart(DEADLINE, runs, "x = 1", "a", "b")
    assert points.mean == pytest.approx(11.0)
    assert points.high - points.mean == pytest.approx(4.303 / 3**0.5, abs=1e-3)  # t of two degrees of freedom
    assert points.verdict == HOLDS
    assert apart(DEADLINE, runs, "x = 1", "b", "a").verdict == REVERSED
    assert relative(JCT, runs, "x = 1", "b", "a").mean == pytest.approx(-100.0)
