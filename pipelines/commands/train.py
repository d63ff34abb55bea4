"""`jobcast train`: a predictor becomes a registered version."""

from pathlib import Path

import click

from jobcast.pipelines.commands.options import (
    Finite,
    check_places,
    console_of,
    json_option,
    seed_option,
    table_or_json,
    tell_notes,
    trace_option,
    window_options,
)


@click.command(name="train")
@click.argument("predictor")
@trace_option()
@window_options
@click.option("--algorithm", metavar="NAME", help="lightgbm or xgboost for will-jobs-arrive; default: the first.")
@click.option("--horizons", metavar="LIST", help="Minutes between commas; default 5,60,720.")
@click.option("--coverage", type=Finite(0, 1, min_open=True, max_open=True), default=0.8, show_default=True)
@click.option("--miss-share", type=Finite(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@click.option("--min-jobs", type=click.IntRange(min=1), default=100, show_default=True, help="Of a pool that counts.")
@seed_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    predictor: str,
    trace_path: Path,
    from_s: float | None,
    until_s: float | None,
    algorithm: str | None,
    horizons: str | None,
    coverage: float,
    miss_share: float,
    min_jobs: int,
    seed: int,
    json_to: str | None,
) -> None:
    """Train PREDICTOR (will-jobs-arrive, new-load, job-duration) on [from, until) and register a new version.

    The new version gets the alias challenger; the first version of a name is champion too.
    Nothing at or after --until is read.

    \b
    Example:
      jobcast train will-jobs-arrive --trace jobs.parquet --until 2017-11-06 --algorithm lightgbm
    """
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.model_tables import training_table
    from jobcast.pipelines.recipes import TrainSettings, parse_horizons, recipe_of
    from jobcast.pipelines.training import train_and_register
    from jobcast.traces.readers import read_trace

    console = console_of(ctx)
    settings = TrainSettings(
        horizons_min=parse_horizons(horizons),
        miss_share=miss_share,
        coverage=coverage,
        seed=seed,
        min_train_jobs=min_jobs,
    )
    recipe_of(predictor, algorithm)
    home = find_home()
    check_places(json_to, (trace_path,), folders={"the store": home / "mlruns"})
    trace = read_trace(trace_path)
    with console.progress(f"train {predictor}") as step:
        result = train_and_register(predictor, algorithm, trace, from_s, until_s, settings, home=home, progress=step)
    tell_notes(trace, console)
    table_or_json(result, json_to, training_table(result), console)
