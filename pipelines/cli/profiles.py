"""`jobcast profiles`: tables of seconds an epoch, by model, batch size, GPU type and number of GPUs."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.group(name="profiles")
def command() -> None:
    """Import and show profiles: seconds an epoch by model, batch size, GPU type and number of GPUs.

    \b
    Example:
      jobcast profiles import throughputs.csv --out profiles.sqlite
      jobcast profiles show profiles.sqlite --model ResNet-18
    """


@command.command(name="import")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FILE)
@click.option(
    "--out",
    required=True,
    type=options.FILE,
    help="Table: .sqlite, .db, .csv or .parquet, by its ending.",
)
@click.option("--format", "kind", default="auto", show_default=True, help="auto, profiles, step-times, throughputs.")
@click.option(
    "--samples", "pairs", metavar="MODEL=N", multiple=True, help="Samples an epoch; N alone: of all other models."
)
@click.option("--gpu-type", metavar="NAME", help="Of step times (default t4), or the one of throughputs to take.")
@options.json_option
def import_command(
    sources: tuple[Path, ...],
    out: Path,
    kind: str,
    pairs: tuple[str, ...],
    gpu_type: str | None,
    json_to: str | None,
) -> None:
    """Bring measurements into a table of profiles.

    A SOURCE has the columns model, batch_size, gpu_type, gpus, epoch_s (profiles); app, num_nodes, num_replicas,
    local_bsz, step_time, sync_time (step-times, of one node); or gpu_type, model, batch_size, gpus, steps_per_second
    (throughputs). An existing SQLite file is merged into: rows with the same key are replaced.

    \b
    Example:
      jobcast profiles import throughputs.csv --out profiles.sqlite
      jobcast profiles import step_times.csv --out profiles.sqlite --samples 100000 --gpu-type t4
    """
    from jobcast.pipelines.lifecycle.profile_tables import ImportSettings, import_profiles, parse_samples

    # A database that is merged into must be there: it is no output to be refused.
    merged = out.suffix.lower() in (".sqlite", ".db") and out.exists()
    options.check_places(json_to, sources, {} if merged else {"--out": out})
    console = options.console_of()
    result = import_profiles(sources, out, ImportSettings(kind, parse_samples(pairs), gpu_type))
    console.note(*result["notes"])
    said = f"{result['added']} rows added, {result['replaced']} replaced" if merged else f"{result['rows']} rows"
    options.table_or_json(result, json_to, f"{out}: {said}; models {', '.join(result['models'])}", console)


@command.command(name="show")
@click.argument("file", type=options.FILE)
@click.option("--model", metavar="NAME", help="Its rows alone.")
@click.option("--gpu-type", metavar="NAME", help="Its rows alone.")
@options.json_option
def show_command(file: Path, model: str | None, gpu_type: str | None, json_to: str | None) -> None:
    """Show a table of profiles: seconds an epoch, a column a number of GPUs.

    \b
    Example:
      jobcast profiles show profiles.sqlite --model ResNet-18 --gpu-type v100
    """
    from jobcast.pipelines.lifecycle.profile_tables import show_profiles, shown

    options.check_places(json_to, (file,))
    result = show_profiles(file, model, gpu_type)
    options.table_or_json(result, json_to, shown(result), options.console_of())
