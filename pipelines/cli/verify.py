"""`jobcast verify`: runs what a bundle holds again, and compares."""

from dataclasses import asdict
from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.command(name="verify")
@click.argument("bundle", metavar="FILE.zip", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--trace", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="If it is not packed.")
@options.json_option
@click.pass_context
def command(ctx: click.Context, bundle: Path, trace: Path | None, json_to: str | None) -> None:
    """Run a bundle's command again and compare every figure: equal, within its tolerance, different, or missing.

    Ends with 0 where it agrees and with 1 where it does not; times and places are not compared, other versions of
    libraries are noted.

    \b
    Example:
      jobcast verify sia.zip --trace jobs.parquet
    """
    from jobcast.pipelines.lifecycle.bundles import agrees, verify_bundle

    options.check_places(json_to, (bundle, trace))
    lines = verify_bundle(bundle, trace)
    count = {says: sum(line.says == says for line in lines) for says in ("equal", "within", "different", "missing")}
    verdict = "agrees" if agrees(lines) else "does not agree"
    text = f"{bundle}: {verdict}: {', '.join(f'{n} {says}' for says, n in count.items())}"
    result = {"agrees": agrees(lines), **count, "lines": [asdict(line) for line in lines]}
    options.table_or_json(result, json_to, "\n".join([*map(str, lines), text]), options.console_of())
    if not agrees(lines):
        ctx.exit(1)
