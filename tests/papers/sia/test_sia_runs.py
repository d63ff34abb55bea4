"""One replay and what is kept of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobcast.pipelines.experiments.simulation import Simulated
from papers.bench import Unit
from papers.sia import potential
from papers.sia.bench import (
    FCFS,
    HIVED,
    MMFS,
    SIA,
    SIA_EXACT,
    SIA_RANDOM,
    SIA_RANDOM_ARRIVALS,
    SIA_VC,
    SSF,
    PoolDraw,
    Row,
    Synthetic,
    figures_of,
    run_draw,
)  # fmt: skip
from tests import scenarios

FEW = Synthetic("less_queues", days=0.3)


def log_of(jct_s, preemptions=(0, 0, 0, 0)):
    """Four jobs submitted at 0, 10, 20, 30 s that complete after so long."""
    submit_s = np.arange(4) * 10.0
    stops = {"duration_s": np.full(4, 50.0), "preemptions": np.array(preemptions)}
    return scenarios.log_of(submit_s, submit_s, submit_s + jct_s, **stops)


BASE = Simulated(log_of(np.array([100.0, 200.0, 400.0, 50.0])), 1.0, 1.0)
MADE = Simulated(log_of(np.array([50.0, 200.0, 100.0, 100.0]), (2, 0, 1, 1)), 0.25, 1.0, own={"milp_gap": 0.1})


def test_figures_by_hand():
    told = figures_of(MADE, BASE, None)
    assert told["jct_ratio"] == pytest.approx(187.5 / 112.5)
    # speedups 2, 1, 4, 1/2
    assert told["speedup_mean"] == 1.875
    assert told["speedup_gmean"] == pytest.approx(2**0.5)
    tails = [told[f"speedup_p{at}"] for at in (50, 75, 90, 99)]
    assert tails == pytest.approx([1.5, 2.5, 3.4, 3.94])
    assert (told["slowed_pct"], told["slowdown_total_min"], told["slowdown_max_min"]) == (25.0, 50 / 60, 50 / 60)
    assert (told["jobs"], told["preemptions"], told["cpu_s"], told["milp_gap"]) == (4, 4.0, 0.25, 0.1)


def test_jobs_of_the_warm_up_do_not_count():
    told = figures_of(MADE, BASE, 15.0)
    assert told["jobs"] == 2
    assert told["jct_ratio"] == pytest.approx(225.0 / 100.0)
    assert told["speedup_p50"] == 2.25
    assert told["speedup_gmean"] == pytest.approx(2**0.5)
    assert told["preemptions"] == 2.0


def test_keys_stay_as_they_are_and_titles_do_not_count():
    # outcomes lie on file under these keys
    assert Unit(PoolDraw(4), 0, SIA).key == (
        '{"forecasts": "registry", "kind": "pools", "locality": false, "policy": "sia", "queues": 4, "seed": 0, '
        '"set": {}}'
    )
    assert Unit(Synthetic("base", 600.0), 2, potential.MILP).key == (
        '{"days": 3.0, "forecasts": "oracle", "grid_s": 600.0, "kind": "synthetic", "policy": "milp", "seed": 2, '
        '"set": {"exact": "true", "grid_s": "600", "time_limit_s": "30"}, "variant": "base"}'
    )
    assert Unit(FEW, 0, Row("another title", "mmfs")).key == Unit(FEW, 0, MMFS).key
    settings = [Unit(FEW, 0, row).key for row in (SIA, SIA_EXACT, SIA_RANDOM, SIA_RANDOM_ARRIVALS)]
    assert len(set(settings)) == 4
    assert Unit(FEW, 1, MMFS).key != Unit(FEW, 0, MMFS).key


def test_a_draw_is_replayed_by_each_row_against_fcfs(tmp_path):
    rows = (MMFS, FCFS, SIA_VC, SSF)
    made = run_draw([Unit(FEW, 3, row) for row in rows], Path("nowhere"), tmp_path)
    assert [key for key, _ in made] == [Unit(FEW, 3, row).key for row in rows]
    of = {json.loads(key)["policy"]: outcome.figures for key, outcome in made}
    base = of["fcfs"]
    assert (base["jct_ratio"], base["speedup_gmean"], base["slowed_pct"], base["slowdown_max_min"]) == (1, 1, 0, 0)
    assert {figures["jobs"] for figures in of.values()} == {base["jobs"]}
    assert of["sia_vc"]["slowed_pct"] == 0.0  # SIA, section 5.1
    assert of["sia_vc"]["speedup_gmean"] > 1.0
    assert of["mmfs"]["jct_ratio"] == pytest.approx(base["mean_jct_s"] / of["mmfs"]["mean_jct_s"])


def test_locality_is_replayed_on_servers(philly, tmp_path):
    rows = (SIA_EXACT, HIVED, FCFS)
    made = run_draw([Unit(PoolDraw(2, locality=True), 1, row) for row in rows], philly, tmp_path)
    exact, _, fcfs = (outcome.figures for _, outcome in made)
    assert fcfs["speedup_gmean"] == 1.0
    assert exact["slowed_pct"] == 0.0
