"""`jobcast evaluate`: a registered predictor on later data."""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.cli import options
from jobcast.pipelines.cli import predictor_options as predictors

DRAWS = 400


@click.command(name="evaluate")
@click.argument("predictor", metavar="PREDICTOR[@ALIAS|:VERSION]")
@options.trace_option()
@options.window_options
@click.option("--without", metavar="POOL", multiple=True, help="Figures without this pool too; may be repeated.")
@click.option("--ablation", is_flag=True, help="Train twins anew on fewer features (or without tags) and score them.")
@click.option("--paper-recipe/--no-paper-recipe", default=True, help="Train the paper's recipe as a rule to beat.")
@click.option("--smoothing", is_flag=True, help="Score statsforecast's AutoETS and CES too (arrivals and loads).")
@click.option("--draws", type=click.IntRange(min=0), default=DRAWS, show_default=True, help="Of days, for intervals.")
@predictors.place_options
@predictors.score_options
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
    without: tuple[str, ...],
    out: Path | None,
    log: bool,
    json_to: str | None,
    **asked: Any,
) -> None:
    """Score a registered version on [from, until), beside its baselines; what came before is history for features.

    With `jct`: coverage and width of intervals of completion times under any policy of whole or elastic jobs.

    With `accuracy-curve`: the error of the final metric, forecast from the first SHARE of each curve's epochs, and
    coverage and width of the intervals of the later ones.

    With `queue-wait`: the error of log10 of the wait of pending jobs, and coverage of its 90 % bound. With --retrain no
    version is asked: models are trained on the way, each on what was known then.

    With `epoch-time`: the error of seconds an epoch, forecast from at most N points of each model and GPU type in a
    table of profiles. --set plan=NAME, batch=gpu|job, job=model|batch-size, draws=N.

    \b
    Example:
      jobcast evaluate will-jobs-arrive@challenger --trace jobs.parquet --from 2017-11-06 --json -
      jobcast evaluate regime --trace jobs.parquet --set throughputs=t.csv --set regimes=r.csv --set jitter=0.3
      jobcast evaluate accuracy-curve@challenger --trace curves.csv --prefix 0.2
      jobcast evaluate epoch-time@challenger --trace profiles.sqlite --points 3 --json -
      jobcast evaluate queue-wait --trace waits.parquet --from 2021-06-10 --retrain weekly --json -
      jobcast evaluate jct --trace elastic.parquet --from 2017-11-06 --policy srsf --gpus 64 --json -
    """
    if predictors.replays(ctx):
        predictors.replay(ctx, "evaluate")
        return
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.lifecycle.evaluation import evaluate_known
    from jobcast.pipelines.lifecycle.evaluation_files import keep_evaluation
    from jobcast.pipelines.lifecycle.predictors.life import Wishes
    from jobcast.pipelines.lifecycle.retraining import parse_every

    console, reference = options.console_of(), parse_reference(predictor)
    life, params = predictors.life_asked(ctx, "evaluate", reference[0])
    options.check_places(json_to, (trace_path,), folders={"--out": out})
    if log and asked["retrain"] is not None:
        raise ConfigError("--log: keeps figures beside a version, and --retrain scores none; leave one of them out")
    # Only --log writes to the store, so that only it need be swept.
    known, home = life.known("evaluate", params), options.tidy_home(console) if log else params.home
    wishes = Wishes(
        without=tuple(dict.fromkeys(without)),
        # Points for plots cost as much as the figures.
        curves=out is not None or log,
        given=params.given,
        # The option itself has no default, which would look as if it had been given.
        prefix=predictors.PREFIX if asked["prefix"] is None else asked["prefix"],
        every_days=None if asked["retrain"] is None else parse_every(asked["retrain"]),
        **{name: asked[name] for name in ("ablation", "paper_recipe", "smoothing", "draws", "seed", "points")},
    )
    with console.progress(f"evaluate {predictor}") as step:
        how: dict[str, Any] = {"home": home, "allow_overlap": asked["allow_overlap"], "progress": step}
        evaluated = evaluate_known(reference, known, wishes=wishes, **how)
    result = keep_evaluation(evaluated, out, home if log else None)
    predictors.tell(ctx, result, life.said("evaluate", result))
