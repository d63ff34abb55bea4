"""`jobcast simulate`: one policy, one source of forecasts, one window."""

from pathlib import Path

import click

from jobcast.pipelines.commands.loop_options import asked_think_s, loop_options
from jobcast.pipelines.commands.options import (
    PolicyCommand,
    check_places,
    console_of,
    degrade_option,
    json_option,
    law_option,
    overlap_option,
    seed_option,
    set_option,
    settings_of,
    trace_option,
    warmup_option,
    window_options,
)
from jobcast.pipelines.forecast_specs import HELP


@click.command(name="simulate", cls=PolicyCommand)
@trace_option()
@click.option(
    "--policy",
    required=True,
    metavar="NAME",
    help="One of those below, or an installed one.",
)
@click.option("--pools", "pools_path", type=click.Path(path_type=Path), help="Quotas: CSV pool,gpus[,from][,cells].")
@click.option(
    "--cluster", "cluster_path", type=click.Path(path_type=Path), help="Cluster: YAML of nodes, pools, watts, prices."
)
@click.option("--gpus", type=click.IntRange(min=1), help="A flat cluster of N GPUs, pools ignored.")
@click.option(
    "--forecasts",
    metavar="KIND",
    help=f"{HELP}; default registry, restatement for training jobs in rounds, declared sizes for elastic ones. SOURCE "
    "is one of the first ones; parts of mixed that are not named are the oracle's.",
)
@window_options
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N jobs of the window.")
@warmup_option
@click.option(
    "--baseline", metavar="NAME", help="Policy to compare with, or none; default fcfs, none for training jobs."
)
@loop_options
@law_option
@click.option("--predict", is_flag=True, help="Forecast each job's completion at its submission (elastic policies).")
@click.option("--drop-too-wide", is_flag=True, help="Drop and count jobs wider than their pool.")
@click.option("--pools-only", is_flag=True, help="Drop and count jobs of pools without capacity.")
@overlap_option
@degrade_option
@seed_option
@set_option
@click.option("--out", type=click.Path(path_type=Path), help="One row a job: CSV or Parquet, by its ending.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    trace_path: Path,
    policy: str,
    pools_path: Path | None,
    cluster_path: Path | None,
    gpus: int | None,
    forecasts: str | None,
    from_s: float | None,
    until_s: float | None,
    limit: int | None,
    warmup_days: float,
    baseline: str | None,
    closed_loop: bool,
    law: str | None,
    max_think_s: float | None,
    predict: bool,
    drop_too_wide: bool,
    pools_only: bool,
    allow_overlap: bool,
    degrade: bool,
    seed: int,
    pairs: tuple[str, ...],
    out: Path | None,
    json_to: str | None,
) -> None:
    """Replay the jobs submitted in [from, until) to completion, from an empty cluster.

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
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.clusters import named_cluster
    from jobcast.pipelines.experiment import Experiment
    from jobcast.pipelines.forecast_specs import parse_forecasts
    from jobcast.pipelines.run_record import check_record
    from jobcast.pipelines.simulate_command import SimulateRequest, check_request, simulate_one
    from jobcast.pipelines.worlds import check_law
    from jobcast.traces.readers import read_trace

    request = SimulateRequest(
        policy=policy,
        baseline=baseline,
        spec=None if forecasts is None else parse_forecasts(forecasts),
        settings=settings_of(pairs),
        warmup_days=warmup_days,
        predict=predict,
        seed=seed,
        allow_overlap=allow_overlap,
        degrade=degrade,
        out=out,
        json_to=json_to,
    )
    think_s = asked_think_s(closed_loop, max_think_s)
    check_law(law, request.settings, think_s)
    check_request(request, think_s)
    check_places(json_to, (trace_path, pools_path, cluster_path), {"--out": out})
    if out:
        check_record(out)
    trace = read_trace(trace_path)
    experiment = Experiment(
        trace=trace,
        cluster=named_cluster(trace, pools=pools_path, cluster=cluster_path, gpus=gpus, from_s=from_s),
        from_s=from_s,
        until_s=until_s,
        limit=limit,
        drop_wide=drop_too_wide,
        only_pools=pools_only,
        max_think_s=think_s,
        law=law,
    )
    simulate_one(experiment, request, find_home(), console_of(ctx))
