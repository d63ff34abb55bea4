"""`jobcast search`: configurations of PCS by what is wanted of them: search, choose, see whether they still fit."""

import os
from pathlib import Path
from typing import Any

import click

from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.report.files import to_json, write_text


@click.group(name="search")
def command() -> None:
    """Search configurations of PCS for objectives of one's own, and choose among those that nothing beats.

    \b
    Example:
      jobcast search pcs --trace jobs.csv --gpus 64 --objectives jct:mean,error:p99 --out front.parquet
      jobcast search apply front.parquet --pick 3 --out config.json
      jobcast simulate --trace jobs.csv --gpus 64 --policy pcs --set config=config.json --predict
    """


@command.command(name="pcs")
@options.trace_option()
@click.option("--gpus", type=click.IntRange(min=1), help="A flat cluster of N GPUs.")
@click.option("--cluster", "cluster_path", type=options.FILE, help="Cluster: YAML nodes and types.")
@click.option(
    "--objectives",
    default="jct:mean,error:mean",
    show_default=True,
    metavar="LIST",
    help="metric:measure between commas: jct, error, unfairness; mean or pNN.",
)
@click.option("--out", required=True, type=options.FILE, help="Parquet, with plots beside it.")
@click.option("--algorithm", default="spea2", show_default=True, help="spea2, nsga2, optuna-nsga2 or optuna-tpe.")
@click.option(
    "--space",
    default="raw",
    show_default=True,
    help="raw: each number; or parameters: T, W, zeta_min; either with -linear: published scales.",
)
@click.option(
    "--evaluations", type=click.IntRange(min=1), default=1000, show_default=True, help="Simulations of the search."
)
@click.option("--samples", type=click.IntRange(min=1), default=3, show_default=True, help="To search on, each.")
@click.option("--test-samples", type=click.IntRange(min=1), default=5, show_default=True, help="To judge the front on.")
@click.option("--sample-jobs", type=click.IntRange(min=2), default=1000, show_default=True, help="Jobs of a sample.")
@click.option("--load", type=options.Finite(min=0, min_open=True), help="Rescale arrivals to this load.")
@click.option("--gaps", default="exponential", show_default=True, help="exponential, or resampled from the trace.")
@options.window_options
@options.limit_option
@options.workers_option
@click.option("--engine", "engine_name", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@options.seed_option
@options.set_option
@options.json_option
def search_pcs(trace_path: Path, out: Path, json_to: str | None, **asked: Any) -> None:
    """Search configurations of weighted fair queues on samples of a workload, and write those that nothing beats.

    Of the trace only sizes, widths, models and the rate of arrivals are used. What was simulated is kept in a journal
    beside the front: the same command goes on where it was interrupted.

    \b
    Settings of --set:
      speedups=FILE     demand functions, as for simulate
      noise=P           declared sizes wrong by up to P
      whole_gpus=true   whole GPUs only
      caps=monotone     demand caps as the paper's formula has them
      preempt_s=S       cost of a change of a running job's GPUs

    \b
    Example:
      jobcast search pcs --trace jobs.csv --gpus 64 --objectives jct:mean,error:p99 --out front.parquet
    """
    from jobcast.pipelines.cli.search_request import search_and_tell

    options.check_places(json_to, (trace_path, asked["cluster_path"]), {"--out": out})
    asked["settings"] = settings_of(asked.pop("pairs"))
    asked["jobs"] = asked["jobs"] or os.cpu_count() or 1
    options.emit_json(search_and_tell(trace_path, out, asked, options.console_of(), quiet=json_to == "-"), json_to)


@command.command(name="apply")
@click.argument("front_path", metavar="FRONT", type=options.FILE)
@click.option("--pick", required=True, type=int, help="Number in the front's table.")
@click.option("--out", type=options.FILE, help="Where the configuration is written as JSON.")
def apply_pick(front_path: Path, pick: int, out: Path | None) -> None:
    """Take a configuration from a front: print it, and write what `simulate --policy pcs --set config=FILE` takes.

    \b
    Example:
      jobcast search apply front.parquet --pick 3 --out config.json
    """
    from jobcast.pipelines.experiments.search.front import read_front

    options.check_places(None, (front_path,), {"--out": out})
    row, console = read_front(front_path).pick(pick), options.console_of()
    if not row.pareto:
        console.note(f"pick {pick} is not in the front's table: on the test samples another one beats it")
    result = to_json(row.config.to_json())
    if out:
        write_text(out, result)
        console.note(f"configuration: {out}")
    click.echo(result, nl=False)


@command.command(name="check")
@click.argument("front_path", metavar="FRONT", type=options.FILE)
@options.trace_option()
@options.window_options
@options.limit_option
@click.option("--start/--no-start", default=True, help="Whether a search that is due is started, as the last one was.")
@click.option("--out", type=options.FILE, help="Of the new front; default: the old one's place, that one kept beside.")
@options.workers_option
@options.json_option
def check_front(front_path: Path, trace_path: Path, json_to: str | None, **asked: Any) -> None:
    """Search anew when a front's workload has changed so much that it is due: sizes, rate and load of arrivals.

    The new search is as the last one was, on the newer trace; the same command goes on where it was interrupted.

    \b
    Example:
      jobcast search check front.parquet --trace newer.csv --json -
      jobcast search check front.parquet --trace newer.csv --no-start
    """
    from jobcast.pipelines.cli.search_request import check_and_tell

    options.check_places(json_to, (trace_path, front_path), {"--out": asked["out"]})
    asked["jobs"] = asked["jobs"] or os.cpu_count() or 1
    verdict = check_and_tell(front_path, trace_path, asked, options.console_of(), quiet=json_to == "-")
    options.emit_json(verdict, json_to)
