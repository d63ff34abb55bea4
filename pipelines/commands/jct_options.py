"""Options of `jobcast predict jct` and `jobcast evaluate jct`: whose completion, under which policy, on which GPUs."""

from collections.abc import Mapping
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands import options
from jobcast.pipelines.predictor_names import JCT

__all__ = ["JCT", "place_options", "question_options", "refuse_options", "whole_numbers"]


place_options = options.several(
    click.option("--policy", metavar="NAME", help="jct: elastic policy that is replayed."),
    click.option("--gpus", type=click.IntRange(min=1), help="jct: a flat cluster of N GPUs."),
    click.option("--cluster", "cluster_path", type=options.FILE, help="jct: a cluster file."),
    click.option("--futures", type=click.IntRange(min=2), help="jct: futures drawn for a job; default 200."),
    click.option("--sizes", type=click.Choice(["forecast", "declared"]), help="jct: default forecast."),
)


question_options = options.several(
    click.option("--job", metavar="ID|new", help="jct: a job of the trace, or new for one submitted then."),
    click.option("--ask-gpus", metavar="N,N", help="jct: most GPUs of the new job, one answer each."),
    click.option("--size-s", type=options.Finite(min=0, min_open=True), help="jct: its work, seconds on one GPU."),
    click.option("--model", metavar="NAME", help="jct: its model."),
    click.option("--by", "by", metavar="TIME", help="jct: the chance that it has finished by then."),
    click.option("--every", "every_h", type=options.Finite(min=0, min_open=True), help="jct: ask again every N hours."),
    click.option("--plot", type=options.FILE, help="jct: its distribution, .svg or .html."),
)


def refuse_options(predictor: str, given: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option of completion times given to another predictor."""
    for name, value in given.items():
        if value:
            flag = {"cluster_path": "cluster", "every_h": "every"}.get(name, name).replace("_", "-")
            raise ConfigError(f"--{flag}: goes with the predictor {JCT}, not with {predictor}; leave it out")


def whole_numbers(text: str | None, option: str) -> tuple[int, ...]:
    """Numbers between commas. Raises ConfigError for others.

    >>> whole_numbers("4,8", "--ask-gpus")
    (4, 8)
    """
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal() or int(part) < 1:
            raise ConfigError(f"{option} {text}: whole numbers >= 1 between commas are expected, got {part!r}")
    return tuple(int(part) for part in parts)
