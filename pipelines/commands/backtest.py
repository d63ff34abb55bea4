"""`jobcast backtest`: policies x forecasts x windows x seeds against one baseline."""

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
    set_option,
    settings_of,
    table_or_json,
    trace_option,
    warmup_option,
    window_options,
)
from jobcast.pipelines.forecast_specs import HELP


@click.command(name="backtest", cls=PolicyCommand)
@trace_option()
@click.option("--pools", "pools_path", type=click.Path(path_type=Path), help="Quotas: CSV pool,gpus[,from][,cells].")
@click.option(
    "--cluster", "cluster_path", type=click.Path(path_type=Path), help="Cluster: YAML of nodes, pools, watts, prices."
)
@click.option("--gpus", type=click.IntRange(min=1), help="A flat cluster of N GPUs, pools ignored.")
@click.option("--policies", required=True, metavar="A,B", help="Policies between commas, or all.")
@click.option(
    "--forecasts", metavar="K1,K2", help=f"Sources between commas: {HELP}; default: as of simulate, for each policy."
)
@window_options
@click.option("--windows", type=click.IntRange(min=1), default=1, show_default=True, help="Split the window in N.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Of forecasts that draw.")
@click.option("--baseline", default="fcfs", show_default=True, metavar="NAME", help="Policy to compare with.")
@click.option("--against", multiple=True, metavar="NAME", help="Compare all with this policy or row too; repeatable.")
@warmup_option
@loop_options
@law_option
@click.option("--drop-too-wide", is_flag=True, help="Drop and count jobs wider than their pool.")
@click.option("--pools-only", is_flag=True, help="Drop and count jobs of pools without capacity.")
@click.option("--jobs", type=click.IntRange(min=1), help="Simulations at a time; default: one a core.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the results and report.html.")
@overlap_option
@degrade_option
@set_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    trace_path: Path,
    pools_path: Path | None,
    cluster_path: Path | None,
    gpus: int | None,
    policies: str,
    forecasts: str | None,
    from_s: float | None,
    until_s: float | None,
    windows: int,
    seeds: int,
    baseline: str,
    against: tuple[str, ...],
    warmup_days: float,
    closed_loop: bool,
    law: str | None,
    max_think_s: float | None,
    drop_too_wide: bool,
    pools_only: bool,
    jobs: int | None,
    engine: str,
    out: Path | None,
    allow_overlap: bool,
    degrade: bool,
    pairs: tuple[str, ...],
    json_to: str | None,
) -> None:
    """Any schedulers on one trace in one table, and what forecasts and their versions are worth to each: gains with
    paired intervals, and a report.

    Policies of every kind may be named together; `all` replays every one that can run and lists what the others lack.
    Rows are compared with the baseline job by job, those under which jobs progress by another law with whoever serves
    that in order of arrival. `trace enrich` supplies what a plain trace lacks.

    With --set, policies that know the setting are replayed both without it and with it; locality=true puts them all on
    servers.

    \b
    Example:
      jobcast backtest --trace jobs.parquet --pools pools.csv --policies mmfs,sia \\
        --forecasts oracle,registry,registry:challenger,random --seeds 3 --out results
      jobcast backtest --trace enriched/jobs.parquet --cluster cluster.yaml --policies all --forecasts oracle --out all
    """
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.backtest_command import BacktestRequest, run_backtest
    from jobcast.pipelines.forecast_specs import split_forecasts
    from jobcast.pipelines.report import summary_table
    from jobcast.pipelines.worlds import check_law
    from jobcast.traces.readers import read_trace

    check_places(json_to, (trace_path, pools_path, cluster_path), folders={"--out": out})
    request = BacktestRequest(
        policies=tuple(name.strip() for name in policies.split(",") if name.strip()),
        forecasts=() if forecasts is None else tuple(split_forecasts(forecasts)),
        pools=pools_path,
        cluster=cluster_path,
        gpus=gpus,
        from_s=from_s,
        until_s=until_s,
        windows=windows,
        seeds=seeds,
        baseline=baseline,
        against=against,
        warmup_days=warmup_days,
        drop_too_wide=drop_too_wide,
        pools_only=pools_only,
        jobs=jobs,
        engine=engine,
        allow_overlap=allow_overlap,
        degrade=degrade,
        settings=settings_of(pairs),
        max_think_s=asked_think_s(closed_loop, max_think_s),
        law=law,
    )
    check_law(law, request.settings, request.max_think_s)
    console = console_of(ctx)
    result = run_backtest(request, read_trace(trace_path), out=out, home=find_home(), console=console)
    table_or_json(result, json_to, summary_table(result), console)
