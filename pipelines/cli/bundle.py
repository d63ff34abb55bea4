"""`jobcast bundle`: a result with all that made it, in one file."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.command(name="bundle")
@click.argument("result", metavar="DIR|FILE", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=options.FILE, required=True, metavar="FILE.zip", help="The bundle.")
@click.option("--with-trace", is_flag=True, help="Pack the trace itself, not its hash alone.")
@click.option("--with-models/--without-models", default=None, help="Default: where they take at most 20 MB.")
def command(result: Path, out: Path, with_trace: bool, with_models: bool | None) -> None:
    """Pack a result (DIR|FILE) with its command, hashes of its inputs, seeds, versions, settings, models and figures.

    FILE is what simulate, backtest or evaluate wrote by --json; DIR what backtest or run wrote by --out. Say it in the
    folder that the command ran in: it names its inputs from there.

    \b
    Example:
      jobcast simulate --trace jobs.parquet --pools pools.csv --policy sia --forecasts registry --json sia.json
      jobcast bundle sia.json --out sia.zip --with-trace
      jobcast verify sia.zip
    """
    from jobcast.pipelines.lifecycle.bundles import make_bundle

    options.check_places(None, (result,), {"--out": out})
    manifest = make_bundle(result, out, with_trace=with_trace, with_models=with_models)
    packed = [name for name, one in manifest["inputs"].items() if one["packed"]]
    named = [name for name in manifest["inputs"] if name not in packed]
    console = options.console_of()
    console.result(f"{out}: jobcast {' '.join(manifest['command'])}")
    console.note(f"packed: {', '.join(packed) or 'no input'}; by hash alone: {', '.join(named) or 'none'}")
