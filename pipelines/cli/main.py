"""The command line: finds the command, turns errors into one line and an exit code."""

import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from types import FrameType
from typing import Any

import click

from jobcast import __version__
from jobcast.domain.errors import JobcastError, UserError
from jobcast.pipelines.report.console import printable
from jobcast.traces.files import disk_trouble, unwritable

PATIENT_THREADS = ("OMP_WAIT_POLICY", "passive")
"""Threads of the boosters sleep while they wait; spinning, their default, costs a busy machine most of its time."""
EXIT_OURS, EXIT_USER, EXIT_SIGNAL = 1, 2, 128
"""Ended by a signal: 128 and its number, as shells tell it; 130 for Ctrl-C, 143 for SIGTERM."""
MOST_TOLD = 4000
"""Characters of an error's line: what a user typed or a file holds may be of any length."""
ENDED = {
    signal.SIGINT: "jobcast: interrupted; nothing was left half-written, the same command can be run again",
    signal.SIGTERM: "jobcast: terminated; nothing was left half-written, the same command can be run again",
}
"""What ends a command in good order: Ctrl-C, and what docker, systemd, Slurm and `kill` send."""

COMMANDS: dict[str, str] = {
    "run": "The main job: prepare, featurize, train, register, evaluate, backtest, report.",
    "trace": "Generate, convert and describe job traces.",
    "train": "Train a predictor on a trace and register it as a new version.",
    "evaluate": "Score a registered predictor on a later part of a trace.",
    "predict": "Ask a registered predictor about one instant of a trace, or when a job will finish.",
    "profiles": "Import and show how long an epoch takes on which GPUs.",
    "simulate": "Replay a trace under a policy.",
    "explain": "Tell why a job of a simulation waited, was helped or was slowed.",
    "invoice": "Tell who lent and borrowed what in a simulation, and what it saved and cost them.",
    "search": "Search configurations of PCS, choose one, see whether it still fits.",
    "policies": "List the policies, or tell the settings of one.",
    "predictors": "List the predictors: who asks them, and what they are measured by.",
    "backtest": "Replay a trace under policies x forecasts, with gains and intervals.",
    "worth": "Tell what each forecast is worth to each scheduler, and what a better one would be.",
    "choose": "Say which scheduler and setting to run, from replayed windows, and what the choice may cost.",
    "serve": "Answer by HTTP what is forecast for a running cluster.",
    "advise": "Say, or do, what lends idle GPUs of a running Slurm to jobs that end in time.",
    "promises": "Show whether starts and ends that were forecast came as told.",
    "drift": "Show whether a registered predictor still fits what comes, week by week.",
    "bundle": "Pack a result with all that made it, for another machine to check.",
    "verify": "Run a bundle again and compare every figure.",
    "models": "List, show, promote, roll back, restore and export registered versions.",
    "report": "Write the HTML report of a finished run or backtest.",
    "stage": "Run one stage of the pipeline (what dvc.yaml calls).",
}
"""Commands and their one-line help; each lives in pipelines/cli and is imported when it is asked for."""


AGAIN_S = 0.5
"""Until a signal is raised again that came to nothing."""


class Interrupted(KeyboardInterrupt):
    """A signal ended the command.

    CPython notes a bare KeyboardInterrupt, told by its exact class, that leaves a text it executes, as dataclasses make
    them, and then ends the process by SIGINT in place of its exit code, whoever caught it meanwhile.
    """


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, so that help is instant."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C ends it without the blank line that click would write."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # Without its cause: the blank line is written for a KeyboardInterrupt alone.
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the main job."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        # Only these: any other module of the package would be imported as well.
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"jobcast.pipelines.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; a UsageError asks about the nearest for one that is not."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], COMMANDS, 1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jobcast")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--quiet", is_flag=True, help="No progress and no notes; results and errors only.")
@click.pass_context
def cli(ctx: click.Context, debug: bool, quiet: bool) -> None:
    """Forecast what a GPU cluster's queues will do next, and measure what each forecast is worth.

    \b
    Example:
      jobcast run
      jobcast train will-jobs-arrive --trace jobs.csv --until 2017-11-06
      jobcast simulate --trace jobs.csv --policy sia --pools pools.csv --forecasts registry
    """
    ctx.ensure_object(dict).update(debug=debug, quiet=quiet)


def _unshown(*_warning: Any, **_more: Any) -> None:
    """Shows no warning."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line and leave with its exit code.

    0 done, 2 the user's mistake, 1 our own, 130 interrupted, 143 terminated.
    """
    # With arguments it is a test that calls: signals and exit are its own.
    words = sys.argv[1:] if arguments is None else arguments
    os.environ.setdefault(*PATIENT_THREADS)
    debug = "--debug" in words
    if not debug:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of workers, as below of this process
    # --debug and --quiet are understood anywhere on the line.
    first = [word for word in ("--debug", "--quiet") if word in words]
    words = [*first, *(word for word in words if word not in first)]
    # Before click is asked: Ctrl-C while commands are imported must end in good order, too.
    heard = _listen() if arguments is None else []
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.simplefilter("ignore")  # of numpy, matplotlib, ...: nothing that a user can act on
                # scikit-learn's threads set filters one over the other, and may leave none.
                warnings.showwarning = _unshown
            code = cli.main(words, prog_name="jobcast", standalone_mode=False, obj={"words": words})
            # Only what was armed here is stopped: a program that calls this may have a timer of its own.
            if heard:
                signal.setitimer(signal.ITIMER_REAL, 0.0)  # whoever has ended all the same is not interrupted any more
    except _caught() as error:
        if heard:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if files := sys.modules.get("jobcast.traces.files"):
            files.heard()
        if heard or isinstance(error, KeyboardInterrupt | click.Abort):
            # The first signal is what the user meant; more of them only urge.
            number = heard[0] if heard else signal.SIGINT
            result, code = ENDED[number], EXIT_SIGNAL + number
            _end_workers()
        # Mistakes of the line have no traceback worth reading.
        elif debug and not isinstance(error, click.ClickException | BrokenPipeError):
            raise
        else:
            result, code = _told(error, words)
        if result:
            click.echo(printable(result), err=True)
    finally:
        if arguments is None:
            for number in (*ENDED, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)  # nothing is left to interrupt but the way out
    # click gives back what a command returns, which is nothing, or the code of --help.
    sys.exit(code if isinstance(code, int) else 0)


def _caught() -> tuple[type[BaseException], ...]:
    """What ends in a line: also what polars raises when its own code fails, which is no Exception.

    Where polars was not loaded, none was raised.
    """
    polars = sys.modules.get("polars")
    return KeyboardInterrupt, Exception, *([polars.exceptions.PanicException] if polars else [])


def _end_workers() -> None:
    """End processes that simulate; nothing is imported where nothing has begun any."""
    if engines := sys.modules.get("jobcast.pipelines.experiments.executors"):
        engines.end_workers()


def _listen() -> list[signal.Signals]:
    """Note each signal that ends a command: a library may turn the KeyboardInterrupt into an error of its own."""
    heard: list[signal.Signals] = []

    def note(number: int, frame: FrameType | None) -> None:
        again = number == signal.SIGTERM and bool(heard)  # who sends it twice must not cut the clean-up short
        heard.append(signal.Signals(number))
        if not again:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
            raise Interrupted

    def unraisable(args: "sys.UnraisableHookArgs") -> None:
        if not isinstance(args.exc_value, Interrupted):
            sys.__unraisablehook__(args)

    for number in ENDED:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, note)
    sys.unraisablehook = unraisable
    signal.signal(signal.SIGALRM, _insist)
    return heard


def _insist(number: int, frame: FrameType | None) -> None:
    """Raise a signal again that came to nothing: in a callback of C, a finaliser, a library that catches everything."""
    # While any exception is on its way, the clean-up that it brings about is not cut short.
    if sys.exc_info()[1] is None:
        raise Interrupted


def _told(error: BaseException, words: list[str]) -> tuple[str, int]:
    """What to say about an error, and the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message(), EXIT_USER
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else command_named(words)[0]
        message = error.format_message()
        return _line(f"{message}{'' if message.endswith(('.', '?')) else '.'} See '{where} --help'."), EXIT_USER
    if isinstance(error, click.ClickException):
        return _line(error.format_message()), EXIT_USER
    # Before OSError, which it is: nothing is wrong with any file.
    if isinstance(error, BrokenPipeError):
        _discard_stdout()
        return "", EXIT_OURS  # whoever read the results has left; nothing is wrong
    if isinstance(error, JobcastError):
        return _line(str(error)), EXIT_USER if isinstance(error, UserError) else EXIT_OURS
    if isinstance(error, MemoryError):
        what = f"memory ran out ({error})" if str(error) else "memory ran out"
        return _line(f"{what}; narrow the window with --from and --until, or free some memory"), EXIT_USER
    if isinstance(error, OSError):
        # Standard output itself could not be written to.
        if error.filename is None:
            _discard_stdout()
        where, why = error.filename or "stdout", error.strerror or error
        if disk_trouble(error):
            return _line(unwritable(where, error)), EXIT_USER
        return _line(f"{where}: cannot be used ({why}); check the path and its permissions"), EXIT_USER
    if disk_trouble(error):  # in a library's own words
        return _line(unwritable("what was being written", error)), EXIT_USER
    return _line(f"unexpected {type(error).__name__}: {error}; run again with --debug and report it"), EXIT_OURS


def _discard_stdout() -> None:
    """Let go of what could not be written, or Python would try once more on its way out and say so."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(message: str) -> str:
    # Control characters of a file's content must not reach the terminal.
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(message.split()))
    return f"jobcast: {text if len(text) <= MOST_TOLD else f'{text[:MOST_TOLD]}...'}"


def command_named(words: Sequence[str]) -> tuple[str, click.Command]:
    """The command that a line names, and its path from `jobcast` on."""
    path = ["jobcast"]
    command: click.Command = cli
    for word in words:
        # Options and values are no commands: they are passed over.
        if isinstance(command, click.Group) and (found := command.get_command(click.Context(command), word)):
            path.append(word)
            command = found
    return " ".join(path), command
