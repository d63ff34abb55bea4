"""`jobcast evaluate`: a registered predictor on later data."""

from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import JCT, means, place_options, refuse_foreign, refuse_options
from jobcast.pipelines.commands.table_predictors import (
    evaluate_curves,
    evaluate_epoch_time,
    points_option,
    prefix_option,
)
from jobcast.pipelines.forecast_specs import CURVES, EPOCH_TIME, REGIME

DRAWS = 400


@click.command(name="evaluate")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@options.trace_option()
@options.window_options
@click.option("--without", metavar="POOL", multiple=True, help="Figures without this pool too; may be repeated.")
@click.option("--ablation", is_flag=True, help="Train twins anew on fewer features (or without tags) and score them.")
@click.option("--paper-recipe/--no-paper-recipe", default=True, help="Train the paper's recipe as a rule to beat.")
@click.option("--draws", type=click.IntRange(min=0), default=DRAWS, show_default=True, help="Of days, for intervals.")
@place_options
@click.option("--every-job", "every", type=click.IntRange(min=1), help="jct: score each Nth job; default some 300.")
@prefix_option
@points_option
@options.set_option
@options.seed_option
@click.option("--out", metavar="DIR", type=options.FILE, help="Write tables and plots into this folder.")
@click.option("--log", is_flag=True, help="Keep figures, tables and plots in MLflow, beside the version.")
@options.overlap_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    predictor: str,
    trace_path: Path,
    from_s: float | None,
    until_s: float | None,
    without: tuple[str, ...],
    ablation: bool,
    paper_recipe: bool,
    draws: int,
    prefix: float | None,
    points: int | None,
    pairs: tuple[str, ...],
    seed: int,
    out: Path | None,
    log: bool,
    allow_overlap: bool,
    json_to: str | None,
    **asked: Any,
) -> None:
    """Score a registered version on [from, until), beside its baselines; what came before is history for features.

    With `jct`: coverage and width of intervals of completion times under any policy of whole or elastic jobs.

    With `accuracy-curve`: the error of the final metric, forecast from the first SHARE of each curve's epochs, and
    coverage and width of the intervals of the later ones.

    With `epoch-time`: the error of seconds an epoch, forecast from at most N points of each model and GPU type in a
    table of profiles. --set plan=NAME, batch=gpu|job, job=model|batch-size, draws=N.

    \b
    Example:
      jobcast evaluate will-jobs-arrive@challenger --trace jobs.parquet --from 2017-11-06 --json -
      jobcast evaluate regime --trace jobs.parquet --set throughputs=t.csv --set regimes=r.csv --set jitter=0.3
      jobcast evaluate accuracy-curve@challenger --trace curves.csv --prefix 0.2
      jobcast evaluate epoch-time@challenger --trace profiles.sqlite --points 3 --json -
      jobcast evaluate jct --trace elastic.parquet --from 2017-11-06 --policy srsf --gpus 64 --json -
    """
    if means(predictor, CURVES):
        evaluate_curves(ctx, predictor, trace_path, (from_s, until_s), prefix, pairs, allow_overlap, json_to)
        return
    refuse_foreign(CURVES, predictor, {"prefix": prefix})
    if means(predictor, EPOCH_TIME):
        evaluate_epoch_time(ctx, predictor, trace_path, points, pairs, seed, allow_overlap, json_to)
        return
    refuse_foreign(EPOCH_TIME, predictor, {"points": points})
    if predictor == JCT:
        from jobcast.pipelines.elastic.evaluate_command import evaluate_jct

        evaluate_jct(options.console_of(ctx), trace_path, (from_s, until_s), pairs, seed, json_to, **asked)
        return
    refuse_options(predictor, {**asked, "every-job": asked.pop("every")})
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.evaluating import evaluate_version
    from jobcast.pipelines.evaluation_files import evaluation_table, keep_evaluation
    from jobcast.pipelines.scoring import Wishes
    from jobcast.pipelines.tidying import tidy_home
    from jobcast.traces.readers import read_trace

    console, reference = options.console_of(ctx), parse_reference(predictor)
    options.check_places(json_to, (trace_path,), folders={"--out": out})
    given = options.settings_for(reference[0], REGIME, pairs)
    trace, home = read_trace(trace_path), tidy_home(console) if log else find_home()
    wishes = Wishes(tuple(dict.fromkeys(without)), ablation, paper_recipe, out is not None or log, draws, seed, given)
    with console.progress(f"evaluate {predictor}") as step:
        evaluated = evaluate_version(
            reference, trace, from_s, until_s, home=home, allow_overlap=allow_overlap, progress=step, wishes=wishes
        )
    result = keep_evaluation(evaluated, out, home if log else None)
    options.tell_notes(trace, console)
    options.table_or_json(result, json_to, evaluation_table(result), console)
