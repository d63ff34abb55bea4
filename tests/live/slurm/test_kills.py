"""The kills in short: two of each daemon that jobs hang on, and what would be a loss is found."""

import random

import pytest

from tests.live.slurm import kills
from tests.live.slurm.kills import JOBS, Toll, limits_of, reckon, submit, trial, victims
from tests.live.slurm.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]


@pytest.mark.parametrize("name", ["slurmctld", "slurmdbd"])
def test_a_daemon_that_is_killed_twice_loses_nothing(slurm: SlurmCluster, name: str):
    toll = trial(slurm, name, victims(slurm)[name], times=2, seed=3)
    assert (toll.kills, toll.jobs) == (2, 2 * JOBS)
    assert toll.nothing_lost, toll


def test_what_is_lost_and_what_is_changed_is_found(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch):
    # Nobody lowers the limit again, however long one waits.
    monkeypatch.setattr(kills, "ACCOUNTED_S", 5.0)
    change = ("sacctmgr", "-i", "modify", "qos", "lent_poola", "set")
    limits, job = limits_of(slurm), submit(slurm, random.Random(0))
    slurm.run("scancel", job)
    slurm.run(*change, "GrpTRES=gres/gpu=3")
    toll = Toll("none")
    try:
        reckon(slurm, toll, [job], limits)
    finally:
        slurm.run(*change, "GrpTRES=gres/gpu=0")
    assert toll.lost == [f"{job}: CANCELLED"]
    assert toll.limits_changed == ["lent_poola: gres/gpu=0, now gres/gpu=3"]
    assert not toll.nothing_lost
