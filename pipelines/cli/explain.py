"""`jobcast explain`: what one job of a finished run held, why it waited, was helped or was slowed."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.command(name="explain")
@options.log_option
@click.option("--job", "job_id", required=True, metavar="ID", help="The job to explain.")
@options.log_pools_option
@click.option(
    "--what-if",
    "asked",
    multiple=True,
    metavar="gpus=N,pool=NAME",
    help="Forecast start and end had it asked for that, one or both; may be repeated. Replays the trace.",
)
@options.timezone_option
@options.json_option
def command(
    log_path: Path,
    job_id: str,
    pools_path: Path | None,
    asked: tuple[str, ...],
    json_to: str | None,
) -> None:
    """Tell why a job waited, was helped or was slowed: which jobs, reservations and forecasts.

    Read from the table of jobs that simulate wrote and the record beside it (LOG.run); nothing is replayed. Of any
    policy: what the job held, who held the GPUs while it waited, what was forecast of it; of those that start whole
    jobs from pools' quotas, such as fcfs, ssf, mmfs and sia, why too. With --what-if the run is replayed up to the
    job's submission, and played forward with other wishes of the job.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --forecasts registry --out log.csv
      jobcast explain --out log.csv --job 61333
      jobcast explain --out log.csv --job 61333 --json why.json
      jobcast explain --out log.csv --job 61333 --what-if gpus=2 --what-if pool=q2
    """
    from jobcast.pipelines.experiments.explain.explanation import explain
    from jobcast.pipelines.experiments.explain.narration import tell
    from jobcast.pipelines.experiments.explain.run_table import read_run_table

    console = options.console_of()
    options.check_places(json_to, (log_path, pools_path))
    table = read_run_table(log_path, pools_path)
    result = explain(table, job_id)
    # Replays import all policies; explaining reads two files.
    if asked:
        from jobcast.pipelines.experiments.explain.what_if import SAME_WORK, what_if
        from jobcast.pipelines.report.figure_lines import fidelity_line

        result["what_if"] = what_if(table, job_id, asked, options.home_of())
        # What other GPUs would change of its run time is assumed there, so it is said.
        near = result["what_if"][0].get("fidelity")
        result["notes"] += [f"fidelity by then: {fidelity_line(near)}"] if near else []
        result["notes"] += [SAME_WORK] if any("gpus" in one for one in asked) and table.by_pools else []
    console.note(*result["notes"])
    options.table_or_json(result, json_to, tell(result), console)
