"""`jobcast advise` on a real Slurm: leases that start, end, go back and survive a kill."""

import json
import subprocess
import sys
import time

import pytest

from jobcast.live.advisor import Advisor
from jobcast.live.leases import leases_of
from jobcast.live.slurm import Slurm
from tests.live.slurm.calm_advisor import AdvisorProcess, calm_advisor
from tests.live.slurm.slurm_cluster import SlurmCluster, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]


@pytest.fixture
def there(slurm: SlurmCluster, monkeypatch):
    """The shared Slurm, as our own commands find it; what is left over is taken away."""
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    before = Slurm().qos()
    yield slurm
    slurm.run("scancel", "--user=mail")
    wait_until(lambda: not slurm.run("squeue", "-h", "-o", "%i").split(), "no job is there")
    for name, qos in before.items():
        if Slurm().qos()[name] != qos:
            Slurm().limit(name, qos.gpus)


def full(slurm: SlurmCluster, more: int = 2, run_s: int = 60) -> list[str]:
    """Pool b has as much running as it may, and jobs of 8 GPUs that wait; their ids."""
    jobs = [slurm.sbatch("mail", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", f"sleep {run_s}") for _ in range(2 + more)]
    for job in jobs[:2]:
        slurm.wait_for(job, "RUNNING")
    return jobs[2:]


def once(advisor: Advisor):
    snapshot = advisor.look(time.time())
    advice = advisor.advise(snapshot)
    return advice, advisor.carry_out(advice, snapshot)


def limit(pool: str) -> int | None:
    return Slurm().qos()[f"lent_{pool}"].gpus


def test_a_job_that_its_quota_holds_back_starts_on_a_lease(there, tmp_path):
    waiting = full(there)
    advisor = calm_advisor(tmp_path)
    advice, failed = once(advisor)
    assert ([one.what for one in advice.actions if one.do == "lend"], failed) == (waiting, [])
    for job in waiting:
        there.wait_for(job, "RUNNING")
    assert limit("poolb") == 16
    leases = leases_of(Slurm().look(time.time()), "account")
    assert [(one.job.job_id, one.pool, one.qos) for one in leases] == [(job, "poolb", "poolb") for job in waiting]
    # The lease is over: its limit falls.
    there.run("scancel", waiting[0])
    there.wait_for(waiting[0], "CANCELLED")
    once(advisor)
    assert limit("poolb") == 8


def test_undo_restores_limits_and_running_jobs_go_on(there, tmp_path):
    waiting = full(there, more=1)
    advisor = calm_advisor(tmp_path)
    once(advisor)
    there.wait_for(waiting[0], "RUNNING")
    assert calm_advisor(tmp_path).undo(time.time()) == ["lent_poolb: 0 GPUs again"]
    assert limit("poolb") == 0
    assert there.state(waiting[0]) == "RUNNING"


def test_leases_are_found_again_after_a_kill(there, tmp_path):
    jobs = full(there, more=2, run_s=20)
    process = AdvisorProcess(there, tmp_path)
    wait_until(lambda: there.state(jobs[0]) == "RUNNING", "a job runs on a lease")
    process.kill()
    assert limit("poolb") >= 8
    process.start()
    for job in jobs:
        there.wait_for(job, "COMPLETED")
    wait_until(lambda: limit("poolb") == 0, "limits fall")
    process.kill()


def test_the_command_looks_and_changes_nothing(there, tmp_path, monkeypatch):
    full(there)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path))
    out = tmp_path / "advice.jsonl"
    words = [sys.executable, "-m", "jobcast", "advise", "--slurm", "--once", "--json", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "would do: nothing" in done.stdout
    (figures,) = map(json.loads, out.read_text().splitlines())
    assert figures["pools"]["poolb"] == {"quota": 16, "held": 16, "on_lease": 0, "waiting_gpus": 16}
    assert figures["degraded"] == ["the registry cannot be asked (RegistryError)"]
    assert limit("poolb") == 0
