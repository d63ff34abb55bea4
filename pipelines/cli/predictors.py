"""`jobcast predictors`: what predictors there are, who asks them, and what they are measured by."""

import click

from jobcast.pipelines.cli import options


@click.command(name="predictors")
@click.option("--markdown", is_flag=True, help="The page of the documentation, which lists our own.")
@options.json_option
def command(markdown: bool, json_to: str | None) -> None:
    """List all predictors: the question of each, what it learns from, who asks it, and who decides on its versions.

    Versions that are registered are listed by `jobcast models list`.

    \b
    Example:
      jobcast predictors
      jobcast predictors --json -
    """
    from jobcast.pipelines.cli.reference_pages import all_predictors, predictors_page, predictors_table

    if markdown:
        click.echo(predictors_page(), nl=False)
    else:
        rows = all_predictors()
        options.table_or_json({"predictors": rows}, json_to, predictors_table(rows), options.console_of())
