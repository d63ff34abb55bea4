"""Which options of `train`, `evaluate` and `predict` go with which predictor; and `jct`, which learns nothing."""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jobcast.domain.errors import ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.experiments.forecast_specs import COMPLETION_TIME, CURVES, EPOCH_TIME, JCT, QUEUE_WAIT, REGIME

if TYPE_CHECKING:
    from jobcast.pipelines.lifecycle.predictors.life import Asked, Life

PREFIX = 0.2
"""Share of a curve's epochs that is seen, where nothing else is asked for."""
COMMON = frozenset({"predictor", "trace_path", "json_to"})
"""Parameters that go with every predictor; how a trace is read is no parameter of a command."""


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
    _of(
        JCT,
        "--sizes",
        metavar="forecast|declared|noisy:S",
        help="default forecast; noisy: as declared, but for log-normal errors with standard deviation S (evaluate).",
    ),
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
    _of(QUEUE_WAIT, "--retrain", metavar="EVERY", help="train anew weekly, daily or every Nd on what was known."),
    _of(EPOCH_TIME, "--points", type=click.IntRange(1, 3), metavar="N", help="known a job and GPU type; default 3."),
)
question_options = options.several(
    _of(JCT, "--job", metavar="ID|new", help="a job of the trace, or new for one submitted then; default all."),
    _of(
        JCT,
        "--begin",
        type=click.Choice(["empty", "recorded"]),
        help="recorded: with the trace's jobs of --at; default: replayed from --from on.",
    ),
    _of(JCT, "--limit", type=click.IntRange(min=1), help="of all jobs the first N, those that wait first."),
    _of(JCT, "--pool", metavar="NAME", help="the new job's pool."),
    _of(JCT, "--ask-gpus", metavar="N,N", help="other GPUs for the job, one answer each."),
    _of(JCT, "--size-s", type=options.Finite(min=0, min_open=True), help="its work, seconds on one GPU."),
    _of(
        JCT,
        "--time-limit-s",
        type=options.Finite(min=0, min_open=True),
        help="the new job's time limit, which back-filling goes by; default none.",
    ),
    _of(JCT, "--model", metavar="NAME", help="its model."),
    _of(JCT, "--by", metavar="TIME", help="the chance that it has finished by then."),
    _of(JCT, "--every", "every_h", type=options.Finite(min=0, min_open=True), help="ask again every N hours."),
    _of(JCT, "--plot", type=options.FILE, help="its distribution, .svg, .png or .html."),
    _of(JCT, "--timezone", metavar="ZONE", help="of times in words, such as Europe/Berlin; default this computer's."),
    _of(JCT, "--no-ledger", is_flag=True, help="do not keep the answer in the promise ledger; of queue-wait, too."),
    _of(CURVES, "--epochs", type=click.IntRange(min=1), metavar="N", help="of a whole run; or a column epochs."),
    _of(CURVES, "--target", type=float, callback=_finite, metavar="X", help="will the metric reach it, and when?"),
    _of(EPOCH_TIME, "--out", type=options.FILE, metavar="FILE", help="write the completed table there."),
)


def refuse_others(
    ctx: click.Context,
    predictor: str,
    allowed: Collection[str] | None = None,
    why: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ConfigError for an option on the line that does not go with a predictor.

    Parameters
    ----------
    allowed : parameters that go with it, besides `COMMON`; None: all but those that another one owns
    why : reasons that a user may wonder about, by parameter
    """
    known = {param.name: param for param in ctx.command.params}
    # The first that is wrong is told, so the order must be the user's.
    for param in (known[name] for name in ctx.params):  # as they stand on the line
        name, option = str(param.name), param.opts[0]
        # Defaults are on nobody's line.
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if name in COMMON or (allowed is not None and name in allowed):
            continue
        owner = getattr(param, "owner", predictor)
        # Told by its owner, even where the predictor would allow few options at all.
        if owner != predictor:
            raise ConfigError(f"{option}: goes with the predictor {owner}, not with {predictor}; leave it out")
        if allowed is not None:
            reason = why.get(name)
            result = f" ({reason})" if reason else ""
            raise ConfigError(f"{option}: does not go with the predictor {predictor}{result}; leave it out")


def life_asked(ctx: click.Context, command: str, name: str) -> tuple["type[Life[Any]]", "Asked"]:
    """The life of a predictor and what a command asks of it, once options that do not go with it were refused."""
    from jobcast.pipelines.lifecycle.predictors import check_capable, life_of
    from jobcast.pipelines.lifecycle.predictors.life import TRAIN, Asked

    if command != TRAIN:
        check_capable(command, name, (JCT,))
    life, asked = life_of(name), Asked(ctx.params, options.home_of(), options.console_of().note)
    refuse_others(ctx, name, life.options(command, asked), life.why)
    if not life.reads_settings and (given := asked.given):
        raise ConfigError(f"--set {next(iter(given))}: {name} reads no settings, {REGIME} does; leave it out")
    return life, asked


def tell(ctx: click.Context, result: dict[str, Any], table: str) -> None:
    """What the reader decided and left out on stderr, figures where they are wanted; after the work."""
    console, path = options.console_of(), result["inputs"]["trace"]["path"]
    notes = (*result["notes"], *options.dropped_lines(result.get("dropped", {})))
    console.note(*(f"{path}: {note}" for note in notes))
    options.table_or_json({**result, **options.made_by()}, ctx.params["json_to"], table, console)


def watched_table(ctx: click.Context, predictor: str, alone: Collection[str]) -> tuple[Any, Any]:
    """The table of a trace's jobs that a predictor learns from, else the file of its own that `--trace` names.

    Both None for a predictor that learns from the trace itself. Raises ConfigError for a setting that nobody reads,
    and for options other than `alone` where the file has no calendar.
    """
    from jobcast.pipelines.lifecycle.standards import judged
    from jobcast.traces.facts import facts_beside

    settings, life = settings_of(ctx.params["pairs"]), judged(predictor)
    for key in settings:
        if key not in life.settings:
            raise ConfigError(f"--set {key}: {predictor} knows {', '.join(sorted(life.settings))}; correct it")
    if life.table is None:
        return None, None
    name, path = life.table.name, ctx.params["trace_path"]
    # Jobs with facts have a calendar: weeks, in place of batches of rows.
    found = settings.get(name) or facts_beside(path, (name,)).get(name)
    if found is not None:
        return life.table.read(Path(found)), None
    refuse_others(ctx, predictor, alone)
    return None, life.table.read_alone(path)


def replay(ctx: click.Context, command: str) -> None:
    """Say when a job finishes, or score intervals of completion times."""
    learned = _learned(ctx.params["predictor"])
    refuse_others(ctx, JCT)
    if command == "predict":
        from jobcast.pipelines.cli.predict_jct import predict_jct as act
    else:
        from jobcast.pipelines.cli.jct import evaluate_jct as act
    act(ctx.params, learned, options.console_of())


def replays(ctx: click.Context) -> bool:
    """Whether completions are forecast by replaying a policy: of `jct` always, of its versions where one is named."""
    name = name_of(ctx.params["predictor"])
    # Without a policy a version forecasts run times alone.
    return name == JCT or (name == COMPLETION_TIME and ctx.params["policy"] is not None)


def _learned(reference: str) -> Any:
    """The version of completion-time that is asked; None for a bare `jct`, which learns from what it sees meanwhile.

    Raises RegistryError for a version that is not there.
    """
    # It goes by what it sees in the replay itself.
    if reference == JCT:
        return None
    from jobcast.models.registry.references import parse_reference
    from jobcast.pipelines.experiments.sources import Registered

    registry = options.registry_of()
    version = registry.resolve(COMPLETION_TIME, parse_reference(reference)[1])
    return Registered(version, registry.load(version))


def name_of(reference: str) -> str:
    """The predictor that PREDICTOR[@ALIAS|:VERSION] means.

    >>> name_of("accuracy-curve:3"), name_of("new-load@champion")
    ('accuracy-curve', 'new-load')
    """
    return reference.replace("@", ":").partition(":")[0]
