"""`jobcast advise` on a real Slurm: leases that start, end, go back and survive a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.live.advice import advice_figures
from jobcast.live.advisor import Advisor
from jobcast.live.leases import leases_of, mark_of
from jobcast.live.slurm import Slurm
from tests.live.slurm.calm_advisor import calm_advisor
from tests.live.slurm.kills import unmarked_of
from tests.live.slurm.slurm_cluster import SlurmCluster, wait_until
from tests.shared import refused

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]


@pytest.fixture
def there(slurm: SlurmCluster, monkeypatch):
    """The shared Slurm, as our own commands find it; what is left over is taken away."""
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    before = Slurm().qos()
    yield slurm
    slurm.run("scancel", "--user=mail")
    slurm.run("scancel", "--user=games")
    wait_until(lambda: not slurm.run("squeue", "-h", "-o", "%i").split(), "no job is there")
    after = Slurm().qos()
    for name, qos in before.items():
        if after[name].preempts != qos.preempts:
            Slurm().preempts(name, qos.preempts, qos.told)
        if after[name] != qos:
            Slurm().limit(name, qos.gpus, qos.told)


def full(slurm: SlurmCluster, more: int = 2, run_s: int = 60) -> list[str]:
    """Pool b has as much running as it may, and jobs of 8 GPUs that wait, as Slurm has said why; their ids."""
    jobs = [slurm.sbatch("mail", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", f"sleep {run_s}") for _ in range(2 + more)]
    for job in jobs[:2]:
        slurm.wait_for(job, "RUNNING")
    for job in jobs[2:]:
        wait_until(lambda job=job: slurm.run("squeue", "-h", "-o", "%r", "-j", job).startswith("QOS"), f"{job} waits")
    return jobs[2:]


def once(advisor: Advisor):
    snapshot = advisor.look(time.time())
    advice = advisor.advise(snapshot)
    return advice, advisor.carry_out(advice, snapshot)


def told(advisor: Advisor):
    """A line of JSON, and what failed."""
    advice, failed = once(advisor)
    return json.loads(json.dumps(advice_figures(advice))), failed


def dying(slurm: SlurmCluster, home: Path, changes: int) -> int:
    """Exit code of an advisor that kills itself when it is about to change the cluster once more than so often."""
    words = [sys.executable, "-m", "tests.live.slurm.calm_advisor", str(home), "--die-after", str(changes)]
    return subprocess.run(words, env={**os.environ, **slurm.env}, capture_output=True, check=False).returncode


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


def test_an_owner_who_comes_back_has_its_gpus_and_what_was_lost_is_told(there, tmp_path):
    before, lent = Slurm().qos(), full(there)
    advisor = calm_advisor(tmp_path, preempt=True)
    once(advisor)
    for job in lent:
        there.wait_for(job, "RUNNING")
    once(advisor)
    owner = there.sbatch("games", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", "sleep 60")
    there.wait_for(owner, "RUNNING")
    figures, failed = told(advisor)
    (stopped,) = [job for job in lent if there.state(job) == "PENDING"]
    (back,) = [one for one in figures["actions"] if one["do"] == "return"]
    assert (back["job_id"], back["back_to"], failed) == (stopped, "poolb", [])
    assert back["why"] == "it was stopped, as by an owner, and waits again (BeginTime)"
    rows = there.run("sacct", "-nPXD", "-j", stopped, "--format=State,ElapsedRaw").split()
    # Slurm's accounts count whole seconds.
    (ran_s,) = [int(row.split("|")[1]) for row in rows if row.startswith("PREEMPTED")]
    lost = {"jobs": 1, "gpu_hours_lost": pytest.approx(8 * ran_s / 3_600.0, abs=8 * 1.5 / 3_600.0)}
    assert figures["stopped_7d"] == lost
    figures, _ = told(advisor)
    assert [one["job_id"] for one in figures["leases"]] == [job for job in lent if job != stopped]
    assert (figures["actions"], figures["stopped_7d"], limit("poolb")) == ([], lost, 8)
    (job,) = [one for one in Slurm().queue() if one.job_id == stopped]
    assert (job.qos, job.mark) == ("poolb", "")
    # Another home has seen none of it, and puts all of it back.
    calm_advisor(tmp_path / "other").undo(time.time())
    assert Slurm().qos() == before


def test_what_may_be_on_lease_is_never_exceeded_by_several_grants_of_a_round(there, tmp_path):
    full(there, more=0)
    jobs = [there.sbatch("mail", "--gres=gpu:3", "-c1", "-t", "5", "--wrap", "sleep 60") for _ in range(4)]
    advisor = calm_advisor(tmp_path, max_lent=7)
    advice, failed = once(advisor)
    assert ([one.what for one in advice.actions if one.do == "lend"], failed) == (jobs[:2], [])
    for job in jobs[:2]:
        there.wait_for(job, "RUNNING")
    advice, _ = once(advisor)
    assert (advice.actions, limit("poolb")) == ([], 6)
    assert dict(advice.left) == dict.fromkeys(jobs[2:], "its pool would have more than 7 GPUs on lease")


def test_an_advisor_that_dies_in_the_middle_leaves_what_the_next_one_finds(there, tmp_path):
    """Killed when it has raised the limit and kept its intent, and when it has moved one job of two."""
    before, jobs = Slurm().qos(), full(there)
    for moved in ([], jobs[:1]):
        # What is changed first is the limit; by the second one it was raised before.
        assert dying(there, tmp_path, changes=1) == -signal.SIGKILL
        queue = {one.job_id: one for one in Slurm().queue()}
        assert [job for job in jobs if queue[job].qos == "lent_poolb" and mark_of(queue[job].mark)] == moved
        assert limit("poolb") == 16
        assert not unmarked_of(there)
    # A second one, of another home, is refused still.
    refused(ConfigError, "another advisor", once, calm_advisor(tmp_path / "other"))
    once(calm_advisor(tmp_path))
    for job in jobs:
        there.wait_for(job, "RUNNING")
    assert {one.job.job_id for one in leases_of(Slurm().look(time.time()), "account")} == set(jobs)
    there.run("scancel", *jobs)
    for job in jobs:
        there.wait_for(job, "CANCELLED")
    once(calm_advisor(tmp_path))
    assert limit("poolb") == 0
    calm_advisor(tmp_path).undo(time.time())
    assert Slurm().qos() == before


def test_tasks_of_an_array_have_leases_that_they_start_on(there, tmp_path):
    """Of those that may run one at a time; with the Priority of its pool's own QOS above, Slurm would start none."""
    full(there, more=0)
    array = there.sbatch("mail", "--gres=gpu:4", "-c1", "-t", "5", "--array=0-2%1", "--wrap", "sleep 60")
    advisor = calm_advisor(tmp_path)
    advice, _ = once(advisor)
    assert [one.what for one in advice.actions] == []
    assert dict(advice.left)[f"{array}_0"].startswith("Slurm tries tasks of its array in poolb first")
    try:
        there.run("sacctmgr", "-i", "modify", "qos", "lent_poolb", "set", "Priority=100")
        advice, _ = once(advisor)
        assert [one.what for one in advice.actions if one.do == "lend"] == [f"{array}_0"]
        there.wait_for(f"{array}_0", "RUNNING")
        assert once(advisor)[0].actions == []
    finally:
        there.run("sacctmgr", "-i", "modify", "qos", "lent_poolb", "set", "Priority=10")


def of_two_parts(slurm: SlurmCluster) -> str:
    """Id of a job of two parts of 8 GPUs each."""
    part = ("--gres=gpu:8", "-c1", "-t", "5")
    words = ("sbatch", "--parsable", "-o", "/dev/null", *part, ":", *part, "--wrap", "sleep 60")
    return slurm.run(*words, user="mail").strip()


def test_a_job_of_several_parts_has_leases_for_all_of_them_or_for_none(there, tmp_path):
    """Slurm starts all parts at once or none, each within the limit of its own QOS."""
    full(there, more=0)
    owner = there.sbatch("games", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", "sleep 60")
    there.wait_for(owner, "RUNNING")
    job = of_two_parts(there)
    parts = f"{job}+0", f"{job}+1"

    def reasons() -> set[str]:
        return {one.reason for one in Slurm().queue() if one.job_id in parts}

    wait_until(lambda: reasons() == {"QOSGrpGRES"}, "the quota holds both parts")
    behind = there.sbatch("mail", "--gres=gpu:8", "-c1", "-t", "5", "--wrap", "sleep 60")
    wait_until(lambda: {one.reason for one in Slurm().queue() if one.job_id == behind} == {"QOSGrpGRES"}, "it waits")
    advisor = calm_advisor(tmp_path)
    advice, failed = once(advisor)
    assert failed == []
    # 8 GPUs are idle: of no use to one part alone, but to who is behind it.
    assert [action.what for action in advice.actions if action.do == "lend"] == [behind]
    there.wait_for(behind, "RUNNING", within_s=20.0)
    there.run("scancel", owner, behind)
    for one in (owner, behind):
        there.wait_for(one, "CANCELLED")
    advice, failed = once(advisor)
    assert failed == []
    assert [action.what for action in advice.actions if action.do == "lend"] == [*parts]
    wait_until(lambda: {one.state for one in Slurm().queue() if one.job_id in parts} == {"RUNNING"}, "both parts run")


def test_the_command_looks_and_changes_nothing(there, tmp_path, monkeypatch):
    full(there)
    monkeypatch.setenv("JOBCAST_HOME", str(tmp_path))
    out = tmp_path / "advice.jsonl"
    words = [sys.executable, "-m", "jobcast", "advise", "--slurm", "--once", "--json", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "would do: nothing" in done.stdout
    (figures,) = map(json.loads, out.read_text().splitlines())
    assert figures["pools"]["poolb"] == {"quota": 16, "held": 16, "on_lease": 0, "waiting_gpus": 16}
    assert figures["degraded"] == ["the registry has no champion that could answer (RegistryError)"]
    assert limit("poolb") == 0
