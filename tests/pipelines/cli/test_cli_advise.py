"""`jobcast advise` and `jobcast trace live`: what is refused, in one line, and what is written."""

import re
import socket

import pytest
import uvicorn

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Grant
from jobcast.live.claims import alone
from jobcast.live.event_log import END, QUOTA, START, SUBMIT, Event, EventLog
from jobcast.pipelines.cli import advise
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.forecast_sources import Conservative
from jobcast.simulator.workload import Workload
from jobcast.traces.readers import read_trace

pytestmark = pytest.mark.usefixtures("untrained")
POOLS = ("--pools", "pools.csv")


@pytest.mark.parametrize("how", ["--apply", "--undo"])
def test_one_process_of_a_home_applies_or_undoes(shell, monkeypatch, tmp_path, how):
    monkeypatch.setenv("PATH", str(tmp_path))
    with alone(shell.home):
        line = shell.refuses("advise", "--slurm", how)
        assert "advise.lock: another `jobcast advise` of this home applies; end it" in line
        assert "squeue: not found" in shell.refuses("advise", "--slurm", "--once")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("advise",), "name the cluster; add --slurm"),
        (("advise", "--slurm", "--undo", "--once"), "--undo: goes alone"),
        (("advise", "--slurm", "--policy", "fcfs"), "policy fcfs lends nothing by forecasts of loads; choose from"),
        (("advise", "--slurm", "--policy", "nobody"), "nobody"),
        (("advise", "--slurm", "--once", "--set", "slack=2"), "slack"),
        (("advise", "--slurm", "--once"), "squeue: not found; run this on a machine with Slurm's commands"),
        (("advise", "--slurm", "--undo"), "squeue: not found"),
        (("advise", "--slurm", "--once", "--clock-start", "noon"), "--clock-start"),
        (("advise", "--slurm", "--once", "--json", "/nowhere/at/all.jsonl"), "cannot be written"),
        (("serve",), "knows no pools; add --slurm, or --pools FILE"),
        (("serve", "--slurm", *POOLS), "--slurm: Slurm tells the pools; leave --pools out"),
        (("serve", "--slurm-token-file", "x", *POOLS), "--slurm-token-file: goes with --slurm-rest"),
        (("serve", *POOLS, "--told", "/nowhere/told"), "--told /nowhere/told: its folder cannot be written to"),
        (("serve", *POOLS, "--socket", "/nowhere/s"), "--socket /nowhere/s: its folder is not there"),
        (("serve", "--slurm-rest", "ftp://x"), "--slurm-rest ftp://x: no address of slurmrestd"),
        (("serve", "--slurm-rest", "unix:/nowhere"), "slurmrestd: cannot be asked"),
        (("serve", "--slurm-rest", "http://127.0.0.1:1", "--slurm-token-file", "none"), "none: holds no token"),
        (("serve", "--slurm"), "squeue: not found; run this on a machine with Slurm's commands"),
    ],
)
def test_what_is_refused(shell, monkeypatch, tmp_path, words, told):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert told in shell.refuses(*words)


def test_serve_says_where_it_listens_and_refuses_an_address_or_a_certificate_that_is_no_use(shell, monkeypatch, csv):
    """Port 0 is any that is free: nobody else can tell which."""
    prompt = []

    def run(server, sockets):
        for door in sockets:
            # Without it the body of each answer waits for its head to be acknowledged, 40 ms.
            prompt.append(door.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            door.close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    csv("p,1", name="pools.csv", header="pool,gpus")
    pools = (*POOLS, "--port")
    told = shell.works("serve", *pools, 0).out
    assert re.fullmatch(r"listens on http://127\.0\.0\.1:[1-9]\d+\n", told)
    assert set(prompt) == {1}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in shell.refuses("serve", *pools, taken.getsockname()[1])
    assert "give PEM" in shell.refuses("serve", *pools, 0, "--tls-cert", "pools.csv", "--tls-key", "pools.csv")


def test_serve_refuses_a_home_in_which_it_can_keep_nothing(shell, monkeypatch, csv):
    csv("p,1", name="pools.csv", header="pool,gpus")
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: [door.close() for door in sockets])
    shell.home.mkdir(exist_ok=True)
    (shell.home / "live").touch()
    assert "live.sqlite: cannot be used as event log" in shell.refuses("serve", "--pools", "pools.csv", "--port", 0)


def test_serve_starts_while_a_slurm_that_it_knew_is_down(shell, monkeypatch, tmp_path):
    """A unit that ended with exit code 2 would stay down after Slurm is back."""
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: [door.close() for door in sockets])
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ("serve", "--slurm-rest", "unix:/nowhere", "--port", 0)
    assert "slurmrestd: cannot be asked" in shell.refuses(*words)
    EventLog(shell.home).append([Event(1.0, QUOTA, "vision", 1.0, {"gpus": 8})])
    done = shell.works(*words)
    assert "listens on http://127.0.0.1:" in done.out
    assert "goes on by what was known of the cluster: slurmrestd: cannot be asked" in done.err


def test_a_clock_of_its_own_goes_on_where_it_began(tmp_path, monkeypatch):
    log, now_s = EventLog(tmp_path), [5_000.0]
    monkeypatch.setattr(advise.time, "time", lambda: now_s[0])
    first = advise.clock_of(log, 24.0, "2024-03-05T08:00")
    now_s[0] += 60.0
    again = advise.clock_of(EventLog(tmp_path), 24.0, "2024-03-05T08:00")
    assert again == first
    assert again.model(5_060.0) == first.model_s + 24.0 * 60.0
    assert advise.clock_of(log, 12.0, "2024-03-05T08:00").from_s == 5_060.0
    assert advise.clock_of(log, 1.0, None).model(7.0) == 7.0


def test_what_was_seen_is_written_as_a_trace(shell, tmp_path):
    out = tmp_path / "seen.csv"
    assert "nothing was seen of a cluster yet" in shell.refuses("trace", "live", "--out", out)
    submitted = Event(1.0, SUBMIT, "7", 1.0, {"pool": "p", "gpus": 2, "user": "ada", "tag": "x"})
    EventLog(shell.home).append([submitted, Event(2.0, START, "7", 2.0), Event(90.5, END, "7", 62.0)])
    assert "1 job of" in shell.works("trace", "live", "--out", out).err
    trace = read_trace(out)
    assert (trace.submit_s[0], trace.duration_s[0], trace.known_s[0]) == (1.0, 60.0, 90.5)


@pytest.mark.parametrize(("settings", "started"), [({}, {1: Grant(1)}), ({"backfill": "false"}, {})])
def test_a_policy_beside_slurm_reckons_with_who_overtakes_in_a_quota(settings, started):
    """Slurm starts the narrow job of the two that wait by itself, and so does the policy, unless it is told not to."""
    pools = [Pool("p", 2), Pool("q", 2)]
    state = ClusterState(pools)
    for job in (Job(0, "wide", "p", 0.0, 3), Job(1, "narrow", "p", 1.0, 1)):
        state.submit(job, lane=0, key=0.0)
    policy = advise.lending_policy("sia", settings)(Conservative(Workload((), (), pools), (5, 60, 720)))
    assert policy.decide(state).change == started
