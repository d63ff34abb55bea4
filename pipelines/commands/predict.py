"""`jobcast predict`: a registered predictor at one instant of a trace, or a job's completion time."""

from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.commands.jct_options import JCT, place_options, question_options, refuse_options
from jobcast.pipelines.commands.options import (
    Instant,
    check_places,
    console_of,
    json_option,
    seed_option,
    set_option,
    table_or_json,
    tell_notes,
    trace_option,
)


@click.command(name="predict")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@trace_option()
@click.option("--at", "at_s", type=Instant(), required=True, help="The instant; nothing after it is read.")
@click.option("--from", "from_s", type=Instant(), help="jct: the replay's beginning; earlier jobs are history.")
@place_options
@question_options
@set_option
@seed_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    predictor: str,
    trace_path: Path,
    at_s: float,
    from_s: float | None,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
    **asked: Any,
) -> None:
    """What a version says at an instant: arrivals and load by pool and horizon, or bins of unfinished jobs.

    With `jct`: when a job finishes under an elastic policy, as a point and as 50 % and 90 % intervals over futures in
    which sizes and arrivals are drawn from what was seen before.

    \b
    Example:
      jobcast predict will-jobs-arrive --trace jobs.parquet --at 2017-11-20T09:00:00Z
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job 4711 --policy srsf --gpus 64
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job new --ask-gpus 4,8 --size-s 36000 \\
          --policy pcs --gpus 64 --set config=config.json --plot when.svg
    """
    if predictor == JCT:
        from jobcast.pipelines.elastic.predict_command import predict_jct

        predict_jct(console_of(ctx), trace_path, at_s, from_s, pairs, seed, json_to, **asked)
        return
    refuse_options(predictor, {**asked, "set": pairs, "from": from_s})
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
