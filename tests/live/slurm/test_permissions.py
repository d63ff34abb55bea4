"""What each of Slurm's roles may do: docs/live-slurm.md asks for no more than what is needed."""

from collections.abc import Iterator

import pytest

from tests.live.slurm.conftest import ROLES
from tests.live.slurm.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]
USERS = {"None": "games"} | {level: user for user, level in ROLES.items()}
MODIFY = ("sacctmgr", "-i", "modify", "qos")
ACTIONS = {
    "read": (("squeue", "--json"), ("sacctmgr", "-nP", "show", "qos"), ("sacct", "-n", "--allusers", "-j", "{job}")),
    "move": (("scontrol", "update", "jobid={job}", "qos=lent_poola"), ("scontrol", "update", "jobid={job}", "nice=1")),
    "mark": (("scontrol", "update", "jobid={job}", "admincomment=jobcast"),),
    "limit": ((*MODIFY, "lent_poola", "set", "GrpTRES=gres/gpu=8"),),
    "preempt": ((*MODIFY, "poolb", "set", "preempt=lent_poola"),),
}


@pytest.fixture
def job(slurm: SlurmCluster) -> Iterator[str]:
    """A held job of another user, which a QOS with one GPU on lease could take."""
    slurm.run(*MODIFY, "lent_poola", "set", "GrpTRES=gres/gpu=1")
    job_id = slurm.sbatch("mail", "-H", "--gres=gpu:1", "-t", "1", "--wrap", "true")
    yield job_id
    slurm.run("scancel", job_id)
    slurm.run(*MODIFY, "lent_poola", "set", "GrpTRES=gres/gpu=0")
    slurm.run(*MODIFY, "poolb", "set", "preempt=")


@pytest.mark.parametrize(
    ("level", "allowed"),
    [("None", {"read"}), ("Operator", {"read", "move"}), ("Admin", {"read", "move", "mark", "limit", "preempt"})],
)
def test_a_role_may_do_what_the_page_says(slurm: SlurmCluster, job: str, level: str, allowed: set[str]):
    done = {
        name: [slurm.outcome(*(word.format(job=job) for word in one), user=USERS[level]) for one in commands]
        for name, commands in ACTIONS.items()
    }
    worked = {name for name, outcomes in done.items() if all(one.returncode == 0 for one in outcomes)}
    assert worked == allowed, done
