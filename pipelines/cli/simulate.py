"""`jobcast simulate`: one policy, one source of forecasts, one window."""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.experiments.forecast_specs import HELP, parse_forecasts


@click.command(name="simulate", cls=options.PolicyCommand)
@options.trace_option()
@click.option("--policy", required=True, metavar="NAME", help="One of those below, or an installed one.")
@options.cluster_options
@click.option(
    "--forecasts",
    metavar="KIND",
    help=f"{HELP}; default registry, restatement for training jobs in rounds, declared sizes for elastic ones. SOURCE "
    "is one of the first ones; parts of mixed that are not named are the oracle's.",
)
@options.window_options
@options.begin_option
@options.limit_option
@options.warmup_option
@click.option(
    "--baseline", metavar="NAME", help="Policy to compare with, or none; default fcfs, none for training jobs."
)
@options.loop_options
@options.law_option
@click.option("--predict", is_flag=True, help="Forecast each job's completion at its submission.")
@options.fit_options
@options.overlap_option
@options.degrade_option
@options.seed_option
@options.set_option
@click.option("--out", type=options.FILE, help="One row a job: CSV or Parquet, by its ending.")
@options.json_option
def command(
    trace_path: Path,
    forecasts: str | None,
    closed_loop: bool,
    max_think_s: float | None,
    pairs: tuple[str, ...],
    **asked: Any,
) -> None:
    """Replay the jobs submitted in [from, until) to completion, from an empty cluster or the recorded jobs of --from.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --forecasts registry --json -
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --set slack=.1 --out log.csv
      jobcast simulate --trace jobs.parquet --cluster cluster.yaml --policy sia --set locality=true
      jobcast simulate --trace jobs.parquet --gpus 32 --policy srpt --set throughputs=t.csv --set regimes=r.csv
      jobcast simulate --trace elastic.parquet --gpus 64 --policy pcs --set config=c.json --set speedups=s.csv --predict
      jobcast simulate --trace jobs.parquet --gpus 80 --policy mlfs --set tasks=t.parquet --set curves=c.parquet
      jobcast simulate --trace jobs.parquet --cluster cluster.yaml --policy andreas --set profiles=p.csv --baseline edf
    """
    from jobcast.pipelines.cli.simulate_request import SimulateRequest, check_request, simulate_one
    from jobcast.pipelines.experiments.experiment import Experiment, beside_experiment
    from jobcast.pipelines.experiments.run_record import check_record
    from jobcast.pipelines.experiments.worlds import check_law
    from jobcast.traces.readers import read_trace

    spec = None if forecasts is None else parse_forecasts(forecasts)
    request = SimulateRequest(spec=spec, settings=settings_of(pairs), **beside_experiment(asked))
    asked["max_think_s"] = think_s = options.asked_think_s(closed_loop, max_think_s)
    check_law(asked["law"], request.settings, think_s)
    # All that needs no trace: reading one may take minutes.
    check_request(request, think_s)
    options.check_places(request.json_to, (trace_path, asked["pools"], asked["cluster"]), {"--out": request.out})
    # The record beside the table must have room, too.
    if request.out:
        check_record(request.out)
    experiment = Experiment.asked(read_trace(trace_path), asked)
    simulate_one(experiment, request, options.home_of(), options.console_of())
