"""`jobcast models`: what the registry holds."""

from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.commands.options import check_places, console_of, json_option, table_or_json


@click.group(name="models")
def command() -> None:
    """List, show, promote, roll back and export registered versions.

    \b
    Example:
      jobcast models list
      jobcast models promote will-jobs-arrive:2
      jobcast models export will-jobs-arrive@champion exported
    """


@command.command(name="list")
@json_option
@click.pass_context
def list_models(ctx: click.Context, json_to: str | None) -> None:
    """All registered versions with their aliases.

    \b
    Example:
      jobcast models list --json -
    """
    from jobcast.models.registry import open_registry
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.model_tables import version_row, versions_table

    check_places(json_to)
    versions = open_registry(find_home()).list()
    rows = [version_row(version) for version in versions]
    table_or_json({"models": rows}, json_to, versions_table(versions), console_of(ctx))


@command.command(name="show")
@click.argument("name", metavar="NAME[@ALIAS|:VERSION]")
@json_option
@click.pass_context
def show_model(ctx: click.Context, name: str, json_to: str | None) -> None:
    """One version: what it was trained on, its figures, its run.

    \b
    Example:
      jobcast models show will-jobs-arrive@challenger
    """
    from jobcast.models.registry import open_registry
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.model_tables import details, version_row

    check_places(json_to)
    registry = open_registry(find_home())
    version = registry.resolve(*parse_reference(name))
    told: dict[str, Any] = {
        **version_row(version),
        "parameters": registry.parameters(version),
        "metrics": registry.metrics(version),
    }
    table_or_json(told, json_to, details(told), console_of(ctx))


@command.command(name="promote")
@click.argument("name", metavar="NAME:VERSION")
@click.option("--alias", default="champion", show_default=True, help="Alias to move.")
@click.pass_context
def promote_model(ctx: click.Context, name: str, alias: str) -> None:
    """Make a version the champion; `rollback` takes it back.

    \b
    Example:
      jobcast models promote will-jobs-arrive:2
    """
    from jobcast.domain.errors import ConfigError
    from jobcast.models.registry import open_registry
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference

    model, ref = parse_reference(name)
    if not isinstance(ref, int):
        raise ConfigError(f"{name}: name a version, as in {model}:2")
    open_registry(find_home()).promote(model, ref, alias=alias)
    console_of(ctx).result(f"{model}: {alias} is version {ref}")


@command.command(name="rollback")
@click.argument("name")
@click.pass_context
def rollback_model(ctx: click.Context, name: str) -> None:
    """Give the alias champion back to the version that held it before.

    \b
    Example:
      jobcast models rollback will-jobs-arrive
    """
    from jobcast.models.registry import open_registry
    from jobcast.models.registry.home import find_home

    version = open_registry(find_home()).rollback(name)
    console_of(ctx).result(f"{name}: champion is version {version.version} again")


@command.command(name="export")
@click.argument("name", metavar="NAME[@ALIAS|:VERSION]")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.pass_context
def export_model(ctx: click.Context, name: str, folder: Path) -> None:
    """Copy a version into a plain folder that loads without any database.

    \b
    Example:
      jobcast models export will-jobs-arrive@champion exported
    """
    from jobcast.models.registry import open_registry
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference

    registry = open_registry(find_home())
    version = registry.resolve(*parse_reference(name))
    check_places(None, folders={"DIR": folder})
    registry.export(version, folder)
    console_of(ctx).result(f"{version.name} {version.version}: {folder}")
