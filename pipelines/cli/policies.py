"""`jobcast policies`: what policies there are, and what settings they take."""

import click

from jobcast.pipelines.cli import options


@click.command(name="policies")
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="The page of the documentation, which lists our own.")
@options.json_option
def command(name: str | None, markdown: bool, json_to: str | None) -> None:
    """List all policies, or tell what one is and which settings it takes.

    \b
    Example:
      jobcast policies
      jobcast policies sia
      jobcast policies shockwave --json -
    """
    from jobcast.pipelines.cli.reference_pages import (
        all_policies,
        policies_page,
        policies_table,
        policy_figures,
        policy_table,
    )
    from jobcast.schedulers.registry import find_policy

    if markdown:
        click.echo(policies_page(), nl=False)
    elif name is not None:
        result = policy_figures(find_policy(name))
        options.table_or_json(result, json_to, policy_table(result), options.console_of())
    else:
        rows = all_policies()
        options.table_or_json({"policies": rows}, json_to, policies_table(rows), options.console_of())
