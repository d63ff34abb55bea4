"""`jobcast backtest`: policies x forecasts x windows x seeds against one baseline."""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.experiments.forecast_specs import HELP, split_forecasts
from jobcast.pipelines.report.files import COMMAND, write_json


@click.command(name="backtest", cls=options.PolicyCommand)
@options.trace_option()
@options.cluster_options
@click.option("--policies", required=True, metavar="A,B", help="Policies between commas, or all.")
@click.option(
    "--forecasts", metavar="K1,K2", help=f"Sources between commas: {HELP}; default: as of simulate, for each policy."
)
@options.window_options
@options.begin_option
@click.option("--windows", type=click.IntRange(min=1), default=1, show_default=True, help="Split the window in N.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Of forecasts that draw.")
@click.option("--baseline", default="fcfs", show_default=True, metavar="NAME", help="Policy to compare with.")
@click.option("--against", multiple=True, metavar="NAME", help="Compare all with this policy or row too; repeatable.")
@options.warmup_option
@options.loop_options
@options.law_option
@options.fit_options
@options.workers_option
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--out", type=options.FILE, help="Folder of the results and report.html.")
@options.timezone_option
@options.overlap_option
@options.degrade_option
@options.set_option
@options.json_option
def command(
    trace_path: Path,
    policies: str,
    forecasts: str | None,
    closed_loop: bool,
    max_think_s: float | None,
    out: Path | None,
    pairs: tuple[str, ...],
    json_to: str | None,
    **asked: Any,
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
    from jobcast.pipelines.cli.backtest_request import BacktestRequest, run_backtest
    from jobcast.pipelines.experiments.experiment import Experiment, beside_experiment
    from jobcast.pipelines.experiments.worlds import check_law
    from jobcast.pipelines.report.backtest_page import summary_table
    from jobcast.traces.readers import read_trace

    # Before anything is read: a full disk or a mistyped folder must not cost a replay.
    options.check_places(json_to, (trace_path, asked["pools"], asked["cluster"]), folders={"--out": out})
    request = BacktestRequest(
        policies=options.names_in(policies),
        forecasts=() if forecasts is None else tuple(split_forecasts(forecasts)),
        settings=settings_of(pairs),
        **beside_experiment(asked),
    )
    asked["max_think_s"] = options.asked_think_s(closed_loop, max_think_s)
    # Needs no trace.
    check_law(asked["law"], request.settings, asked["max_think_s"])
    console = options.console_of()
    experiment = Experiment.asked(read_trace(trace_path), asked)
    result = run_backtest(request, experiment, out=out, home=options.home_of(), console=console)
    if out:
        write_json(out / COMMAND, options.made_by())
    options.table_or_json({**result, **options.made_by()}, json_to, summary_table(result), console)
