"""The Lua hooks: what they ask and print, in an interpreter and in a real sbatch; what a bad server costs."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from tests.live.slurm.calm_advisor import OurProcess
from tests.live.slurm.conftest import HOOKS, ROLES
from tests.live.slurm.slurm_cluster import HOST, SlurmCluster, free_ports, wait_until

alone = pytest.mark.xdist_group("slurm")
LUA = next((path for name in ("lua5.1", "lua5.3", "lua5.4", "lua") if (path := shutil.which(name))), None)
interpreted = pytest.mark.skipif(not (LUA and shutil.which("curl")), reason="needs a Lua interpreter and curl")
OPERATOR = next(user for user, level in ROLES.items() if level == "Operator")
MOST_S = 0.5
"""That a hook may add to a submission."""
SUBMITTING = """
slurm = { SUCCESS = 0 }
dofile(arg[1])
for number = 3, #arg do
  local options = { type = "sbatch", quiet = "0" }
  for name, value in arg[number]:gmatch("([^=;]+)=([^;]*)") do options[name] = value end
  assert(slurm_cli_pre_submit(options, number - 3) == 0)
end
for number = 3, #arg do assert(slurm_cli_post_submit(number - 3, tonumber(arg[2]), 4294967294) == 0) end
"""
CONTROLLING = """
slurm = { SUCCESS = 0, ESLURM_ACCESS_DENIED = 1, log_user = function(form, ...) print(string.format(form, ...)) end }
dofile(arg[1])
assert(slurm_job_submit({ account = arg[2], default_account = "usual" }, {}, 0) == 0)
assert(slurm_job_submit({ qos = "Lent_vision" }, {}, 0) == 1)
assert(slurm_job_modify({}, { user_id = 7 }, {}, 7) == 0)
assert(slurm_job_modify({ qos = "lent_vision" }, { user_id = 7 }, {}, 7) == 1)
assert(slurm_job_modify({ qos = "lent_vision" }, { user_id = 7 }, {}, 8) == 0)
assert(slurm_job_modify({ qos = "vision" }, { user_id = 7 }, {}, 7) == 0)
"""


@dataclass
class Asked:
    """A server of the test: what it answers by path, and what it was asked."""

    port: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    before: Callable[[BaseHTTPRequestHandler], None] = lambda handler: None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


class Handler(BaseHTTPRequestHandler):
    def __init__(self, asked: Asked, *args: object) -> None:
        self.asked = asked
        super().__init__(*args)

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.asked.requests.append((self.path, body, self.headers.get("Authorization", "")))
        self.asked.before(self)
        answer = self.asked.answers.get(self.path)
        self.send_response(404 if answer is None else 200)
        self.end_headers()
        self.wfile.write((answer or "").encode())

    do_POST = do_GET  # noqa: N815

    def log_message(self, *args):
        """Says nothing."""

    def handle(self):
        try:
            super().handle()
        except OSError:  # who asked has gone
            self.close_connection = True


@contextmanager
def serving(at: str = "", **about) -> Iterator[Asked]:
    """A server on a port that is free, or at the file of a socket."""
    asked = Asked(**about)
    made = partial(ThreadingUnixStreamServer, at) if at else partial(ThreadingHTTPServer, (HOST, 0))
    with made(partial(Handler, asked)) as server:
        server.daemon_threads = True
        asked.port = 1 if at else server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield asked
        server.shutdown()


def hanging(seconds: float = 5.0) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: time.sleep(seconds)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(50):
        handler.wfile.write(b"x")
        time.sleep(0.1)


def babbling(handler: BaseHTTPRequestHandler) -> None:
    """What is no HTTP, without end."""
    while True:
        handler.wfile.write(os.urandom(4096))


def flooding(handler: BaseHTTPRequestHandler) -> None:
    """An answer without end, and without an end of a line."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(os.urandom(4096).replace(b"\n", b"x"))


def submit(tmp_path: Path, *components: str, job_id: str = "33", **environ: str) -> str:
    """What the hook says to who submits; components are `option=value;option=value`."""
    script = tmp_path / "submitting.lua"
    script.write_text(SUBMITTING)
    whole = {"PATH": os.environ["PATH"], "JOBCAST_HOOK_CONF": str(tmp_path / "hook.conf"), **environ}
    command = [LUA, str(script), str(HOOKS / "cli_filter.lua"), job_id, *components]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=whole, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr


def control(tmp_path: Path, account: str) -> str:
    script = tmp_path / "controlling.lua"
    script.write_text(CONTROLLING)
    environ = {"JOBCAST_TOLD_FILE": str(tmp_path / "told")}
    command = [LUA, str(script), str(HOOKS / "job_submit.lua"), *([account] if account else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environ, check=True)
    said = done.stdout.splitlines(keepends=True)
    assert [line for line in said if "not asked for" in line] == said[-2:]
    return "".join(said[:-2])


@interpreted
def test_a_known_job_is_told_in_one_line(tmp_path):
    with serving(answers={"/v1/jobs/33/eta?format=hook": "job 33: starts 14:10\nsecond\n"}) as asked:
        assert submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url) == "jobcast: job 33: starts 14:10\n"
        assert [path for path, _, _ in asked.requests] == ["/v1/jobs/33/eta?format=hook"]


@interpreted
@pytest.mark.parametrize(
    ("options", "question"),
    [
        ("gpus=4", {"pool": "poolb", "gpus": 4}),
        ("gpus=a100:4,h100:2;time=00:10:00", {"pool": "poolb", "gpus": 6, "time_limit_s": 600}),
        ("gres=gres:gpu:8;nodes=2-3;time=1-02:03:04", {"pool": "poolb", "gpus": 16, "time_limit_s": 93784}),
        ("gres=gres:gpu:a100:2,gres:shard:9;nodes=1-0", {"pool": "poolb", "gpus": 2}),
        ("gres=gres/gpu=3", {"pool": "poolb", "gpus": 3}),
        ("gres=gres:gpu", {"pool": "poolb", "gpus": 1}),
        ("gpus-per-node=a100:2;nodes=4", {"pool": "poolb", "gpus": 8}),
        ("gpus-per-task=2;ntasks=3", {"pool": "poolb", "gpus": 6}),
        ("gpus=1;time=2982616-04:14:00", {"pool": "poolb", "gpus": 1}),
    ],
)
def test_of_a_job_that_is_not_known_yet_one_like_it_is_asked(tmp_path, options, question):
    with serving(answers={"/v1/eta?format=hook": "starts 14:10\n"}) as asked:
        assert submit(tmp_path, f"account=poolb;{options}", JOBCAST_URL=asked.url) == "jobcast: starts 14:10\n"
        (_, _, _), (path, body, _) = asked.requests
        assert (path, json.loads(body)) == ("/v1/eta?format=hook", question)


@interpreted
@pytest.mark.parametrize(
    "components",
    [
        ("gpus=4",),  # no pool is named
        ("account=poolb;gres=gres:shard:4",),
        ("account=poo\"l$(touch evil)`touch evil`'b;gpus=4",),
        ("account=poolb;gpus=1", "account=poolb;gpus=1"),  # a heterogeneous job has no width
        ("account=poolb;gpus=1;hold=set",),  # what waits for something else starts later than one like it
        ("account=poolb;gpus=1;hold=unset;begin=2026-11-27T05:57:13",),
        ("account=poolb;gpus=1;begin=Unknown;dependency=afterok:7",),
    ],
)
def test_what_has_no_pool_or_width_is_asked_by_its_id_alone(tmp_path, components):
    with serving() as asked:
        assert submit(tmp_path, *components, JOBCAST_URL=asked.url) == ""
        assert [path for path, _, _ in asked.requests] == ["/v1/jobs/33/eta?format=hook"]
    assert not list(tmp_path.glob("**/evil"))


@interpreted
@pytest.mark.parametrize("option", ["type=srun", "type=salloc", "quiet=1", "quiet=set"])
def test_nobody_is_asked_where_nobody_reads(tmp_path, option):
    with serving() as asked:
        assert submit(tmp_path, f"account=poolb;gpus=4;{option}", JOBCAST_URL=asked.url) == ""
        assert asked.requests == []


@interpreted
def test_settings_come_from_the_file_and_over_them_from_the_environment(tmp_path):
    (tmp_path / "token").write_text("a-token-of-the-role-read\n")
    (tmp_path / "mine").write_text("my-own-token\n")
    with serving(answers={"/v1/jobs/33/eta?format=hook": "soon\n"}) as asked:
        told = f"# to ask\nurl = {asked.url}\ntoken_file={tmp_path}/token\npool_by = partition\n"
        (tmp_path / "hook.conf").write_text(told)
        assert submit(tmp_path, "gpus=4") == "jobcast: soon\n"
        submit(tmp_path, "gpus=4", JOBCAST_TOKEN_FILE=str(tmp_path / "mine"))
        assert submit(tmp_path, "gpus=4", JOBCAST_URL="") == ""
        assert [token for _, _, token in asked.requests] == ["Bearer a-token-of-the-role-read", "Bearer my-own-token"]
        asked.answers = {}
        submit(tmp_path, "account=poola;partition=poolb;gpus=4")
        assert json.loads(asked.requests[-1][1]) == {"pool": "poolb", "gpus": 4}


@interpreted
def test_a_server_may_listen_on_a_socket(tmp_path):
    path = str(tmp_path / "serve.sock")
    with serving(path, answers={"/v1/jobs/33/eta?format=hook": "soon\n"}) as asked:
        assert submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url, JOBCAST_SOCKET=path) == "jobcast: soon\n"
        assert submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url) == ""


@interpreted
def test_settings_that_would_be_commands_are_none(tmp_path):
    with serving() as asked:
        for url in (f"{asked.url}/$(touch evil)", f"{asked.url}' ; touch evil ; '", "-o evil", "file:///etc/passwd"):
            assert submit(tmp_path, "gpus=4", JOBCAST_URL=url) == ""
        submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url, JOBCAST_TOKEN_FILE="/x'; touch evil; '")
        submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url, JOBCAST_TOKEN_FILE=str(tmp_path / "none"))
    assert not list(tmp_path.glob("**/evil*"))


@interpreted
def test_an_answer_is_text_and_nothing_else(tmp_path):
    told = "\x1b[2J$(touch evil) `touch evil` %s %n \u009b31m café\n"
    with serving(answers={"/v1/jobs/33/eta?format=hook": told}) as asked:
        said = submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url)
    assert said == "jobcast: ?[2J$(touch evil) `touch evil` %s %n ?31m café\n"
    assert not list(tmp_path.glob("**/evil"))


@interpreted
@pytest.mark.parametrize("told", ["no end of line", "x" * 10_000 + "\n", ""])
def test_an_answer_that_is_cut_or_empty_is_none(tmp_path, told):
    with serving(answers={"/v1/jobs/33/eta?format=hook": told}) as asked:
        assert submit(tmp_path, "gpus=4", JOBCAST_URL=asked.url) == ""


@interpreted
@pytest.mark.parametrize("before", [hanging(), dripping, babbling, flooding])
def test_a_server_that_is_slow_or_no_server_of_ours_costs_half_a_second(tmp_path, before):
    def took(**environ: str) -> float:
        start = time.monotonic()
        assert submit(tmp_path, "account=poolb;gpus=4", **environ) == ""
        return time.monotonic() - start

    with serving(before=before) as asked:
        without_s = min(took(JOBCAST_URL="") for _ in range(3))
        assert min(took(JOBCAST_URL=asked.url) for _ in range(3)) - without_s <= MOST_S


@interpreted
def test_the_controller_tells_what_its_file_says_of_the_pool(tmp_path):
    told, later = tmp_path / "told", int(time.time()) + 60
    assert control(tmp_path, "vision") == ""
    told.write_text(f"until {later}\nvision 8 GPUs: %s $(x) \x1b[2J\nusual soon\n")
    assert control(tmp_path, "vision") == "jobcast: 8 GPUs: %s $(x) ?[2J\n"
    assert control(tmp_path, "") == "jobcast: soon\n"
    assert control(tmp_path, "until") == control(tmp_path, ".*") == ""
    told.write_text(f"until {later - 120}\nvision too old\n")
    assert control(tmp_path, "vision") == ""
    told.write_text("vision no end\n")
    assert control(tmp_path, "vision") == ""
    told.write_bytes(b"\xff\x00" * 100_000)
    assert control(tmp_path, "vision") == ""


def sbatch(slurm: SlurmCluster, *options: str, **environ: str) -> tuple[float, str, str]:
    """Seconds, the job's id and what the submitter read."""
    start = time.monotonic()
    command = ("sbatch", "--parsable", "-o", "/dev/null", "-t", "10", "--gres=gpu:2", *options, "--wrap", "sleep 60")
    done = slurm.outcome(*command, user="mail", environ=environ)
    took_s = time.monotonic() - start
    assert done.returncode == 0, done.stderr
    slurm.run("scancel", done.stdout.strip())
    return took_s, done.stdout.strip(), done.stderr


@alone
@pytest.mark.slow
def test_sbatch_says_what_the_server_says(slurm: SlurmCluster):
    with serving() as asked:
        assert sbatch(slurm, JOBCAST_URL=asked.url)[2] == ""
        asked.answers = {"/v1/eta?format=hook": "a job like it starts 14:10\n"}
        _, job, said = sbatch(slurm, "-A", "poolb", JOBCAST_URL=asked.url)
        assert said == "jobcast: a job like it starts 14:10\n"
        assert asked.requests[-2][0] == f"/v1/jobs/{job}/eta?format=hook"
        assert json.loads(asked.requests[-1][1]) == {"pool": "poolb", "gpus": 2, "time_limit_s": 600}


@alone
@pytest.mark.slow
@pytest.mark.parametrize("name", ["$(touch evil)", "`touch evil`", "a'; touch evil; '", 'new\nline"\t\x1b[2J', "ü%s%n"])
def test_a_jobs_name_is_text(slurm: SlurmCluster, name: str):
    with serving(answers={"/v1/eta?format=hook": f"{' '.join(name.split())}: soon\n"}) as asked:
        _, _, said = sbatch(slurm, "-J", name, "--comment", name, "-A", "poolb", JOBCAST_URL=asked.url)
    assert said.startswith("jobcast: ")
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert name not in "".join(path + body for path, body, _ in asked.requests)
    assert not list(slurm.home.glob("**/evil"))


@alone
@pytest.mark.slow
def test_the_controller_tells_who_submits(slurm: SlurmCluster):
    told = slurm.home / "run/told"
    told.write_text(f"until {int(time.time()) + 600}\npoola no\npoolb a job of 8 GPUs starts 14:10 %s $(x)\n")
    try:
        assert sbatch(slurm)[2] == "sbatch: jobcast: a job of 8 GPUs starts 14:10 %s $(x)\n"
    finally:
        told.unlink()
    assert sbatch(slurm)[2] == ""


@alone
@pytest.mark.slow
def test_users_put_no_job_on_lease(slurm: SlurmCluster):
    change = ("sacctmgr", "-i", "modify", "qos", "lent_poola", "set")
    slurm.run(*change, "GrpTRES=gres/gpu=8")
    try:
        refused = slurm.outcome("sbatch", "-H", "-q", "lent_poola", "--gres=gpu:1", "--wrap", "true", user="mail")
        assert refused.returncode != 0
        assert "is not asked for" in refused.stderr
        job = slurm.sbatch("mail", "-H", "--gres=gpu:1", "--wrap", "true")
        move = ("scontrol", "update", f"jobid={job}", "qos=lent_poola")
        assert slurm.outcome(*move, user="mail").returncode != 0
        assert slurm.outcome(*move, user=OPERATOR).returncode == 0
        slurm.run("scancel", job)
    finally:
        slurm.run(*change, "GrpTRES=gres/gpu=0")


@pytest.mark.slow
@alone
def test_a_server_writes_what_slurmctld_tells(slurm: SlurmCluster, registry):
    """It needs champions, and a job that has ended."""
    told, (port,) = slurm.home / "run/told", free_ports(1)
    slurm.wait_for(slurm.sbatch("mail", "--gres=gpu:1", "-c1", "-t", "1", "--wrap", "sleep 2"), "COMPLETED")
    words = ("serve", "--slurm", "--port", str(port), "--told", str(told))
    server = OurProcess(slurm, registry.home, "jobcast", *words)
    try:
        wait_until(told.exists, "something is told", 120.0)
        done = slurm.outcome("sbatch", "-o", "/dev/null", "-t", "1", "--wrap", "true", user="mail")
        assert "jobcast: as of " in done.stderr
        assert done.stderr.rstrip().endswith(": 16 of 16 GPUs are idle")
    finally:
        server.kill()
        told.unlink(missing_ok=True)
