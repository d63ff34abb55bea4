"""Options of the predictor `accuracy-curve`, and which of a command's others go with it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import OF_JOBS, refuse_others, table_of_jobs
from jobcast.pipelines.console import Console
from jobcast.pipelines.predictor_names import CURVES

if TYPE_CHECKING:
    from jobcast.pipelines.finished_jobs import Window

PREFIX = 0.2
"""Share of the epochs that `evaluate` shows, where nothing else is asked for."""
WHY: Mapping[str, str] = {
    "pools_path": "nothing is replayed",
    "from_s": "curves have no calendar",
    "until_s": "curves have no calendar",
    "at_s": "curves have no calendar, a running job's file holds what was seen of it",
    "tune": "it has no settings to search",
    "retrain": "it does not walk through a trace",
    "pairs": "it reads no settings",
    "out": "use --json FILE",
    "log": "use --json FILE",
}
"""Why an option does not go with curves, where there is more to say than that."""


def prefix_option(command: options.Command) -> options.Command:
    """`--prefix SHARE`."""
    return click.option(
        "--prefix",
        type=options.Finite(0, 1, min_open=True, max_open=True),
        metavar="SHARE",
        help=f"{CURVES}: of each curve's epochs that is seen; default {PREFIX:g}.",
    )(command)


def run_options(command: options.Command) -> options.Command:
    """`--epochs N` and `--target X`."""
    command = click.option(
        "--target", type=float, callback=_finite, metavar="X", help=f"{CURVES}: will the metric reach it, and when?"
    )(command)
    return click.option(
        "--epochs", type=click.IntRange(min=1), metavar="N", help=f"{CURVES}: of a whole run; or a column epochs."
    )(command)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number.", ctx, param)
    return value


def train_curves(
    ctx: click.Context,
    trace_path: Path,
    window: "Window",
    algorithm: str | None,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
) -> None:
    """`jobcast train accuracy-curve`."""
    curves = table_of_jobs("curves", trace_path, pairs)
    refuse_others(ctx, CURVES, ("algorithm", "seed", *(OF_JOBS if curves else ())), WHY)
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.tables import training_table
    from jobcast.pipelines.learning_curves.training import train_and_register_curves
    from jobcast.pipelines.tidying import tidy_home

    console, home = options.console_of(ctx), find_home()
    options.check_places(json_to, (trace_path,), folders={"the store": home / "mlruns"})
    tidy_home(console)
    table = read_curves(trace_path, curves, window)
    with console.progress(f"train {CURVES}") as step:
        result = train_and_register_curves(table, algorithm, seed, home=home, progress=step)
    _tell(result, json_to, training_table(result), console)


def evaluate_curves(
    ctx: click.Context,
    reference: str,
    trace_path: Path,
    window: "Window",
    prefix: float | None,
    pairs: tuple[str, ...],
    allowed: bool,
    json_to: str | None,
) -> None:
    """`jobcast evaluate accuracy-curve`."""
    curves = table_of_jobs("curves", trace_path, pairs)
    refuse_others(ctx, CURVES, ("prefix", "allow_overlap", "seed", *(OF_JOBS if curves else ())), WHY)
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.evaluating import score_version
    from jobcast.pipelines.learning_curves.tables import evaluation_table

    console, parsed = options.console_of(ctx), parse_reference(reference)
    options.check_places(json_to, (trace_path,))
    table = read_curves(trace_path, curves, window)
    share = PREFIX if prefix is None else prefix
    result = score_version(parsed, table, share, home=find_home(), allow_overlap=allowed)
    _tell(result, json_to, evaluation_table(result), console)


def predict_curves(
    ctx: click.Context,
    reference: str,
    trace_path: Path,
    epochs: int | None,
    target: float | None,
    json_to: str | None,
) -> None:
    """`jobcast predict accuracy-curve`."""
    refuse_others(ctx, CURVES, ("epochs", "target", "seed"), WHY)
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.learning_curves.predicting import forecast_runs
    from jobcast.pipelines.learning_curves.tables import prediction_table
    from jobcast.traces.learning_curves import read_learning_curves

    console, parsed = options.console_of(ctx), parse_reference(reference)
    options.check_places(json_to, (trace_path,))
    result = forecast_runs(parsed, read_learning_curves(trace_path), epochs, target, home=find_home())
    _tell(result, json_to, prediction_table(result), console)


def promote_curves(
    ctx: click.Context,
    version: tuple[str, int],
    trace_path: Path,
    alias: str,
    force: bool,
    allowed: bool,
    json_to: str | None,
) -> None:
    """`jobcast models promote accuracy-curve:N --trace FILE`."""
    refuse_others(ctx, CURVES, ("name", "alias", "force", "allow_overlap"), WHY)
    from jobcast.pipelines.learning_curves.promoting import promote_curves, promotion_table, refuse
    from jobcast.pipelines.tidying import tidy_home
    from jobcast.traces.learning_curves import read_learning_curves

    table, console = read_learning_curves(trace_path), options.console_of(ctx)
    home = tidy_home(console)
    told = promote_curves(*version, alias, table, force=force, allow_overlap=allowed, home=home)
    if not told["compared"]:
        console.note(f"nothing was compared: it is {alias} already")
    options.table_or_json(told, json_to, promotion_table(told), console)
    refuse(told)


def _tell(result: dict[str, Any], json_to: str | None, table: str, console: Console) -> None:
    """Notes on stderr, figures where asked."""
    for note in result["notes"]:
        console.note(f"{result['inputs']['trace']['path']}: {note}")
    options.table_or_json(result, json_to, table, console)
