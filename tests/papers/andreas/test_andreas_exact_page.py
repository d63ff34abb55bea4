"""The page of the exact optimum, on a handful of instances."""

import numpy as np
import pytest

from papers.andreas.__main__ import PAPER
from papers.andreas.bench import Bench
from papers.andreas.exact import COMPARED, compare, exact, gaps_pct
from papers.andreas.instances import MOST_JOBS, MOST_NODES, small
from papers.bench import RunFile


def test_instances_are_told_by_their_seed_and_small():
    views = [small(seed) for seed in range(30)]
    assert {len(view.active) for view in views} == set(range(2, MOST_JOBS + 1))
    assert {len(view.cluster.kind_of) for view in views} == set(range(1, MOST_NODES + 1))
    assert all(np.array_equal(small(3).jobs.due_s, views[3].jobs.due_s) for _ in range(2))
    for view in views:
        used = np.bincount(view.node_of[view.node_of >= 0], view.gpus_of[view.node_of >= 0], len(view.cluster.kind_of))
        assert (used <= view.cluster.kind_gpus[view.cluster.kind_of]).all()


@pytest.mark.slow
def test_nobody_is_below_the_optimum():
    found = compare([small(seed) for seed in range(8)])
    to_go, free, forced = found.optima
    assert (forced >= free - 1e-6).all()
    for cost in found.costs.values():
        assert (cost[0] >= to_go - 1e-6).all()
        assert (cost[1] >= free - 1e-6).all()
    assert gaps_pct(found.costs["ANDREAS"], found.optima)[0] <= 1.0


def test_the_page(tmp_path):
    bench = Bench(data=tmp_path, file=RunFile(tmp_path / "runs.jsonl", resume=False))
    exact(bench, PAPER.page("exact", tmp_path / "out"), count=4)
    page = (tmp_path / "out" / "exact.md").read_text()
    assert page.startswith("# The exact optimum\n\n4 instances of one call")
    assert all(f"| {title} |" in page for title in COMPARED)
    rows = (tmp_path / "out" / "exact.csv").read_text().splitlines()
    assert rows[0].startswith("seed,optimum: cost to go,optimum: equation 1,optimum: equation 1 with 4n,ANDREAS: cost")
    assert len(rows) == 5
