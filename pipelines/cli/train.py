"""`jobcast train`: a predictor becomes a registered version, or a version a week in a walk through a trace."""

from typing import TYPE_CHECKING, Any

import click

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.cli import options
from jobcast.pipelines.cli.predictor_options import life_asked, tell

if TYPE_CHECKING:
    from jobcast.pipelines.lifecycle.retraining import Schedule

COVERAGE = 0.95
"""Share of the windows whose load the estimate shall reach, where nothing else is asked for."""


ALGORITHMS = (
    "will-jobs-arrive: auto, lightgbm, xgboost, logistic, extra-trees, average, paper; "
    "new-load: auto, quantile, sliding-max, paper; "
    "job-duration: auto, blended, lightgbm, tag-pool-width, last-n, paper; regime: hierarchical; "
    "accuracy-curve: combination, bayes; epoch-time: steps; "
    "completion-time: futures; job-size: pooled; queue-wait: hazard; goodput: pollux"
)
"""What the recipes know, the default first; written down here, for importing them would make help slow."""


@click.command(name="train")
@click.argument("predictor")
@options.trace_option()
@options.window_options
@click.option("--algorithm", metavar="NAME", help=f"{ALGORITHMS}. Default: the first.")
@click.option("--tune", type=click.IntRange(min=0), default=0, metavar="N", help="Search settings with N trials.")
@click.option("--horizons", metavar="LIST", help="Minutes between commas; default 5,60,720.")
@click.option(
    "--coverage",
    type=options.Finite(0, 1, min_open=True, max_open=True),
    default=COVERAGE,
    show_default=True,
    help="Of the load windows (new-load).",
)
@click.option(
    "--miss-share",
    type=options.Finite(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Of the windows with arrivals that the gate may miss (will-jobs-arrive).",
)
@click.option(
    "--under-cost",
    type=options.Finite(0, min_open=True),
    default=100.0,
    show_default=True,
    help="Of an hour's overstay on all lenders' GPUs, in bins too long (job-duration).",
)
@click.option(
    "--min-jobs",
    "min_train_jobs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Of a pool that counts.",
)
@click.option("--retrain", metavar="EVERY", help="Walk forward: weekly, daily or Nd (days).")
@click.option(
    "--first", "first_weeks", type=options.Finite(0, min_open=True), metavar="WEEKS", help="Of a walk; default 3."
)
@click.option(
    "--window-days", type=options.Finite(0, min_open=True), metavar="N", help="Of a walk: look back so far only."
)
@options.set_option
@options.seed_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    predictor: str,
    retrain: str | None,
    first_weeks: float | None,
    window_days: float | None,
    **_: Any,
) -> None:
    """Train PREDICTOR on [from, until) and register a new version.

    PREDICTOR: will-jobs-arrive, new-load, job-duration, regime, accuracy-curve, epoch-time,
    completion-time, job-size, queue-wait, goodput, mlf-policy, device-rl.

    The new version gets the alias challenger; the first version of a name is champion too.
    Nothing at or after --until is read.

    With --retrain, a version is trained at the end of the first WEEKS and of every week (day, N days) after them, on
    all since --from, and scored on the week that follows, beside the version that was trained first. A repeated
    command goes on where an interrupted one stopped.

    regime learns from jobs that were over at --until, and reads --set throughputs=FILE and --set regimes=FILE (and
    datasets, gpu_type, jitter, calibration, steps); it does not walk.

    accuracy-curve learns from a CSV of app, batch_size, epoch, metric (and lr_milestones): all of it, for curves have
    no calendar. bayes learns its priors with PyMC, a minute and more for each application and once for all.

    epoch-time learns from a table of profiles, as `jobcast profiles import` writes it: all of it.

    queue-wait learns from pending jobs, with GPUs or without, of a trace that has starts or of a table of snapshots;
    those that still waited at --until count for as long as they had.

    goodput learns from step times by application: a CSV, or those beside a trace of jobs.

    All three learn as well from a trace of jobs, of those that were over at --until: --set curves=FILE, --set
    profiles=FILE, --set step_times=FILE.

    mlf-policy and device-rl are schedulers that learn from replays of jobs of tasks: --set tasks=FILE, --set
    curves=FILE, --set gpus=N or cluster=FILE, --set iterations=N; they need the extra rl.

    Tables that `jobcast trace enrich` wrote beside the trace need no --set.

    \b
    Example:
      jobcast train will-jobs-arrive --trace jobs.parquet --until 2017-11-06 --tune 30
      jobcast train regime --trace jobs.parquet --set throughputs=t.csv --set regimes=r.csv
      jobcast train accuracy-curve --trace curves.csv
      jobcast train accuracy-curve --trace enriched/jobs.parquet --until 2017-11-06
      jobcast train epoch-time --trace profiles.sqlite
      jobcast train mlf-policy --trace jobs.parquet --set tasks=t.parquet --set curves=c.parquet
      jobcast train new-load --trace jobs.parquet --from 2017-10-02 --until 2017-11-27 --retrain weekly
    """
    from jobcast.models.predictors import PREDICTORS
    from jobcast.pipelines.lifecycle.training import train_version

    # Options that do not go with the predictor are refused first of all.
    life, asked = life_asked(ctx, "train", predictor)
    schedule = _schedule(retrain, first_weeks, window_days)
    if schedule is not None and not life.walks:
        raise ConfigError(f"--retrain: {predictor} does not walk through a trace; leave it out")
    one = life.asked(PREDICTORS[predictor], asked)
    console, home = options.console_of(), asked.home
    inputs, store = (asked.path, *life.files(asked)), {"the store": home / "mlruns"}
    # Before the store is swept, which may wait for others.
    options.check_places(asked["json_to"], inputs, folders=store)
    options.tidy_home(console)
    with console.progress(f"train {predictor}") as step:
        known = life.known("train", asked)
        if schedule is None:
            result = train_version(one, known, home=home, progress=step)
            table = life.said("train", result)
        else:
            from jobcast.pipelines.lifecycle.retraining import Walk, retraining_table, walk_forward

            walk = Walk.of(one, known.jobs, *asked.window, schedule=schedule, home=home)  # type: ignore[arg-type]
            result = walk_forward(walk, step)
            table = retraining_table(result)
    tell(ctx, result, table)


def _schedule(retrain: str | None, first_weeks: float | None, window_days: float | None) -> "Schedule | None":
    from jobcast.pipelines.lifecycle.retraining import FIRST_WEEKS, Schedule, parse_every

    # Options of a walk without one would be ignored: refused.
    if retrain is None:
        for option, value in (("--first", first_weeks), ("--window-days", window_days)):
            if value is not None:
                raise ConfigError(f"{option}: is of a walk through the trace; add --retrain weekly or leave it out")
        return None
    return Schedule(parse_every(retrain), FIRST_WEEKS if first_weeks is None else first_weeks, window_days)
