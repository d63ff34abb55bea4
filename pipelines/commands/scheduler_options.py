"""`jobcast train` of learned schedulers of tasks: which of its options go with them, and what they set."""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands import options
from jobcast.pipelines.commands.predictor_options import refuse_others, training
from jobcast.pipelines.forecast_specs import ACCURACY_CURVE, DEVICE_POLICY, MLF_POLICY

SCHEDULERS = (MLF_POLICY, DEVICE_POLICY)
ALLOWED = ("from_s", "until_s", "tune", "pairs", "seed")
COUNTS = ("iterations", "workloads", "runs", "shown", "imitation_steps", "checks", "compared")
"""Whole numbers that `--set` knows beside files and servers: how long to train."""
FILES = ("tasks", "curves", "cluster")


def train_scheduler(
    ctx: click.Context,
    name: str,
    trace_path: Path,
    window: tuple[float | None, float | None],
    tune: int,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
) -> None:
    """`jobcast train mlf-policy` and `jobcast train device-rl`."""
    refuse_others(ctx, name, ALLOWED)
    settings = _known(options.settings_of(pairs), name)
    from jobcast.models.scheduling.learner import need_torch

    need_torch()
    from jobcast.pipelines.clusters import named_cluster
    from jobcast.pipelines.experiment import Experiment
    from jobcast.pipelines.learning_to_schedule.kinds import SchedulerSettings
    from jobcast.pipelines.learning_to_schedule.registering import scheduler_table, train_and_register_scheduler
    from jobcast.schedulers.policies import TASKS
    from jobcast.traces.readers import read_trace
    from jobcast.traces.splits import finished_jobs

    console = options.console_of(ctx)
    files = {name: settings[name] for name in FILES if name in settings}
    cluster = Path(settings["cluster"]) if "cluster" in settings else None
    gpus = _count("gpus", settings["gpus"]) if "gpus" in settings else None
    given = {name: path for name, path in files.items() if name != "cluster"}
    counts: dict[str, Any] = {key: _count(key, settings[key]) for key in COUNTS if key in settings}
    told = BadAnswers()
    with training(ctx, name, (trace_path, *map(Path, files.values())), json_to) as (home, step):
        trace, _, _ = finished_jobs(read_trace(trace_path), *window)
        place = named_cluster(trace, pools=None, cluster=cluster, gpus=gpus, from_s=window[0])
        scene = Experiment(trace=trace, cluster=place, given=given).scene(TASKS)
        result = train_and_register_scheduler(
            name,
            scene,
            home=home,
            folder=home / "mlruns" / "unfinished" / f"{name}-{seed}",
            seed=seed,
            settings=SchedulerSettings(tune=tune, **counts),
            forecast=_forecast(home, told),
            progress=step,
            note=console.note,
        )
    for line in (*scene.notes, *(f"bad forecasts, {line}" for line in told.lines())):
        console.note(line)
    options.table_or_json(result, json_to, scheduler_table(result), console)


def _known(settings: dict[str, str], name: str) -> dict[str, str]:
    known = (*FILES, "gpus", *COUNTS)
    for key in settings:
        if key not in known:
            raise ConfigError(f"--set {key}: {name} knows {', '.join(known)}; correct it")
    return settings


def _count(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--set {key}={text}: must be a whole number >= 1")
    return int(text)


def _forecast(home: Path, told: BadAnswers) -> Any:
    """Forecasts of the champion of training curves as far as they can be, bad ones counted; none without a champion."""
    from jobcast.models.curves.served import guarded_accuracies
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.sources import loaded_version
    from jobcast.pipelines.tasks.accuracy import by_model

    registry = open_registry(home)
    if ACCURACY_CURVE not in {version.name for version in registry.list()}:
        return None
    model = loaded_version(home, ACCURACY_CURVE, registry.resolve(ACCURACY_CURVE).version)
    return guarded_accuracies(by_model(model), told)
