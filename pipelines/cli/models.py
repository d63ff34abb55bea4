"""`jobcast models`: what the registry holds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.cli.predictor_options import watched_table


@click.group(name="models")
def command() -> None:
    """List, show, promote, roll back, restore and export registered versions.

    \b
    Example:
      jobcast models list
      jobcast models promote will-jobs-arrive:2
      jobcast models export will-jobs-arrive@champion exported
    """


@command.command(name="list")
@options.json_option
def list_models(json_to: str | None) -> None:
    """All registered versions with their aliases.

    \b
    Example:
      jobcast models list --json -
    """
    from jobcast.pipelines.report.model_tables import version_row, versions_table

    options.check_places(json_to)
    registry = options.registry_of()
    versions = registry.list()
    result = {"models": [version_row(version) for version in versions], **registry.staleness()}
    options.table_or_json(result, json_to, versions_table(versions), options.console_of())


@command.command(name="show")
@click.argument("name", metavar="NAME[@ALIAS|:VERSION]")
@options.json_option
def show_model(name: str, json_to: str | None) -> None:
    """One version: what it was trained on, its figures, its run.

    \b
    Example:
      jobcast models show will-jobs-arrive@challenger
    """
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.report.model_tables import details, version_details

    options.check_places(json_to)
    registry = options.registry_of()
    result = version_details(registry, registry.resolve(*parse_reference(name)))
    options.table_or_json(result, json_to, details(result), options.console_of())


@command.command(name="promote")
@click.argument("name", metavar="NAME:VERSION")
@options.trace_option(required=False)
@options.cluster_options
@options.window_options
@click.option("--alias", default="champion", show_default=True, help="Alias to move.")
@click.option("--force", is_flag=True, help="Promote a version that did worse, too.")
@options.overlap_option
@options.set_option
@options.json_option
@click.pass_context
def promote_model(
    ctx: click.Context,
    /,
    name: str,
    trace_path: Path | None,
    alias: str,
    force: bool,
    pairs: tuple[str, ...],
    json_to: str | None,
    **of_window: Any,
) -> None:
    """Make a version the champion; `rollback` takes it back.

    With --trace it is compared with the champion first, on [from, until), which neither may have seen (default: from
    the latest end of a training to the end of the trace): by its figures with paired intervals, and by replays of the
    policies that ask for it. It is refused when its main figure is worse beyond doubt, or a policy loses more than its
    bounds: sia and ssf slow .5 percentage points more of the jobs, or lose 5 % of their speedup; docs/lifecycle.md
    tells those of shockwave (regime), mlfs (accuracy-curve), andreas (epoch-time), mlf_rl and device_rl.

    accuracy-curve and epoch-time are compared on a file of curves or profiles as well, without any replay.

    \b
    Example:
      jobcast models promote will-jobs-arrive:2 --trace jobs.parquet --pools pools.csv --from 2017-11-06
      jobcast models promote epoch-time:2 --trace enriched/jobs.parquet --cluster nodes.yaml
    """
    from jobcast.models.registry.references import check_alias, parse_reference
    from jobcast.pipelines.lifecycle.promotion import compare, compare_tables, promote, promotion_table, refuse
    from jobcast.pipelines.lifecycle.replay_judges import Window
    from jobcast.pipelines.lifecycle.standards import standards_of
    from jobcast.traces.readers import read_trace

    model, ref = parse_reference(name)
    # An alias may move while the versions are compared.
    if not isinstance(ref, int):
        raise ConfigError(f"{name}: name a version, as in {model}:2")
    check_alias(alias)
    # Flags are False, all else is None where nobody asked.
    alone = [name for name, value in of_window.items() if value is not None and value is not False]
    if trace_path is None and alone:
        option = alone[0].removesuffix("_s").replace("_", "-")
        raise ConfigError(f"--{option}: is for a comparison; add --trace FILE or leave it out")
    if trace_path is None and pairs:
        raise ConfigError("--set: is for a comparison; add --trace FILE or leave it out")
    options.check_places(json_to, (trace_path, of_window["pools"], of_window["cluster"]))
    console = options.console_of()
    act: Callable[..., dict[str, Any]] | None = None
    with console.progress(f"compare {name}") as step:
        if trace_path is not None:
            standards_of("models promote --trace", model)
            facts, alone = watched_table(ctx, model, ("name", "alias", "force", "allow_overlap"))
            if alone is not None:
                act = partial(compare_tables, table=alone, allow_overlap=of_window["allow_overlap"])
            else:
                window = Window(read_trace(trace_path), given=settings_of(pairs), **of_window)
                act = partial(compare, window=window, facts=facts, progress=step)
        result = promote(model, ref, alias, act, force=force, home=options.tidy_home(console))
    if not result["compared"]:
        console.note(f"nothing was compared: {'no --trace was given' if act is None else f'it is {alias} already'}")
    options.table_or_json(result, json_to, promotion_table(result), console)
    # After the table and the JSON: who is refused wants to see why.
    refuse(result)


@command.command(name="rollback")
@click.argument("name")
def rollback_model(name: str) -> None:
    """Give the alias champion back to the version that held it before.

    \b
    Example:
      jobcast models rollback will-jobs-arrive
    """

    console = options.console_of()
    options.tidy_home(console)
    version = options.registry_of().rollback(name)
    console.result(f"{name}: champion is version {version.version} again")


@command.command(name="restore")
@click.argument("folder", metavar="[DIR]", type=options.FILE, required=False)
@options.json_option
def restore_models(folder: Path | None, json_to: str | None) -> None:
    """Register the trained models in a pipeline's files, as `dvc pull` brings them; DIR is the project's data.

    A model that is registered already keeps its version. Where there is no champion, the models that passed the gate
    become champions.

    \b
    Example:
      dvc pull && jobcast models restore
    """
    from jobcast.pipelines.lifecycle.model_files import restore
    from jobcast.pipelines.report.model_tables import version_row, versions_table

    options.check_places(json_to)
    # `[DIR]` is looked for below the home, not below the working folder.
    console, home = options.console_of(), options.home_of()
    found = restore(folder or home / "data", options.tidy_home(console))
    versions = options.registry_of().list()
    console.note(", ".join(f"{key}: {len(of)}" for key, of in found.items()))
    rows = {key: [str(version) for version in of] for key, of in found.items()}
    result = {**rows, "models": [version_row(version) for version in versions]}
    options.table_or_json(result, json_to, versions_table(versions), console)


@command.command(name="export")
@click.argument("name", metavar="NAME[@ALIAS|:VERSION]")
@click.argument("folder", metavar="DIR", type=options.FILE)
def export_model(name: str, folder: Path) -> None:
    """Copy a version into a plain folder that loads without any database.

    \b
    Example:
      jobcast models export will-jobs-arrive@champion exported
    """
    from jobcast.models.registry.references import parse_reference

    registry = options.registry_of()
    version = registry.resolve(*parse_reference(name))
    # After the version was found: a wrong name is the likelier mistake.
    options.check_places(None, folders={"DIR": folder})
    registry.export(version, folder)
    options.console_of().result(f"{version.name} {version.version}: {folder}")
