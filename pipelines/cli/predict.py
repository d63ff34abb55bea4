"""`jobcast predict`: a predictor at an instant of a trace, when a job completes, or where training runs will end."""

from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.cli import options
from jobcast.pipelines.cli import predictor_options as predictors


@click.command(name="predict")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@options.trace_option()
@click.option(
    "--at", "at_s", type=options.Instant(), help="Nothing after it is read; default: the last that the trace tells of."
)
@click.option("--from", "from_s", type=options.Instant(), help="jct: the replay's beginning; earlier jobs are history.")
@predictors.place_options
@predictors.question_options
@options.set_option
@options.seed_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, /, predictor: str, trace_path: Path, json_to: str | None, **asked: Any) -> None:
    """What a version says at an instant: arrivals and load by pool and horizon, or bins of unfinished jobs.

    With `jct`: when jobs start and finish under any policy, in words, as a point and as 50 % and 90 % intervals over
    futures in which sizes and arrivals are drawn from what was seen before. Without --job all that wait or run are
    told of. Answers are kept: see `jobcast promises`.

    With `accuracy-curve`: the final metric of running jobs with a 90 % interval, and with --target the probability
    that it is reached by the end, and the epoch when. FILE holds what was seen of each job; it needs no --at.

    With `epoch-time`: seconds an epoch of --set model=, batch_size=, gpu_type= (several between commas), gpus= (1 to
    N). FILE is a table of few profiled points; --out writes it completed. It needs no --at.

    With `regime`: the batch sizes to come of the training jobs that run at the instant, epochs at each and the time
    left with 90 % intervals, from a trace with facts or --set throughputs=FILE and --set regimes=FILE.

    With `queue-wait`: how long each pending job will go on waiting, seconds from the instant (of a table of snapshots
    from its last one): the median, 50 % and 90 % intervals, and a bound that 90 % keep.

    \b
    Example:
      jobcast predict will-jobs-arrive --trace jobs.parquet --at 2017-11-20T09:00:00Z
      jobcast predict jct --trace jobs.parquet --pools pools.csv --policy fcfs --timezone Europe/Berlin
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job 4711 --policy srsf --gpus 64 \\
          --ask-gpus 2
      jobcast predict jct --trace elastic.parquet --at 2017-11-20T09:00:00Z --job new --ask-gpus 4,8 --size-s 36000 \\
          --policy pcs --gpus 64 --set config=config.json --plot when.svg
      jobcast predict regime --trace enriched/jobs.parquet --at 2017-11-20T09:00:00Z
      jobcast predict accuracy-curve --trace running.csv --epochs 100 --target 0.93
      jobcast predict epoch-time --trace few.csv --set model=ResNet-18 --set gpus=8 --out profiles.sqlite
    """
    if predictors.replays(ctx):
        predictors.replay(ctx, "predict")
        return
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.lifecycle.evaluation import predict_known

    reference = parse_reference(predictor)
    life, params = predictors.life_asked(ctx, "predict", reference[0])
    options.check_places(json_to, (trace_path,), {"--out": asked["out"]})
    result = predict_known(reference, life.known("predict", params), ctx.params, home=params.home)
    if not asked["no_ledger"] and (promises := life.promised(result)):
        from jobcast.models.promise_record import keep

        result["promises"] = keep(params.home, promises, options.console_of().note)
    predictors.tell(ctx, result, life.said("predict", result))
