"""`jobcast predict`: a predictor at an instant of a trace, when a job completes, or where training runs will end."""

from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import (
    JCT,
    means,
    place_options,
    question_options,
    refuse_foreign,
    refuse_options,
)
from jobcast.pipelines.commands.table_predictors import (
    completed_option,
    predict_curves,
    predict_epoch_time,
    run_options,
)
from jobcast.pipelines.forecast_specs import CURVES, EPOCH_TIME


@click.command(name="predict")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@options.trace_option()
@click.option("--at", "at_s", type=options.Instant(), help="The instant; nothing after it is read. Of traces.")
@click.option("--from", "from_s", type=options.Instant(), help="jct: the replay's beginning; earlier jobs are history.")
@place_options
@question_options
@run_options
@completed_option
@options.set_option
@options.seed_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    predictor: str,
    trace_path: Path,
    at_s: float | None,
    from_s: float | None,
    epochs: int | None,
    target: float | None,
    out: Path | None,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
    **asked: Any,
) -> None:
    """What a version says at an instant: arrivals and load by pool and horizon, or bins of unfinished jobs.

    With `jct`: when a job finishes under any policy, as a point and as 50 % and 90 % intervals over futures in
    which sizes and arrivals are drawn from what was seen before.

    With `accuracy-curve`: the final metric of running jobs with a 90 % interval, and with --target the probability
    that it is reached by the end, and the epoch when. FILE holds what was seen of each job; it needs no --at.

    With `epoch-time`: seconds an epoch of --set model=, batch_size=, gpu_type= (several between commas), gpus= (1 to
    N). FILE is a table of few profiled points; --out writes it completed. It needs no --at.

    \b
    Example:
      jobcast predict will-jobs-arrive --trace jobs.parquet --at 2017-11-20T09:00:00Z
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job 4711 --policy srsf --gpus 64
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job new --ask-gpus 4,8 --size-s 36000 \\
          --policy pcs --gpus 64 --set config=config.json --plot when.svg
      jobcast predict accuracy-curve --trace running.csv --epochs 100 --target 0.93
      jobcast predict epoch-time --trace few.csv --set model=ResNet-18 --set gpus=8 --out profiles.sqlite
    """
    if means(predictor, CURVES):
        predict_curves(ctx, predictor, trace_path, epochs, target, json_to)
        return
    refuse_foreign(CURVES, predictor, {"epochs": epochs, "target": target})
    if means(predictor, EPOCH_TIME):
        predict_epoch_time(ctx, predictor, trace_path, pairs, out, json_to)
        return
    refuse_foreign(EPOCH_TIME, predictor, {"out": out})
    if at_s is None:
        raise click.MissingParameter(ctx=ctx, param=next(one for one in ctx.command.params if one.name == "at_s"))
    if predictor == JCT:
        from jobcast.pipelines.elastic.predict_command import predict_jct

        predict_jct(options.console_of(ctx), trace_path, at_s, from_s, pairs, seed, json_to, **asked)
        return
    refuse_options(predictor, {**asked, "set": pairs, "from": from_s})
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.predicting import predict_at, prediction_table
    from jobcast.traces.readers import read_trace

    console, reference = options.console_of(ctx), parse_reference(predictor)
    options.check_places(json_to, (trace_path,))
    trace = read_trace(trace_path)
    result = predict_at(reference, trace, at_s, home=find_home())
    options.tell_notes(trace, console)
    options.table_or_json(result, json_to, prediction_table(result), console)
