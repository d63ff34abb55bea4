"""Which options of a command go with a predictor that does not learn from a trace of jobs alone.

Options of `jobcast predict jct` and `jobcast evaluate jct`: whose completion, under which policy, on which GPUs.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands import options
from jobcast.pipelines.console import Step
from jobcast.pipelines.forecast_specs import JCT

OF_JOBS = ("from_s", "until_s", "pairs")
"""Parameters that go with a predictor of other tables, too, where these are of a trace's jobs."""
COMMON = frozenset({"predictor", "trace_path", "json_to", "drop_outliers", "memory"})
"""Parameters that go with every predictor."""


def means(reference: str, predictor: str) -> bool:
    """Whether PREDICTOR[@ALIAS|:VERSION] means a predictor.

    >>> means("accuracy-curve:3", "accuracy-curve"), means("new-load", "accuracy-curve")
    (True, False)
    """
    return re.split("[@:]", reference, maxsplit=1)[0] == predictor


def table_of_jobs(name: str, trace_path: Path, pairs: tuple[str, ...]) -> Path | None:
    """The table of a trace's jobs that `--set` names, else that beside an enriched trace; None for other traces.

    Raises ConfigError for another setting.
    """
    from jobcast.traces.facts import facts_beside

    settings = options.settings_of(pairs)
    for key in settings:
        if key != name:
            raise ConfigError(f"--set {key}: only {name}=FILE is read here, of the jobs of --trace; leave it out")
    return Path(settings[name]) if name in settings else facts_beside(trace_path, (name,)).get(name)


def refuse_others(
    ctx: click.Context, predictor: str, allowed: Collection[str], why: Mapping[str, str] | None = None
) -> None:
    """Raise ConfigError for an option that was given and that does not go with a predictor.

    Parameters
    ----------
    allowed : parameters that go with it, besides `COMMON`
    why : parameter -> why it does not, where there is more to say
    """
    reasons = why or {}
    for option, name in _given_options(ctx):
        if name not in COMMON and name not in allowed:
            told = f" ({reasons[name]})" if name in reasons else ""
            raise ConfigError(f"{option}: does not go with the predictor {predictor}{told}; leave it out")


def refuse_foreign(owner: str, predictor: str, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option of one predictor, by its name and value, that was given to another."""
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"--{name}: goes with the predictor {owner}, not with {predictor}; leave it out")


def _given_options(ctx: click.Context) -> list[tuple[str, str]]:
    """Options on the line as users type them, and their parameters' names."""
    named = [(param.opts[0], str(param.name)) for param in ctx.command.params]
    return [one for one in named if ctx.get_parameter_source(one[1]) is ParameterSource.COMMANDLINE]


@contextmanager
def training(
    ctx: click.Context, predictor: str, inputs: Iterable[Path], json_to: str | None
) -> Iterator[tuple[Path, Step]]:
    """The home and the progress of a training, once its places were looked at and what others left was tidied."""
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.tidying import tidy_home

    console, home = options.console_of(ctx), find_home()
    options.check_places(json_to, inputs, folders={"the store": home / "mlruns"})
    tidy_home(console)
    with console.progress(f"train {predictor}") as step:
        yield home, step


def tell(ctx: click.Context, result: dict[str, Any], json_to: str | None, table: str) -> None:
    """What the reader decided and left out on stderr, figures where they are wanted; after the work."""
    console, path = options.console_of(ctx), result["inputs"]["trace"]["path"]
    for note in (*result["notes"], *options.dropped_lines(result.get("dropped", {}))):
        console.note(f"{path}: {note}")
    options.table_or_json(result, json_to, table, console)


__all__ = ["JCT", "place_options", "question_options", "refuse_options", "whole_numbers"]


place_options = options.several(
    click.option("--policy", metavar="NAME", help="jct: policy that is replayed, any of `jobcast policies`."),
    click.option("--pools", type=options.FILE, help="jct: quotas, CSV pool,gpus[,from]."),
    click.option("--forecasts", metavar="KIND", help="jct: of run times, as of simulate; not of elastic policies."),
    click.option("--gpus", type=click.IntRange(min=1), help="jct: a flat cluster of N GPUs."),
    click.option("--cluster", "cluster_path", type=options.FILE, help="jct: a cluster file."),
    click.option("--futures", type=click.IntRange(min=2), help="jct: futures drawn for a job; default 200."),
    click.option("--sizes", type=click.Choice(["forecast", "declared"]), help="jct: default forecast."),
)


question_options = options.several(
    click.option("--job", metavar="ID|new", help="jct: a job of the trace, or new for one submitted then."),
    click.option("--pool", metavar="NAME", help="jct: the new job's pool."),
    click.option("--ask-gpus", metavar="N,N", help="jct: GPUs of the new job, one answer each."),
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
