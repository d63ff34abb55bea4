"""The Slurm of the tests: it runs jobs under quotas, and survives the restart of each daemon."""

import os
import time
from pathlib import Path

import pytest

from jobcast.live.slurm import Slurm
from tests.live.slurm import slurm_cluster
from tests.live.slurm.slurm_cluster import SAVED_S, SlurmCluster, available, wait_until
from tests.shared import refused, time_zone

DAEMONS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd-n1", "slurmrestd")
alone = pytest.mark.xdist_group("slurm")


def sleeping(slurm: SlurmCluster, user: str, seconds: float, *options: str) -> str:
    return slurm.sbatch(user, "-t", "10", *options, "--wrap", f"sleep {seconds}")


def test_it_is_told_what_lacks(monkeypatch):
    monkeypatch.setattr(slurm_cluster, "PATH", "")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "slurmctld" in available()
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert "root" in available()


def test_a_folder_that_users_cannot_enter_is_refused(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    cluster = SlurmCluster(closed)
    refused(AssertionError, r"chmod o\+x", cluster.start)


@alone
@pytest.mark.slow
def test_the_accounting_is_read_in_the_hour_that_comes_twice(slurm: SlurmCluster, monkeypatch):
    """Summer time ended ten minutes ago: half an hour ago was a time of day that is still to come."""
    job = sleeping(slurm, "mail", 1, "--gres=gpu:8")
    slurm.wait_for(job, "COMPLETED")
    asked_s, ended = time.time() - 1_800.0, time.gmtime(time.time() - 600.0 + 3_600.0)
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    rules = f"WIN0SUM-1,M3.1.0,{ended.tm_yday - 1}/{ended.tm_hour}:{ended.tm_min}"

    def accounted() -> bool:
        past = Slurm().history(asked_s, "account")
        return past is not None and job in past.jobs["job_id"].to_list()

    with time_zone(rules):
        assert (time.localtime(asked_s).tm_isdst, time.localtime().tm_isdst) == (1, 0)
        wait_until(accounted, "the job is in the accounts")


@alone
@pytest.mark.slow
@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("how", ["killed", "asked"])
def test_a_daemon_that_comes_back_loses_no_job(slurm: SlurmCluster, daemon: str, how: str):
    running, waiting = sleeping(slurm, "mail", 8, "--gres=gpu:8"), sleeping(slurm, "news", 1, "--begin=now+9")
    slurm.wait_for(running, "RUNNING")
    before = slurm.pid(daemon)
    if daemon == "slurmctld":
        time.sleep(SAVED_S)
    if how == "killed":
        slurm.kill(daemon)
        assert not Path(f"/proc/{before}").exists()
    slurm.restart(daemon)
    assert slurm.pid(daemon) != before
    for job in (running, waiting):
        slurm.wait_for(job, "COMPLETED")


@alone
@pytest.mark.slow
def test_nothing_is_left_running(slurm_home: Path):
    if available():
        pytest.skip(available())
    cluster = SlurmCluster(slurm_home / "left", nodes=1)
    cluster.start()
    job = sleeping(cluster, "mail", 300)
    cluster.wait_for(job, "RUNNING")
    pids = [cluster.pid(name) for name in cluster.daemons]
    cluster.kill("slurmd-n1")
    assert cluster.leftovers()
    cluster.stop()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not cluster.leftovers()
