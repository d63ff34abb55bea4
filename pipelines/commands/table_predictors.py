"""The predictors `accuracy-curve` and `epoch-time`, which learn from tables: their options and what commands do."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import OF_JOBS, refuse_others, table_of_jobs, tell, training
from jobcast.pipelines.forecast_specs import CURVES, EPOCH_TIME

if TYPE_CHECKING:
    from jobcast.models.registry.references import Ref
    from jobcast.pipelines.finished_jobs import Window

PREFIX = 0.2
"""Share of a curve's epochs that is seen, where nothing else is asked for."""
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
"""Reasons for refusals that a user may wonder about."""
NO_CALENDAR = dict.fromkeys(("from_s", "until_s"), "profiles have no calendar, a trace of jobs with profiles has one")


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number.", ctx, param)
    return value


prefix_option = click.option(
    "--prefix",
    type=options.Finite(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help=f"{CURVES}: of each curve's epochs that is seen; default {PREFIX:g}.",
)
run_options = options.several(
    click.option(
        "--epochs", type=click.IntRange(min=1), metavar="N", help=f"{CURVES}: of a whole run; or a column epochs."
    ),
    click.option(
        "--target", type=float, callback=_finite, metavar="X", help=f"{CURVES}: will the metric reach it, and when?"
    ),
)
points_option = click.option(
    "--points", type=click.IntRange(1, 3), metavar="N", help=f"{EPOCH_TIME}: known a job and GPU type; default 3."
)
completed_option = click.option(
    "--out", type=options.FILE, metavar="FILE", help=f"{EPOCH_TIME}: write the completed table there."
)


def train_curves(
    ctx: click.Context,
    trace_path: Path,
    window: "Window",
    algorithm: str | None,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
) -> None:
    """Train on a file of curves, or on those of a trace's jobs, and register a version."""
    curves = table_of_jobs("curves", trace_path, pairs)
    refuse_others(ctx, CURVES, ("algorithm", "seed", *(OF_JOBS if curves else ())), WHY)
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.tables import training_table
    from jobcast.pipelines.learning_curves.training import train_and_register_curves

    with training(ctx, CURVES, (trace_path,), json_to) as (home, step):
        table = read_curves(trace_path, curves, window)
        result = train_and_register_curves(table, algorithm, seed, home=home, progress=step)
    tell(ctx, result, json_to, training_table(result))


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
    """Score a version on a file of curves, or on those of a trace's jobs."""
    curves = table_of_jobs("curves", trace_path, pairs)
    refuse_others(ctx, CURVES, ("prefix", "allow_overlap", "seed", *(OF_JOBS if curves else ())), WHY)
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.evaluating import score_version
    from jobcast.pipelines.learning_curves.tables import evaluation_table

    parsed, home = _place(reference, trace_path, json_to)
    table, share = read_curves(trace_path, curves, window), PREFIX if prefix is None else prefix
    result = score_version(parsed, table, share, home=home, allow_overlap=allowed)
    tell(ctx, result, json_to, evaluation_table(result))


def predict_curves(
    ctx: click.Context, reference: str, trace_path: Path, epochs: int | None, target: float | None, json_to: str | None
) -> None:
    """Forecast where the runs of a file will end."""
    refuse_others(ctx, CURVES, ("epochs", "target", "seed"), WHY)
    from jobcast.pipelines.learning_curves.evaluating import forecast_runs
    from jobcast.pipelines.learning_curves.tables import prediction_table
    from jobcast.traces.learning_curves import read_learning_curves

    parsed, home = _place(reference, trace_path, json_to)
    result = forecast_runs(parsed, read_learning_curves(trace_path), epochs, target, home=home)
    tell(ctx, result, json_to, prediction_table(result))


def promote_curves(
    ctx: click.Context,
    version: tuple[str, int],
    trace_path: Path,
    alias: str,
    force: bool,
    allowed: bool,
    json_to: str | None,
) -> None:
    """Compare a version with the one it would replace on a file of curves, and promote it."""
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


def train_epoch_time(
    ctx: click.Context, trace_path: Path, window: "Window", pairs: tuple[str, ...], seed: int, json_to: str | None
) -> None:
    """Train on a table of profiles, or on the rows that a trace's jobs go by, and register a version."""
    profiles = table_of_jobs("profiles", trace_path, pairs)
    refuse_others(ctx, EPOCH_TIME, ("seed", *(OF_JOBS if profiles else ())), NO_CALENDAR)
    from jobcast.pipelines.finished_jobs import profiles_of
    from jobcast.pipelines.profiles.epoch_time import train_and_register_epoch_time, training_table

    with training(ctx, EPOCH_TIME, (trace_path,), json_to) as (home, step):
        table = profiles_of(trace_path, profiles, window)
        result = train_and_register_epoch_time(table, seed, home=home, progress=step)
    tell(ctx, result, json_to, training_table(result))


def evaluate_epoch_time(
    ctx: click.Context,
    reference: str,
    trace_path: Path,
    points: int | None,
    pairs: tuple[str, ...],
    seed: int,
    allowed: bool,
    json_to: str | None,
) -> None:
    """Score a version on a table of profiles."""
    refuse_others(ctx, EPOCH_TIME, ("points", "pairs", "seed", "allow_overlap"))
    from jobcast.pipelines.profiles.epoch_time import ScoreSettings, evaluation_table, score_version
    from jobcast.traces.profiles import read_profiles

    settings = ScoreSettings.read(options.settings_of(pairs), points, seed)
    parsed, home = _place(reference, trace_path, json_to)
    result = score_version(parsed, read_profiles(trace_path), settings, home=home, allow_overlap=allowed)
    tell(ctx, result, json_to, evaluation_table(result))


def predict_epoch_time(
    ctx: click.Context, reference: str, trace_path: Path, pairs: tuple[str, ...], out: Path | None, json_to: str | None
) -> None:
    """Complete a table of profiles by forecasts."""
    refuse_others(ctx, EPOCH_TIME, ("pairs", "out", "seed"))
    from jobcast.pipelines.profiles.epoch_time import Question, complete_table, prediction_table
    from jobcast.traces.profiles import read_profiles

    question = Question.read(options.settings_of(pairs))
    parsed, home = _place(reference, trace_path, json_to, out)
    result = complete_table(parsed, read_profiles(trace_path), question, out, home=home)
    tell(ctx, result, json_to, prediction_table(result))


def _place(
    reference: str, trace_path: Path, json_to: str | None, out: Path | None = None
) -> tuple[tuple[str, "Ref"], Path]:
    """Which version is asked, and the home that holds it, once the places of results were looked at."""
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference

    parsed = parse_reference(reference)
    options.check_places(json_to, (trace_path,), {"--out": out})
    return parsed, find_home()
