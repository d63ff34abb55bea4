"""Slurm's commands: what they say is read, and what goes wrong is one line."""

import stat
from math import inf

import pytest

from jobcast.domain.errors import ClusterError
from jobcast.live.slurm import Node, Qos, Slurm, node_of
from tests.shared import refused, time_zone

SAYS = {
    "squeue": '{"jobs": []}',
    "sacctmgr": "normal|||0|\nvision|cpu=8,gres/gpu=16|lent_a,lent_b|100|x|y\nlent_vision|gres/gpu=0||10|lent\n",
    "scontrol": (
        "NodeName=n1 Arch=x State=MIXED ThreadsPerCore=1 CfgTRES=cpu=64,gres/gpu=8 AllocTRES=cpu=1,gres/gpu=3\n"
        "NodeName=n2 State=IDLE+DRAIN CfgTRES=cpu=64,gres/gpu=8 AllocTRES= Reason=x\n"
        "NodeName=n3 State=DOWN*+MAINTENANCE CfgTRES=cpu=64,gres/gpu=8 AllocTRES=gres/gpu=2\n"
        "NodeName=n4 State=IDLE+RESERVED CfgTRES=cpu=64,gres/gpu=8 AllocTRES=\n"
        "NodeName=cpu1 State=IDLE CfgTRES=cpu=64 AllocTRES=\n"
    ),
}


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Programs that say what is put for them, and write down how they were called."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(name, script):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> {tmp_path}/called\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    for name, said in SAYS.items():
        (tmp_path / f"{name}.out").write_text(said)
        put(name, f"cat {tmp_path}/{name}.out")
    put.called = tmp_path / "called"
    return put


def test_a_look(commands):
    seen = Slurm().look(5.0)
    vision, lent = Qos(16, ("lent_a", "lent_b"), 100, "x|y"), Qos(0, (), 10, "lent")
    assert seen.qos == {"normal": Qos(None), "vision": vision, "lent_vision": lent}
    nodes = {"n1": Node(8, 3, True), "n2": Node(8, 0, False), "n3": Node(8, 2, False), "n4": Node(8, 0, False)}
    assert seen.nodes == nodes
    assert (seen.gpus, seen.jobs) == (8 + 0 + 2, [])


def test_what_may_be_asked_of_a_node():
    told = {"Gres": "gpu:A100:8(S:0-1)", "CfgTRES": "gres/gpu=8", "Partitions": "gpu,short", "ActiveFeatures": "(null)"}
    assert node_of(told).names == {"gpu a100", "partition gpu", "partition short"}
    assert node_of({"CfgTRES": "gres/gpu=8"}).names == set()


@pytest.mark.parametrize(
    ("state", "up"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", True), ("MIXED+POWERING_UP", True), ("IDLE+POWERING_DOWN", False),
        ("IDLE+POWER_DOWN", False), ("DOWN+CLOUD+POWERED_DOWN", False), ("IDLE+DRAIN+POWERED_DOWN", False),
    ],
)  # fmt: skip
def test_jobs_start_on_a_node_that_was_powered_down(state, up):
    assert node_of({"State": state, "CfgTRES": "gres/gpu=8"}) == Node(8, 0, up)


def test_what_is_written_of_a_node_is_none_of_its_fields(commands):
    line = "NodeName=n1 State=IDLE+DRAIN CfgTRES=gres/gpu=8 AllocTRES=   Comment=x AllocTRES=gres/gpu=7"
    commands("scontrol", f"echo '{line} Reason=until State=IDLE again, CfgTRES=gres/gpu=4 [root@2026-11-28T17:00:00]'")
    assert Slurm().nodes() == {"n1": Node(8, 0, False)}


def test_slurm_is_asked_for_all_tasks_of_an_array_that_wait(commands):
    """By itself it cuts their numbers off after 64 characters."""
    known = '"job_id": 7, "array_job_id": 7, "job_state": "PENDING", "submit_time": 1'
    row = f'{{"jobs": [{{{known}, "array_task_string": "%s"}}]}}'
    whole, cut = row % "1,3,5,7", row % "1,3,..."
    commands("squeue", f"""[ "$SLURM_BITSTR_LEN" = 0 ] && echo '{whole}' || echo '{cut}'""")
    assert [job.job_id for job in Slurm().queue()] == ["7_1", "7_3", "7_5", "7_7"]


@pytest.mark.parametrize(("kind", "may"), [("preempt/qos", True), ("preempt/none", False), ("preempt/qosx", False)])
def test_whether_a_qos_may_stop_jobs_of_another(commands, kind, may):
    commands("scontrol", f"printf 'PreemptMode             = REQUEUE\nPreemptType             = {kind}\n'")
    assert Slurm().stops_by_qos() == may


@pytest.mark.parametrize(("limit_s", "told"), [(inf, "UNLIMITED"), (3600.0, "60"), (1.0, "1")])
def test_time_limits_are_whole_minutes_or_none(commands, limit_s, told):
    Slurm().move("7", "vision", "", limit_s)
    assert commands.called.read_text().splitlines()[-1] == f"TimeLimit={told}"


def test_what_is_done_is_words_never_a_shell(commands):
    Slurm().move("7", "lent_vision", "note $(touch no); | jobcast lease=x", 61.0)
    Slurm().limit("lent_vision", None, "lent; $(touch no)")
    Slurm().preempts("vision", ["lent_a", "lent_b"], "")
    assert commands.called.read_text().splitlines() == [
        "update", "jobid=7", "qos=lent_vision", "admincomment=note $(touch no); | jobcast lease=x", "TimeLimit=2",
        "-i", "modify", "qos", "lent_vision", "set", "GrpTRES=gres/gpu=-1", "Description=lent; $(touch no)",
        "-i", "modify", "qos", "vision", "set", "Preempt=lent_a,lent_b", "Description=",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "match"),
    [
        ("echo 'no rights' >&2; exit 1", "squeue --json: Slurm says: no rights"),
        ("exit 3", "exit code 3"),
        ("echo '{'", "no whole JSON"),
        ("exec sleep 5", r"no answer within 0\.2 s"),
    ],
)
def test_what_goes_wrong_is_one_line(commands, script, match):
    commands("squeue", script)
    refused(ClusterError, match, Slurm(timeout_s=0.2).queue)


HEAD = "JobID|User|Account|Partition|QOS|JobName|State|Submit|Start|End|ElapsedRaw|AllocTRES|ReqTRES|Timelimit"


def test_a_history_without_jobs(commands, tmp_path):
    """A new cluster, and one on which all were cancelled while they waited."""
    row = "7|ada|p|gpu|p|t|CANCELLED|1700000000|Unknown|1700000060|0||cpu=1,gres/gpu=8|60"
    for rows in ((HEAD,), (HEAD, row)):
        commands("sacct", "\n".join(f"echo '{one}'" for one in rows))
        assert Slurm().history(0.0, "account") is None
    commands("sacct", "echo 'no|table'")
    refused(ClusterError, "sacct", Slurm().history, 0.0, "account")


@pytest.mark.parametrize("from_s", [1_792_887_300.5, 1_792_890_900.0])
def test_the_accounting_is_asked_for_an_instant_not_for_a_time_of_day(commands, from_s):
    """02:15 in Berlin on 25 October 2026, in summer time (00:15 UTC) and an hour later, when summer time has ended."""
    commands("sacct", f"echo '{HEAD}'")
    with time_zone("Europe/Berlin"):
        assert Slurm().history(from_s, "account") is None
    (since,) = [word for word in commands.called.read_text().split() if word.startswith("--starttime=")]
    assert since == f"--starttime=uts{int(from_s)}"


AS_SLURM_DOES = """for one in "$@"; do case $one in --delimiter=*) mark=${one#*=};; esac; done
LC_ALL=C sed "s/@@/$mark/g" "$0.out"
"""


def test_no_name_of_a_job_makes_the_cluster_unreadable(commands, tmp_path):
    """Names are bytes: bars, line breaks, whole rows of other jobs, what is no UTF-8."""
    head = HEAD.encode()
    row = b"%d|ada|vision|gpu|q|%b|COMPLETED|1700000000|1700000010|1700000070|60|gres/gpu=1|gres/gpu=1|1-00:00:00"
    forged = row % (9, b"forged")
    names = [b"plain", b"a|b\nc", b"x\r\n" + b"|" * 15 + b"y", b"n\n" + forged, b"\xff|\x1fz"]
    rows = [row.replace(b"|", b"@@") % (number, name) for number, name in enumerate(names, 1)]
    (tmp_path / "sacct.out").write_bytes(b"\n".join([head.replace(b"|", b"@@"), *rows, b""]))
    commands("sacct", AS_SLURM_DOES)
    past = Slurm().history(0.0, "account")
    assert past.jobs["job_id"].to_list() == ["1", "2", "3", "4", "5"]
    assert past.jobs["tag"].to_list() == ["plain", "a|b c", f"x {'|' * 15}y", f"n {forged.decode()}", "\ufffd| z"]
    (tmp_path / "squeue.out").write_bytes(
        b'{"jobs": [{"job_id": 7, "name": "\xff", "job_state": "RUNNING", "submit_time": 1700000000}]}'
    )
    assert [(job.job_id, job.name) for job in Slurm().queue()] == [("7", "\ufffd")]
