"""What no schedule can beat, by hand, and the page of large clusters on a few jobs."""

import csv
from dataclasses import replace

import pytest

from jobcast.schedulers.policies import RoundMechanism
from papers.shockwave import large_clusters
from papers.shockwave.__main__ import PAPER
from papers.shockwave.workloads import drawn, resampled
from tests.schedulers.rounds_driver import gangs

ROUNDS = RoundMechanism(round_s=120.0, restart_s=20.0)


def scenario_of(traces, rows, gpus):
    return replace(drawn(traces, 0, jobs=2, gpus=8), workload=gangs(rows, gpus))


@pytest.mark.parametrize(
    ("rows", "gpus", "plain_s", "rounds_s"),
    [
        # Alone: 5 + 100 s; a start and 100 s are a round, which begins at 120 s where a round has begun at 0.
        ([(0, 10, 1), (5, 100, 1)], 4, 105.0, 120.0),
        # 4 x 100 s on two GPUs: 200 s; two rounds, the second of which may end as soon as it has begun.
        ([(0, 100, 1)] * 4, 2, 200.0, 120.0),
        # From 600 s on 4 x 220 s on two GPUs arrive: 600 + 440 s; two rounds each, so that round 8 is begun.
        ([(0, 10, 1), *[(600, 220, 1)] * 4], 2, 1040.0, 960.0),
        # One GPU of four works until 480 s; from round 4 on a quarter of a round is left of it, and ten of all GPUs.
        ([(0, 480, 1), (480, 480, 4), (480, 480, 4)], 4, 1440.0, 1680.0),
    ],
)
def test_what_no_schedule_can_beat(traces, rows, gpus, plain_s, rounds_s):
    scenario = scenario_of(traces, rows, gpus)
    assert large_clusters.bound_s(scenario) == pytest.approx(plain_s)
    assert large_clusters.rounds_bound_s(scenario, ROUNDS) == pytest.approx(rounds_s)


def test_no_policy_is_below_them(traces, tmp_path, monkeypatch):
    for make in (drawn, resampled):

        def small(data, seed, rates, make=make, **_):
            return make(data, seed, rates, jobs=5, gpus=8)

        monkeypatch.setattr(large_clusters, make.__name__, small)
    monkeypatch.setattr(large_clusters, "LARGE", (460,))
    scenarios = large_clusters.workloads(traces)
    assert len(scenarios) == 3 + 3 + 2
    large_clusters.bounds(traces, PAPER.page("bounds", tmp_path))
    rows = list(csv.DictReader((tmp_path / "bounds.csv").open(newline="")))
    assert [row["case"] for row in rows] == [case for case in scenarios for _ in range(3)]
    for row in rows:
        scenario = scenarios[row["case"]]
        plain_s, rounds_s = large_clusters.bound_s(scenario), large_clusters.rounds_bound_s(scenario, RoundMechanism())
        assert float(row["makespan_s"]) >= max(plain_s, rounds_s)
    assert "| drawn: makespan / bound of rounds | at most 1.03 | 1." in (tmp_path / "bounds.md").read_text()
