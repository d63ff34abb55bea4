"""`jobcast predict`: a registered predictor at one instant of a trace."""

from pathlib import Path

import click

from jobcast.pipelines.commands.options import (
    Instant,
    check_places,
    console_of,
    json_option,
    table_or_json,
    tell_notes,
    trace_option,
)


@click.command(name="predict")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@trace_option()
@click.option("--at", "at_s", type=Instant(), required=True, help="The instant; nothing after it is read.")
@json_option
@click.pass_context
def command(ctx: click.Context, predictor: str, trace_path: Path, at_s: float, json_to: str | None) -> None:
    """What a version says at an instant: arrivals and load by pool and horizon, or bins of unfinished jobs.

    \b
    Example:
      jobcast predict will-jobs-arrive --trace jobs.parquet --at 2017-11-20T09:00:00Z
    """
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.predicting import predict_at, prediction_table
    from jobcast.traces.readers import read_trace

    console, reference = console_of(ctx), parse_reference(predictor)
    check_places(json_to, (trace_path,))
    trace = read_trace(trace_path)
    result = predict_at(reference, trace, at_s, home=find_home())
    tell_notes(trace, console)
    table_or_json(result, json_to, prediction_table(result), console)
