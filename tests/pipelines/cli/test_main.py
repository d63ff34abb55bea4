"""The command line itself: help, exit codes, one line an error, what is imported and what a closed pipe does."""

import os
import signal
import subprocess
import sys

import click
import pytest
from polars.exceptions import PanicException

import jobcast
from jobcast.domain.errors import DecisionError
from jobcast.pipelines.cli import main as command_line
from jobcast.pipelines.cli.main import COMMANDS, cli, main
from tests.shared import refused

pytestmark = pytest.mark.usefixtures("untrained")
HEAVY = ("mlflow", "polars", "sklearn", "lightgbm", "xgboost", "pandas", "numba", "matplotlib", "scipy")
"""What no help needs; settings of policies are models of pydantic, from which help is made."""


def all_commands() -> list[tuple[str, ...]]:
    """Every command and subcommand, the root first."""
    found: list[tuple[str, ...]] = [()]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        found.append((name,))
        found += [(name, sub) for sub in command.commands] if isinstance(command, click.Group) else []
    return found


def python(*words: str, stdout=subprocess.PIPE, **how) -> subprocess.CompletedProcess:
    said = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True}
    return subprocess.run([sys.executable, *words], timeout=60, check=False, **said, **how)


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_help_shows_an_example_of_the_command(shell, words):
    answer = shell.works(*words, "--help")
    assert answer.err == ""
    example = answer.out.partition("Example:")[2].partition("Options:")[0]
    assert f"jobcast {' '.join(words)}".rstrip() in example
    assert answer.out.startswith(f"Usage: jobcast {' '.join(words)}".rstrip() + " ")
    assert shell.works(*words, "-h").out == answer.out


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_no_range_of_an_option_holds_what_is_no_finite_number(words):
    command = cli
    for word in words:
        command = command.get_command(click.Context(command), word)
    ranges = [option for option in command.params if isinstance(option.type, click.FloatRange)]
    for option in ranges:
        for value in ("nan", "inf"):
            with pytest.raises(click.BadParameter, match=f"{value} is no finite number|is not in the range"):
                option.type.convert(value, option, click.Context(command))


def test_help_imports_nothing_heavy():
    program = f"""
import sys
from jobcast.pipelines.cli.main import main
for words in {all_commands()!r}:
    try:
        main([*words, "--help"])
    except SystemExit as left:
        assert left.code == 0, words
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    answer = python("-c", program)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "[]"


def test_the_module_is_the_command_line():
    answer = python("-m", "jobcast", "--version")
    assert (answer.returncode, answer.stdout) == (0, f"jobcast, version {jobcast.__version__}\n")
    assert answer.stderr == ""


@pytest.mark.parametrize("words", [(), ("models",), ("trace",)])
def test_a_group_alone_shows_its_help(shell, words):
    answer = shell(*words)
    assert answer.code == 2
    assert "Commands:" in answer.err
    assert answer.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("brew",), "No such command 'brew'. See 'jobcast --help'."),
        (("models", "brew"), "No such command 'brew'. See 'jobcast models --help'."),
        (("simulat",), "No such command 'simulat'. Did you mean 'simulate'? See 'jobcast --help'."),
        (("--loud", "run"), "No such option '--loud'. See 'jobcast --help'."),
        (("simulate", "--loud"), "No such option '--loud'. Did you mean '--out'? See 'jobcast simulate --help'."),
        (("simulate", "--policy", "fcfs"), "Missing option '--trace'. See 'jobcast simulate --help'."),
        (("train",), "Missing argument 'PREDICTOR'. See 'jobcast train --help'."),
        (("predict", "new-load", "--trace"), "Option '--trace' requires an argument. See 'jobcast predict --help'."),
        (("report", "a", "b"), "Got unexpected extra argument (b). See 'jobcast report --help'."),
    ],
)
def test_a_wrong_line_is_told_in_one_line(shell, words, message):
    assert shell.refuses(*words) == message


def failing(monkeypatch, error: BaseException) -> None:
    """Make the next command raise."""

    def fail(ctx: click.Context) -> None:
        raise error

    monkeypatch.setattr(command_line.Commands, "get_command", lambda *_: click.Command("run", callback=fail))
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: fail(ctx), raising=True)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DecisionError("policy x moved\na job"), 1, "policy x moved a job"),
        (RuntimeError("odd"), 1, "unexpected RuntimeError: odd; run again with --debug and report it"),
        (PanicException("of Rust\nin many lines"), 1, "unexpected PanicException: of Rust in many lines; run again"),
        (ValueError("x" * 100_000), 1, "unexpected ValueError: xxx"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was left half-written, the same command can be run again"),
        (
            PermissionError(13, "Permission denied", "/srv/x"),
            2,
            "/srv/x: cannot be used (Permission denied); check the path and its permissions",
        ),
        (OSError(28, "No space left on device"), 2, "stdout: no space left on the device; free some"),
    ],
)
def test_what_goes_wrong_inside_is_one_line_and_the_exit_code_says_whose_it_is(
    shell, monkeypatch, error, code, message
):
    failing(monkeypatch, error)
    line = shell.refuses("run", code=code)
    assert line.startswith(message)
    assert len(line) < 4_100


def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch):
    failing(monkeypatch, RuntimeError("odd"))
    for words in (["--debug", "run"], ["run", "--debug"]):
        refused(RuntimeError, "odd", main, words)


def test_quiet_says_results_and_errors_alone_wherever_it_stands(shell, csv):
    words = ["simulate", "--trace", csv("1,a,0,10,1"), "--policy", "mmfs", "--gpus", "1"]
    told = shell.works(*words)
    assert told.err == "quotas: a flat cluster of 1 GPUs, pools ignored\n"
    for quiet in (shell.works(*words, "--quiet"), shell.works("--quiet", *words)):
        assert quiet.err == ""
        assert quiet.out.splitlines()[0] == told.out.splitlines()[0]
    assert "pools.csv: no such file" in shell.refuses("--quiet", *words[:-2], "--pools", "pools.csv")


def test_the_baseline_itself_is_told_that_it_is(shell, csv):
    words = ["simulate", "--trace", csv("1,a,0,10,1"), "--policy", "fcfs", "--gpus", "1"]
    assert "fcfs is compared with itself" in shell.works(*words).err
    assert "itself" not in shell.works(*words, "--baseline", "none").err


def test_warnings_are_not_shown_where_a_library_has_lost_the_filters():
    """As scikit-learn's threads do, each of which puts back what another had set."""
    program = """
import warnings
from jobcast.pipelines.cli import main as line

answered = line.cli.main

def loses(*words, **how):
    warnings.resetwarnings()
    warnings.warn("of a library")
    return answered(*words, **how)

line.cli.main = loses
line.main(["--version"])
"""
    answer = python("-c", program)
    assert answer.stdout.startswith("jobcast")
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize("words", [("models", "list"), ("models", "list", "--json", "-"), ("--help",)])
def test_a_closed_pipe_is_no_error_to_be_told(run, words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        answer = python("-m", "jobcast", *words, stdout=pipe, env={**os.environ, "JOBCAST_HOME": str(run.home)})
    assert answer.stderr == ""
    assert answer.returncode in (1, -signal.SIGPIPE)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_under_stdout_is_one_line(run):
    with open("/dev/full", "w") as full:
        home = {**os.environ, "JOBCAST_HOME": str(run.home)}
        answer = python("-m", "jobcast", "models", "list", stdout=full, env=home)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "no space left on the device" in answer.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_device_is_named_by_its_own_name(shell, run):
    """The line blamed stdout, which is fine."""
    words = ("trace", "describe", run.trace)
    for option in ("--json", "--html"):
        line = shell.refuses(*words, option, "/dev/full")
        assert line == "/dev/full: no space left on the device; free some or choose another place"
