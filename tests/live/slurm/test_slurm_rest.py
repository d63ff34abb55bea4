"""What slurmrestd tells of a real Slurm is what Slurm's commands tell; a token that does not count is told."""

import time
from dataclasses import replace

import pytest

from jobcast.domain.errors import ClusterError
from jobcast.live.slurm import Slurm
from jobcast.live.slurm_rest import SlurmRest
from tests.live.slurm.slurm_cluster import SlurmCluster, wait_until
from tests.shared import refused

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]


def told(cluster: Slurm) -> list[str]:
    """Jobs but for the reasons of those that wait, which come and go; as text, since NaN equals nothing."""
    return [repr(replace(job, reason="")) for job in cluster.queue()]


def in_accounts(cluster: Slurm, job_id: str) -> list[tuple]:
    """Rows of a job that has ended, of the last hour; none as long as a part of it is not there."""
    history = cluster.history(time.time() - 3_600.0, "account")
    return [] if history is None else history.jobs.filter(job_id=job_id)["job_id", "pool", "gpus", "user"].rows()


def test_slurmrestd_tells_what_the_commands_tell(slurm: SlurmCluster, tmp_path, monkeypatch):
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    token = tmp_path / "token"
    token.write_text(slurm.run("scontrol", "token", "username=root"))
    rest, commands = SlurmRest(slurm.rest, token), Slurm()
    over = slurm.sbatch("mail", "--gres=gpu:2", "-c1", "-t", "5", "--wrap", "sleep 2")
    slurm.wait_for(over, "COMPLETED")
    jobs = [slurm.sbatch("mail", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", "sleep 60") for _ in range(3)]
    try:
        slurm.wait_for(jobs[1], "RUNNING")
        assert {job.job_id for job in rest.queue()} >= {over, *jobs}
        assert told(rest) == told(commands)
        assert (rest.qos(), rest.nodes()) == (commands.qos(), commands.nodes())
        # slurmctld tells the accounting of a job part by part, the later the longer the database was away.
        for one in (rest, commands):
            wait_until(
                lambda one=one: in_accounts(one, over) == [(over, "poolb", 2, "mail")], "the job is in the accounts"
            )
        token.write_text("SLURM_JWT=" + "x" * 40)
        refused(ClusterError, "holds no token", rest.queue)
        refused(ClusterError, "answers with status", SlurmRest(slurm.rest).queue)
    finally:
        slurm.run("scancel", "--user=mail")
        for job in jobs:
            slurm.wait_for(job, "CANCELLED")
