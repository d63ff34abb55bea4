"""`jobcast run`: the main job."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options
from jobcast.pipelines.report.files import COMMAND, write_json


@click.command(name="run")
@click.option("--trace", metavar="NAME|FILE", help="campus (embedded, the default), philly, sia, or a file.")
@click.option("--pools", metavar="FILE", help="Quotas; default: the trace's own, else derived.")
@click.option("--out", type=options.FILE, help="Folder of the results; default: data/runs/NAME.")
@click.option("--params", "params_path", type=options.FILE, help="Default: params.yaml, else built in.")
@options.reading_options
@options.timezone_option
def command(trace: str | None, pools: str | None, out: Path | None, params_path: Path | None) -> None:
    """From a trace to registered predictors to a scheduler that uses them to a report of what they were worth.

    The three predictors become champions together, if the scheduler with them slows few jobs of the test window and is
    worth it (section promote of the parameters). Else there is no champion; the run and its report say why.

    \b
    Example:
      jobcast run
      JOBCAST_DATA=traces jobcast run --trace philly
      jobcast run --trace jobs.csv --pools pools.csv --out results
    """
    from jobcast.pipelines.stages.config import load_params
    from jobcast.pipelines.stages.context import Context
    from jobcast.pipelines.stages.plan import check_run, run

    home = options.home_of()
    params = load_params(params_path, home)
    # The line goes before the file of parameters.
    given = {key: value for key, value in (("trace", trace), ("pools", pools)) if value is not None}
    params = params.model_copy(update={"prepare": params.prepare.model_copy(update=given)})
    name = Path(params.prepare.trace).stem
    root, console = (out or home / "data/runs" / name).resolve(), options.console_of()
    # Before the store is swept: a mistake changes nothing.
    check_run(params, root, home, console)
    options.tidy_home(console, root)
    run(Context(params, root, home, console))
    write_json(root / COMMAND, options.made_by())
