"""`jobcast evaluate`: a registered predictor on later data."""

from pathlib import Path

import click

from jobcast.pipelines.commands.options import (
    check_places,
    console_of,
    json_option,
    overlap_option,
    table_or_json,
    tell_notes,
    trace_option,
    window_options,
)


@click.command(name="evaluate")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@trace_option()
@window_options
@overlap_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    predictor: str,
    trace_path: Path,
    from_s: float | None,
    until_s: float | None,
    allow_overlap: bool,
    json_to: str | None,
) -> None:
    """Score a registered version on [from, until), beside its baselines; what came before is history for features.

    \b
    Example:
      jobcast evaluate will-jobs-arrive@challenger --trace jobs.parquet --from 2017-11-06 --json -
    """
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.evaluating import evaluate_registered
    from jobcast.pipelines.evaluation_tables import evaluation_table
    from jobcast.traces.readers import read_trace

    console, reference = console_of(ctx), parse_reference(predictor)
    check_places(json_to, (trace_path,))
    trace = read_trace(trace_path)
    with console.progress(f"evaluate {predictor}") as step:
        result = evaluate_registered(
            reference, trace, from_s, until_s, home=find_home(), allow_overlap=allow_overlap, progress=step
        )
    tell_notes(trace, console)
    table_or_json(result, json_to, evaluation_table(result), console)
