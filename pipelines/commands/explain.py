"""`jobcast explain`: what one job of a finished run held, why it waited, was helped or was slowed."""

from pathlib import Path

import click

from jobcast.pipelines.commands import options


@click.command(name="explain")
@click.option(
    "--out",
    "log_path",
    required=True,
    metavar="LOG",
    type=options.FILE,
    help="What simulate --out wrote: CSV or Parquet.",
)
@click.option("--job", "job_id", required=True, metavar="ID", help="The job to explain.")
@click.option(
    "--pools",
    "pools_path",
    type=options.FILE,
    help="Quotas, for a log whose record is missing: CSV pool,gpus[,from].",
)
@options.json_option
@click.pass_context
def command(ctx: click.Context, log_path: Path, job_id: str, pools_path: Path | None, json_to: str | None) -> None:
    """Tell why a job waited, was helped or was slowed: which jobs, reservations and forecasts.

    Read from the table of jobs that simulate wrote and the record beside it (LOG.run); nothing is replayed. Of any
    policy: what the job held, who held the GPUs while it waited, what was forecast of it; of those that start whole
    jobs from pools' quotas, such as fcfs, ssf, mmfs and sia, why too.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --forecasts registry --out log.csv
      jobcast explain --out log.csv --job 61333
      jobcast explain --out log.csv --job 61333 --json why.json
    """
    from jobcast.pipelines.explain.explaining import explain
    from jobcast.pipelines.explain.run_table import read_run_table
    from jobcast.pipelines.explain.telling import tell

    console = options.console_of(ctx)
    options.check_places(json_to, (log_path, pools_path))
    told = explain(read_run_table(log_path, pools_path), job_id)
    for note in told["notes"]:
        console.note(note)
    options.table_or_json(told, json_to, tell(told), console)
