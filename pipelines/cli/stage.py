"""`jobcast stage`: one stage of the pipeline, as dvc.yaml calls it."""

from pathlib import Path

import click

from jobcast.pipelines.cli import options


@click.command(name="stage")
@click.argument("name")
@click.argument("item", default="")
@click.option("--out", type=options.FILE, help="Folder of the run's files; default: data.")
@click.option("--params", "params_path", type=options.FILE, help="Default: params.yaml.")
@options.reading_options
def command(name: str, item: str, out: Path | None, params_path: Path | None) -> None:
    """Run one stage: code, prepare, featurize, care, train PREDICTOR, evaluate, backtest, promote, report, enrich,
    learn PREDICTOR, judge PREDICTOR or schedule PREDICTOR.

    \b
    Example:
      jobcast stage prepare && jobcast stage featurize && jobcast stage care
    """
    from jobcast.pipelines.stages.config import load_params
    from jobcast.pipelines.stages.context import Context
    from jobcast.pipelines.stages.plan import find_stage

    home = options.home_of()
    params = load_params(params_path, home)
    # Found before anything is written: a wrong name leaves no folder.
    stage, root = find_stage(name, item), out or home / "data"
    options.check_places(None, folders={"--out": root})
    console = options.console_of()
    options.tidy_home(console, root)
    stage.work(Context(params, root, home, console), item)
