"""What commands on predictors do with those that do not learn from a trace alone, and which options go with which.

`accuracy-curve` and `epoch-time` learn from tables, `mlf-policy` and `device-rl` from replays, `jct` learns nothing.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.commands import options
from jobcast.pipelines.console import Step
from jobcast.pipelines.forecast_specs import ACCURACY_CURVE, CURVES, DEVICE_POLICY, EPOCH_TIME, JCT, MLF_POLICY

PREFIX = 0.2
"""Share of a curve's epochs that is seen, where nothing else is asked for."""
COMMON = frozenset({"predictor", "trace_path", "json_to", "drop_outliers", "memory"})
"""Parameters that go with every predictor."""
OF_JOBS = ("from_s", "until_s", "pairs")
"""Parameters that go with a predictor of other tables, too, where these are of a trace's jobs."""
WHY: Mapping[str, Mapping[str, str]] = {
    CURVES: {
        "pools": "nothing is replayed",
        "from_s": "curves have no calendar",
        "until_s": "curves have no calendar",
        "at_s": "curves have no calendar, a running job's file holds what was seen of it",
        "tune": "it has no settings to search",
        "retrain": "it does not walk through a trace",
        "pairs": "it reads no settings",
        "out": "use --json FILE",
        "log": "use --json FILE",
    },
    EPOCH_TIME: dict.fromkeys(
        ("from_s", "until_s"), "profiles have no calendar, a trace of jobs with profiles has one"
    ),
}
"""Reasons for refusals that a user may wonder about, by parameter."""


class Owned(click.Option):
    """An option that one predictor alone reads, as its help says."""

    def __init__(self, *names: Any, owner: str, help: str, **rest: Any) -> None:
        super().__init__(*names, **{**rest, "help": f"{owner}: {help}"})
        self.owner = owner


def _of(owner: str, *names: str, **rest: Any) -> Callable[[options.Command], options.Command]:
    return click.option(*names, cls=Owned, owner=owner, **rest)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number.", ctx, param)
    return value


place_options = options.several(
    _of(JCT, "--policy", metavar="NAME", help="policy that is replayed, any of `jobcast policies`."),
    _of(JCT, "--pools", type=options.FILE, help="quotas, CSV pool,gpus[,from]."),
    _of(JCT, "--forecasts", metavar="KIND", help="of run times, as of simulate; not of elastic policies."),
    _of(JCT, "--gpus", type=click.IntRange(min=1), help="a flat cluster of N GPUs."),
    _of(JCT, "--cluster", "cluster_path", type=options.FILE, help="a cluster file."),
    _of(JCT, "--futures", type=click.IntRange(min=2), help="futures drawn for a job; default 200."),
    _of(JCT, "--sizes", type=click.Choice(["forecast", "declared"]), help="default forecast."),
)
score_options = options.several(
    _of(JCT, "--every-job", "every", type=click.IntRange(min=1), help="score each Nth job; default some 300."),
    _of(
        CURVES,
        "--prefix",
        type=options.Finite(0, 1, min_open=True, max_open=True),
        metavar="SHARE",
        help=f"of each curve's epochs that is seen; default {PREFIX:g}.",
    ),
    _of(EPOCH_TIME, "--points", type=click.IntRange(1, 3), metavar="N", help="known a job and GPU type; default 3."),
)
question_options = options.several(
    _of(JCT, "--job", metavar="ID|new", help="a job of the trace, or new for one submitted then."),
    _of(JCT, "--pool", metavar="NAME", help="the new job's pool."),
    _of(JCT, "--ask-gpus", metavar="N,N", help="GPUs of the new job, one answer each."),
    _of(JCT, "--size-s", type=options.Finite(min=0, min_open=True), help="its work, seconds on one GPU."),
    _of(JCT, "--model", metavar="NAME", help="its model."),
    _of(JCT, "--by", metavar="TIME", help="the chance that it has finished by then."),
    _of(JCT, "--every", "every_h", type=options.Finite(min=0, min_open=True), help="ask again every N hours."),
    _of(JCT, "--plot", type=options.FILE, help="its distribution, .svg or .html."),
    _of(CURVES, "--epochs", type=click.IntRange(min=1), metavar="N", help="of a whole run; or a column epochs."),
    _of(CURVES, "--target", type=float, callback=_finite, metavar="X", help="will the metric reach it, and when?"),
    _of(EPOCH_TIME, "--out", type=options.FILE, metavar="FILE", help="write the completed table there."),
)


def refuse_others(ctx: click.Context, predictor: str, allowed: Collection[str] | None = None) -> None:
    """Raise ConfigError for an option on the line that does not go with a predictor.

    Parameters
    ----------
    allowed : parameters that go with it, besides `COMMON`; None: all but those that another one owns
    """
    known = {param.name: param for param in ctx.command.params}
    for param in (known[name] for name in ctx.params):  # as they stand on the line
        name, option = str(param.name), param.opts[0]
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        owner = getattr(param, "owner", predictor)
        if owner != predictor:
            raise ConfigError(f"{option}: goes with the predictor {owner}, not with {predictor}; leave it out")
        if allowed is not None and name not in COMMON and name not in allowed:
            reason = WHY.get(predictor, {}).get(name)
            told = f" ({reason})" if reason else ""
            raise ConfigError(f"{option}: does not go with the predictor {predictor}{told}; leave it out")


@contextmanager
def training(ctx: click.Context, more: Iterable[Path] = ()) -> Iterator[tuple[Path, Step]]:
    """The home and the progress of a training, once its places were looked at and what others left was tidied.

    Parameters
    ----------
    more : files that are read beside the trace
    """
    from jobcast.models.registry.home import find_home
    from jobcast.pipelines.tidying import tidy_home

    console, home = options.console_of(ctx), find_home()
    inputs = (ctx.params["trace_path"], *more)
    options.check_places(ctx.params["json_to"], inputs, folders={"the store": home / "mlruns"})
    tidy_home(console)
    with console.progress(f"train {ctx.params['predictor']}") as step:
        yield home, step


def tell(ctx: click.Context, result: dict[str, Any], table: str) -> None:
    """What the reader decided and left out on stderr, figures where they are wanted; after the work."""
    console, path = options.console_of(ctx), result["inputs"]["trace"]["path"]
    for note in (*result["notes"], *options.dropped_lines(result.get("dropped", {}))):
        console.note(f"{path}: {note}")
    options.table_or_json(result, ctx.params["json_to"], table, console)


def _table_of_jobs(ctx: click.Context, predictor: str, name: str, allowed: Collection[str]) -> Path | None:
    """The table of a trace's jobs that `--set` names, else that beside an enriched trace; None for other traces.

    Raises ConfigError for another setting, and for options that do not go with the predictor then.
    """
    from jobcast.traces.facts import facts_beside

    settings = options.settings_of(ctx.params["pairs"])
    for key in settings:
        if key != name:
            raise ConfigError(f"--set {key}: only {name}=FILE is read here, of the jobs of --trace; leave it out")
    beside = facts_beside(ctx.params["trace_path"], (name,)).get(name)
    found = Path(settings[name]) if name in settings else beside
    refuse_others(ctx, predictor, (*allowed, *(OF_JOBS if found else ())))
    return found


def _place(ctx: click.Context, out: Path | None = None) -> tuple[tuple[str, Any], Path]:
    """Which version is asked, and the home that holds it, once the places of results were looked at."""
    from jobcast.models.registry.home import find_home
    from jobcast.models.registry.references import parse_reference

    parsed = parse_reference(ctx.params["predictor"])
    options.check_places(ctx.params["json_to"], (ctx.params["trace_path"],), {"--out": out})
    return parsed, find_home()


def _train_curves(ctx: click.Context) -> None:
    """Train on a file of curves, or on those of a trace's jobs, and register a version."""
    asked = ctx.params
    curves = _table_of_jobs(ctx, CURVES, "curves", ("algorithm", "seed"))
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.tables import training_table
    from jobcast.pipelines.learning_curves.training import train_and_register_curves

    with training(ctx) as (home, step):
        table = read_curves(asked["trace_path"], curves, (asked["from_s"], asked["until_s"]))
        result = train_and_register_curves(table, asked["algorithm"], asked["seed"], home=home, progress=step)
    tell(ctx, result, training_table(result))


def _evaluate_curves(ctx: click.Context) -> None:
    """Score a version on a file of curves, or on those of a trace's jobs."""
    asked = ctx.params
    curves = _table_of_jobs(ctx, CURVES, "curves", ("prefix", "allow_overlap", "seed"))
    from jobcast.pipelines.finished_jobs import read_curves
    from jobcast.pipelines.learning_curves.evaluating import score_version
    from jobcast.pipelines.learning_curves.tables import evaluation_table

    parsed, home = _place(ctx)
    table = read_curves(asked["trace_path"], curves, (asked["from_s"], asked["until_s"]))
    share = PREFIX if asked["prefix"] is None else asked["prefix"]
    result = score_version(parsed, table, share, home=home, allow_overlap=asked["allow_overlap"])
    tell(ctx, result, evaluation_table(result))


def _predict_curves(ctx: click.Context) -> None:
    """Forecast where the runs of a file will end."""
    asked = ctx.params
    refuse_others(ctx, CURVES, ("epochs", "target", "seed"))
    from jobcast.pipelines.learning_curves.evaluating import forecast_runs
    from jobcast.pipelines.learning_curves.tables import prediction_table
    from jobcast.traces.learning_curves import read_learning_curves

    parsed, home = _place(ctx)
    table = read_learning_curves(asked["trace_path"])
    result = forecast_runs(parsed, table, asked["epochs"], asked["target"], home=home)
    tell(ctx, result, prediction_table(result))


def curves_comparison(ctx: click.Context) -> Callable[..., dict[str, Any]]:
    """How `jobcast models promote` compares versions on a file of curves."""
    refuse_others(ctx, CURVES, ("name", "alias", "force", "allow_overlap"))
    from jobcast.pipelines.learning_curves.promoting import compare
    from jobcast.traces.learning_curves import read_learning_curves

    table = read_learning_curves(ctx.params["trace_path"])
    return partial(compare, table=table, allow_overlap=ctx.params["allow_overlap"])


def _train_epoch_time(ctx: click.Context) -> None:
    """Train on a table of profiles, or on the rows that a trace's jobs go by, and register a version."""
    asked = ctx.params
    profiles = _table_of_jobs(ctx, EPOCH_TIME, "profiles", ("seed",))
    from jobcast.pipelines.finished_jobs import profiles_of
    from jobcast.pipelines.profiles.epoch_time import train_and_register_epoch_time, training_table

    with training(ctx) as (home, step):
        table = profiles_of(asked["trace_path"], profiles, (asked["from_s"], asked["until_s"]))
        result = train_and_register_epoch_time(table, asked["seed"], home=home, progress=step)
    tell(ctx, result, training_table(result))


def _evaluate_epoch_time(ctx: click.Context) -> None:
    """Score a version on a table of profiles."""
    asked = ctx.params
    refuse_others(ctx, EPOCH_TIME, ("points", "pairs", "seed", "allow_overlap"))
    from jobcast.pipelines.profiles.epoch_time import ScoreSettings, evaluation_table, score_version
    from jobcast.traces.profiles import read_profiles

    settings = ScoreSettings.read(options.settings_of(asked["pairs"]), asked["points"], asked["seed"])
    parsed, home = _place(ctx)
    table = read_profiles(asked["trace_path"])
    result = score_version(parsed, table, settings, home=home, allow_overlap=asked["allow_overlap"])
    tell(ctx, result, evaluation_table(result))


def _predict_epoch_time(ctx: click.Context) -> None:
    """Complete a table of profiles by forecasts."""
    asked = ctx.params
    refuse_others(ctx, EPOCH_TIME, ("pairs", "out", "seed"))
    from jobcast.pipelines.profiles.epoch_time import Question, complete_table, prediction_table
    from jobcast.traces.profiles import read_profiles

    question = Question.read(options.settings_of(asked["pairs"]))
    parsed, home = _place(ctx, asked["out"])
    result = complete_table(parsed, read_profiles(asked["trace_path"]), question, asked["out"], home=home)
    tell(ctx, result, prediction_table(result))


def _evaluate_jct(ctx: click.Context) -> None:
    """Score intervals of completion times."""
    from jobcast.pipelines.elastic.evaluate_command import evaluate_jct

    asked = ctx.params
    refuse_others(ctx, JCT)
    place = (options.console_of(ctx), asked["trace_path"], (asked["from_s"], asked["until_s"]))
    evaluate_jct(*place, asked["pairs"], asked["seed"], asked["json_to"], **_owned(ctx))


def _predict_jct(ctx: click.Context) -> None:
    """When a job finishes."""
    from jobcast.pipelines.elastic.predict_command import predict_jct

    asked = ctx.params
    refuse_others(ctx, JCT)
    place = (options.console_of(ctx), asked["trace_path"], needed_instant(ctx), asked["from_s"])
    predict_jct(*place, asked["pairs"], asked["seed"], asked["json_to"], **_owned(ctx))


def _owned(ctx: click.Context) -> dict[str, Any]:
    """Values of the options of `jct`. Raises ConfigError for a version of it."""
    if ctx.params["predictor"] != JCT:
        raise ConfigError(f"{ctx.params['predictor']}: {JCT} learns nothing and has no versions; write {JCT}")
    return {str(one.name): ctx.params[str(one.name)] for one in ctx.command.params if getattr(one, "owner", "") == JCT}


def needed_instant(ctx: click.Context) -> float:
    """`--at`, which some predictors need. Raises MissingParameter where it is not given."""
    if ctx.params["at_s"] is None:
        raise click.MissingParameter(ctx=ctx, param=next(one for one in ctx.command.params if one.name == "at_s"))
    return float(ctx.params["at_s"])


COUNTS = ("iterations", "workloads", "runs", "shown", "imitation_steps", "checks", "compared")
"""Whole numbers that `--set` knows beside files and servers: how long to train a scheduler."""
FILES = ("tasks", "curves", "cluster")


def _train_scheduler(ctx: click.Context) -> None:
    """`jobcast train mlf-policy` and `jobcast train device-rl`."""
    asked, name = ctx.params, ctx.params["predictor"]
    refuse_others(ctx, name, ("from_s", "until_s", "tune", "pairs", "seed"))
    settings = options.settings_of(asked["pairs"])
    known = (*FILES, "gpus", *COUNTS)
    for key in settings:
        if key not in known:
            raise ConfigError(f"--set {key}: {name} knows {', '.join(known)}; correct it")
    from jobcast.models.scheduling.learner import need_torch

    need_torch()
    from jobcast.pipelines.clusters import named_cluster
    from jobcast.pipelines.experiment import Experiment
    from jobcast.pipelines.learning_to_schedule.kinds import SchedulerSettings
    from jobcast.pipelines.learning_to_schedule.registering import scheduler_table, train_and_register_scheduler
    from jobcast.schedulers.policies import TASKS
    from jobcast.traces.readers import read_trace
    from jobcast.traces.splits import finished_jobs

    console, told = options.console_of(ctx), BadAnswers()
    files = {key: settings[key] for key in FILES if key in settings}
    counts: dict[str, Any] = {key: _count(key, settings[key]) for key in ("gpus", *COUNTS) if key in settings}
    gpus, cluster = counts.pop("gpus", None), files.get("cluster")
    with training(ctx, map(Path, files.values())) as (home, step):
        trace, _, _ = finished_jobs(read_trace(asked["trace_path"]), asked["from_s"], asked["until_s"])
        place = named_cluster(
            trace, pools=None, cluster=Path(cluster) if cluster else None, gpus=gpus, from_s=asked["from_s"]
        )
        given = {key: path for key, path in files.items() if key != "cluster"}
        scene = Experiment(trace=trace, cluster=place, given=given).scene(TASKS)
        result = train_and_register_scheduler(
            name,
            scene,
            home=home,
            folder=home / "mlruns" / "unfinished" / f"{name}-{asked['seed']}",
            seed=asked["seed"],
            settings=SchedulerSettings(tune=asked["tune"], **counts),
            forecast=_accuracies(home, told),
            progress=step,
            note=console.note,
        )
    for line in (*scene.notes, *(f"bad forecasts, {line}" for line in told.lines())):
        console.note(line)
    options.table_or_json(result, asked["json_to"], scheduler_table(result), console)


def _count(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--set {key}={text}: must be a whole number >= 1")
    return int(text)


def _accuracies(home: Path, told: BadAnswers) -> Any:
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


def whole_numbers(text: str | None, option: str) -> tuple[int, ...]:
    """Numbers between commas. Raises ConfigError for others.

    >>> whole_numbers("4,8", "--ask-gpus")
    (4, 8)
    """
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    for part in parts:
        if not part.isdecimal() or int(part) < 1:
            raise ConfigError(f"{option} {text}: whole numbers >= 1 between commas are expected, got {part!r}")
    return tuple(int(part) for part in parts)


Act = Callable[[click.Context], None]
TRAIN: Mapping[str, Act] = {
    CURVES: _train_curves,
    EPOCH_TIME: _train_epoch_time,
    MLF_POLICY: _train_scheduler,
    DEVICE_POLICY: _train_scheduler,
}
EVALUATE: Mapping[str, Act] = {CURVES: _evaluate_curves, EPOCH_TIME: _evaluate_epoch_time, JCT: _evaluate_jct}
PREDICT: Mapping[str, Act] = {CURVES: _predict_curves, EPOCH_TIME: _predict_epoch_time, JCT: _predict_jct}
"""What a command does with predictors by name; the others learn from traces of jobs, and it does that itself."""


def name_of(reference: str) -> str:
    """The predictor that PREDICTOR[@ALIAS|:VERSION] means.

    >>> name_of("accuracy-curve:3"), name_of("new-load@champion")
    ('accuracy-curve', 'new-load')
    """
    return reference.replace("@", ":").partition(":")[0]
