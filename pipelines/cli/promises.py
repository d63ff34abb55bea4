"""`jobcast promises`: were the forecasts of starts and ends kept?"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.cli import options
from jobcast.pipelines.report.formatting import counted, number, percent
from jobcast.pipelines.report.layout import aligned


@click.command(name="promises")
@options.trace_option(required=False)
@click.option("--by", type=click.Choice(["week", "pool", "policy", "version"]), help="What they are counted by.")
@click.option("--no-ledger", is_flag=True, help="Do not keep the outcomes.")
@options.json_option
def command(trace_path: Path | None, by: str | None, no_ledger: bool, json_to: str | None) -> None:
    """What became of the starts and ends that `jobcast predict` has told: kept, broken, still open.

    --trace records what happened, up to the last instant that it knows of: an export of the cluster, or what `simulate
    --out` wrote. Its outcomes are kept, and later intervals are calibrated on them. Without it outcomes count that
    were kept before. A promise is broken as soon as its upper end has passed without the event. Coverage is counted
    over promises that are due.

    \b
    Example:
      jobcast promises --trace jobs.parquet --by week
    """
    from jobcast.models.promise_record import account
    from jobcast.traces.readers import read_trace

    console = options.console_of()
    options.check_places(json_to, (trace_path,))
    trace = None if trace_path is None else read_trace(trace_path)
    result = account(options.home_of(), trace, by, keeping=not no_ledger)
    if trace is not None:
        result["inputs"] = {"trace": asdict(trace.source)}
        options.tell_notes(trace, console)
    options.table_or_json(result, json_to, _table(result), console)


def _table(figures: Mapping[str, Any]) -> str:
    about = f"{counted(figures['promises'], 'promise')} made"
    asides = [("what_if", "about what might have been"), ("without_outcome", "about jobs of which nothing is known")]
    about += "".join(f", {figures[name]:,} {words}" for name, words in asides if figures[name])
    if not figures["groups"]:
        return f"{about}; none can be judged" if figures["promises"] else f"no promises in {figures['ledger']}"
    heads = ("made", "due", "kept", "low", "high", "open", "50 % holds", "90 % holds")
    keys = ("made", "due_90", "kept", "broken_low", "broken_high", "open", "coverage_50_pct", "coverage_90_pct")
    rows = [("", "", *heads)]
    for row in figures["groups"]:
        cells = (percent(row[key]) if key.endswith("pct") else number(row[key]) for key in keys)
        rows.append((row["group"], row["kind"], *cells))
    return f"{about}; as of {figures['as_of']}\n{aligned(rows)}"
