"""`jobcast report`: the page of a finished run or backtest."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.command(name="report")
@click.argument("folder", metavar="DIR", type=options.FILE)
@options.timezone_option
def command(folder: Path) -> None:
    """Write the HTML report of the run or backtest in DIR, from the files that lie there.

    \b
    Example:
      jobcast report data/runs/campus
    """
    from jobcast.pipelines.stages.report import report_folder

    page = report_folder(folder)
    options.console_of().note(f"report: {page}")
