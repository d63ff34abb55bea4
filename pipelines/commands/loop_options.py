"""Options of closed-loop replays."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands.options import Finite

Command = TypeVar("Command", bound=Callable[..., Any])


def loop_options(command: Command) -> Command:
    """`--closed-loop` and `--max-think SECONDS`."""
    command = click.option(
        "--max-think",
        "max_think_s",
        type=Finite(min=0, min_open=True),
        metavar="SECONDS",
        help="Longest think time of a job that follows another; default 14400.",
    )(command)
    return click.option(
        "--closed-loop",
        is_flag=True,
        help="Jobs that follow others arrive a think time after those end in this run, not when the trace says.",
    )(command)


def asked_think_s(closed_loop: bool, max_think_s: float | None) -> float | None:
    """Longest think time of a closed loop, None of an open one. Raises ConfigError for a think time without a loop."""
    from jobcast.traces.successors import MAX_THINK_S

    if not closed_loop:
        if max_think_s is not None:
            raise ConfigError("--max-think goes with --closed-loop; add that or leave it out")
        return None
    return MAX_THINK_S if max_think_s is None else max_think_s
