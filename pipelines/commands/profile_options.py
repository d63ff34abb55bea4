"""Options of the predictor `epoch-time`, and which of a command's others go with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import OF_JOBS, refuse_others, table_of_jobs
from jobcast.pipelines.console import Console
from jobcast.pipelines.forecast_specs import EPOCH_TIME

if TYPE_CHECKING:
    from jobcast.pipelines.finished_jobs import Window

NO_CALENDAR = dict.fromkeys(("from_s", "until_s"), "profiles have no calendar, a trace of jobs with profiles has one")


def points_option(command: options.Command) -> options.Command:
    """`--points N`."""
    return click.option(
        "--points", type=click.IntRange(1, 3), metavar="N", help=f"{EPOCH_TIME}: known a job and GPU type; default 3."
    )(command)


def completed_option(command: options.Command) -> options.Command:
    """`--out FILE`."""
    return click.option(
        "--out", type=options.FILE, metavar="FILE", help=f"{EPOCH_TIME}: write the completed table there."
    )(command)


def train_epoch_time(
    ctx: click.Context, trace_path: Path, window: "Window", pairs: tuple[str, ...], seed: int, json_to: str | None
) -> None:
    """`jobcast train epoch-time`."""
    profiles = table_of_jobs("profiles", trace_path, pairs)
    refuse_others(ctx, EPOCH_TIME, ("seed", *(OF_JOBS if profiles else ())), NO_CALENDAR)
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.finished_jobs import profiles_of
    from jobcast.pipelines.profiles.training import train_and_register_epoch_time, training_table
    from jobcast.pipelines.tidying import tidy_home

    console, home = options.console_of(ctx), find_home()
    options.check_places(json_to, (trace_path,), folders={"the store": home / "mlruns"})
    tidy_home(console)
    table = profiles_of(trace_path, profiles, window)
    with console.progress(f"train {EPOCH_TIME}") as step:
        result = train_and_register_epoch_time(table, seed, home=home, progress=step)
    _tell(result, json_to, training_table(result), console)


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
    """`jobcast evaluate epoch-time`."""
    refuse_others(ctx, EPOCH_TIME, ("points", "pairs", "seed", "allow_overlap"))
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.profiles.evaluating import ScoreSettings, evaluation_table, score_version
    from jobcast.traces.profiles import read_profiles

    console, parsed = options.console_of(ctx), parse_reference(reference)
    settings = ScoreSettings.read(options.settings_of(pairs), points, seed)
    options.check_places(json_to, (trace_path,))
    table = read_profiles(trace_path)
    result = score_version(parsed, table, settings, home=find_home(), allow_overlap=allowed)
    _tell(result, json_to, evaluation_table(result), console)


def predict_epoch_time(
    ctx: click.Context, reference: str, trace_path: Path, pairs: tuple[str, ...], out: Path | None, json_to: str | None
) -> None:
    """`jobcast predict epoch-time`."""
    refuse_others(ctx, EPOCH_TIME, ("pairs", "out", "seed"))
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.profiles.predicting import Question, complete_table, prediction_table
    from jobcast.traces.profiles import read_profiles

    console, parsed = options.console_of(ctx), parse_reference(reference)
    question = Question.read(options.settings_of(pairs))
    options.check_places(json_to, (trace_path,), {"--out": out})
    result = complete_table(parsed, read_profiles(trace_path), question, out, home=find_home())
    _tell(result, json_to, prediction_table(result), console)


def _tell(result: dict[str, Any], json_to: str | None, table: str, console: Console) -> None:
    """Notes on stderr, figures where asked."""
    for note in result["notes"]:
        console.note(f"{result['inputs']['trace']['path']}: {note}")
    options.table_or_json(result, json_to, table, console)
