"""`jobcast trace speedups`: a speedup table from measured step times."""

from pathlib import Path

import click

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands import options


@click.command(name="speedups")
@click.argument("step_times", metavar="STEP_TIMES", type=options.FILE)
@click.option("--out", required=True, type=options.FILE, help="CSV or Parquet, by its ending.")
@click.option(
    "--fit",
    default="best",
    show_default=True,
    metavar="NAME",
    help="throughput (Pollux's model), amdahl, power, table, or best: by app, the one that errs least.",
)
@click.option("--most", "most_gpus", type=int, default=16, show_default=True, help="GPUs of the last row.")
@click.option("--gpus-per-node", type=int, default=4, show_default=True, help="Of the cluster that was measured.")
@click.option(
    "--batch-size",
    "pairs",
    metavar="APP=N",
    multiple=True,
    help="Total batch size; default: what one GPU holds, or what --most GPUs can share. May be repeated.",
)
@options.json_option
@click.pass_context
def speedups(
    ctx: click.Context,
    step_times: Path,
    out: Path,
    fit: str,
    most_gpus: int,
    gpus_per_node: int,
    pairs: tuple[str, ...],
    json_to: str | None,
) -> None:
    """Make a table of speedups from a CSV of measured step times.

    STEP_TIMES has the columns app, num_nodes, num_replicas, local_bsz, step_time, sync_time. The table serves elastic
    policies as --set speedups=FILE. Errors are those on configurations that a fit did not see.

    \b
    Example:
      jobcast trace speedups step_times.csv --out speedups.csv
      jobcast trace speedups step_times.csv --out speedups.csv --fit amdahl --most 8 --batch-size bert=24
    """
    from jobcast.pipelines.speedups import make_speedups, speedups_text

    options.check_places(json_to, (step_times,), {"--out": out})
    sizes = {}
    for pair in pairs:
        app, equals, size = pair.partition("=")
        if not equals or not app:
            raise ConfigError(f"--batch-size {pair}: write --batch-size APP=N")
        sizes[app] = size
    result = make_speedups(step_times, out, fit, most_gpus, gpus_per_node, sizes)
    console = options.console_of(ctx)
    console.note(f"{out}: {len(result['apps'])} models, 1 to {most_gpus} GPUs")
    options.table_or_json(result, json_to, speedups_text(result), console)
