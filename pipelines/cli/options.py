"""Options that several commands share."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jobcast.domain.errors import ConfigError
from jobcast.domain.memory import memory_limit, parse_memory
from jobcast.pipelines.report.compiling import tell_compiling
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.files import OUTPUTS, check_outputs, to_json, write_text
from jobcast.pipelines.report.formatting import counted, parse_time, times_in

if TYPE_CHECKING:
    from jobcast.models.registry import Registry
    from jobcast.traces.table import Trace

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)


class PolicyCommand(click.Command):
    """A command whose help lists all policies."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Names by kind."""
        from jobcast.schedulers.policies import KINDS
        from jobcast.schedulers.registry import BUILT_IN, POLICIES, names_of

        names = {kind.title: names_of(key) for key, kind in KINDS.items()}
        # Known by name alone: no plug-in is imported for help.
        names["installed"] = tuple(name for name in POLICIES if name not in BUILT_IN)
        with formatter.section("Policies (`jobcast policies NAME` tells its settings)"):
            formatter.write_dl([(title, ", ".join(found)) for title, found in names.items() if found])


class Instant(click.ParamType[float]):
    """ISO-8601 or seconds from the epoch."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds from the epoch."""
        # click converts defaults again, which are numbers then.
        return value if isinstance(value, float) else parse_time(value, param.opts[0] if param else "time")


class Finite(click.FloatRange):
    """A number in a range; not-a-number and infinity are in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


def several(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Options of a command as one decorator; help lists them in this order."""

    def decorate(command: Command) -> Command:
        # Decorators apply from below: the last one stands first in help.
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _limit_memory(ctx: click.Context, param: click.Parameter, size: str | None) -> None:
    if size is not None:
        # In force until the command ends, whatever way it does.
        ctx.with_resource(memory_limit(parse_memory(size)))


READING = "jobcast.reading"
"""Of click's context: the words that say how the trace is read."""


def reading_words() -> list[str]:
    """Those of `reading_options` that were given, as somebody types them."""
    context = click.get_current_context(silent=True)
    return list(context.meta.get(READING, ())) if context else []


def _drop_outliers(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from jobcast.traces.outliers import dropping_outliers

        ctx.with_resource(dropping_outliers())
        ctx.meta.setdefault(READING, []).append("--drop-outliers")


def _known_after(ctx: click.Context, param: click.Parameter, seconds: float | None) -> None:
    if seconds is not None:
        from jobcast.traces.table import ends_known_after

        ctx.with_resource(ends_known_after(seconds))
        ctx.meta.setdefault(READING, []).extend(("--known-after-s", str(seconds)))


def _times_in(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is not None:
        from jobcast.traces.column_types import zone_named

        ctx.with_resource(times_in(zone_named(name)))


timezone_option = click.option(
    "--timezone",
    metavar="ZONE",
    expose_value=False,
    callback=_times_in,
    help="Of the times that are told, such as Europe/Berlin; default UTC.",
)
# How a trace is read; in force while the command runs, which need not know them.
reading_options = several(
    click.option(
        "--drop-outliers",
        is_flag=True,
        expose_value=False,
        callback=_drop_outliers,
        help="Leave out and count rows whose times lie years from all others.",
    ),
    click.option(
        "--known-after-s",
        metavar="SECONDS",
        type=float,
        expose_value=False,
        callback=_known_after,
        help="The accounting shows an end so much later; until then the job runs. Rows with a known_time keep theirs.",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        expose_value=False,
        callback=_limit_memory,
        help="Refuse what would need more, as in 4GB; default: half of what is free.",
    ),
)


def trace_option(required: bool = True) -> Callable[[Command], Command]:
    """`--trace FILE`, and how it is read: `reading_options`."""
    text = "A trace: CSV or Parquet."
    trace = click.option("--trace", "trace_path", metavar="FILE", required=required, help=text, type=FILE)
    return several(trace, reading_options)


window_options = several(
    click.option("--from", "from_s", type=Instant(), help="Beginning of the window."),
    click.option("--until", "until_s", type=Instant(), help="End of the window, exclusive."),
)
begin_option = click.option(
    "--begin",
    "recorded",
    type=click.Choice(["empty", "recorded"]),
    default="empty",
    show_default=True,
    callback=lambda ctx, param, value: value == "recorded",
    help="With which jobs: none, or those that the trace has running and waiting at --from.",
)
pool_by_option = click.option(
    "--pool-by",
    type=click.Choice(["account", "qos", "partition"]),
    default="account",
    show_default=True,
    help="What names a job's pool; the QOS of that name holds its quota.",
)
clock_options = several(
    click.option(
        "--clock-scale",
        type=Finite(min=0.0, min_open=True),
        default=1.0,
        help="Forecasts' seconds a second.",
    ),
    click.option("--clock-start", help="What time it is to forecasts at the first look; with --clock-scale."),
)
pools_option = click.option("--pools", type=FILE, help="Quotas: CSV pool,gpus[,from][,cells].")
cluster_options = several(
    pools_option,
    click.option("--cluster", type=FILE, help="Cluster: YAML of nodes, pools, watts, prices."),
    click.option("--gpus", type=click.IntRange(min=1), help="A flat cluster of N GPUs, pools ignored."),
)
fit_options = several(
    click.option(
        "--drop-too-wide",
        "drop_wide",
        is_flag=True,
        help="Drop and count jobs too large for their pool, limits or servers.",
    ),
    click.option("--pools-only", "only_pools", is_flag=True, help="Drop and count jobs of pools without capacity."),
)
limit_option = click.option("--limit", type=click.IntRange(min=1), help="Only the first N jobs of the window.")
workers_option = click.option("--jobs", type=click.IntRange(min=1), help="Simulations at a time; default: one a core.")
json_option = click.option("--json", "json_to", metavar="FILE", help="Write the figures as JSON; - is stdout.")
set_option = click.option("--set", "pairs", metavar="KEY=VALUE", multiple=True, help="A setting; may be repeated.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all draws.")
warmup_option = click.option(
    "--warmup", "warmup_days", type=Finite(min=0), metavar="DAYS", default=0.0, help="Days left out of the figures."
)
overlap_option = click.option(
    "--allow-overlap", is_flag=True, help="Use a model whose training data reach into the window; shown in results."
)
degrade_option = click.option(
    "--degrade",
    is_flag=True,
    help="Where a registry or plug-in cannot answer, or a pool was never seen in training, go on with conservative "
    "answers, and say so. Without it such a registry is refused.",
)
matrix_options = several(
    warmup_option, fit_options, workers_option, overlap_option, degrade_option, set_option, json_option
)
log_option = click.option(
    "--out", "log_path", required=True, metavar="LOG", type=FILE, help="What simulate --out wrote: CSV or Parquet."
)
log_pools_option = click.option(
    "--pools", "pools_path", type=FILE, help="Quotas, for a log whose record is missing: CSV pool,gpus[,from]."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse rows that would be dropped, and canonical times without an offset."
)
law_option = click.option(
    "--law",
    metavar="NAME",
    help="How all jobs progress: runtime, speedup, epochs, goodput or tasks; default: as the trace says by itself, to "
    "each kind of policy.",
)
loop_options = several(
    click.option(
        "--closed-loop",
        is_flag=True,
        help="Jobs that follow others arrive a think time after those end in this run, not when the trace says.",
    ),
    click.option(
        "--max-think",
        "max_think_s",
        type=Finite(min=0, min_open=True),
        metavar="SECONDS",
        help="Longest think time of a job that follows another; default 14400.",
    ),
)


def asked_think_s(closed_loop: bool, max_think_s: float | None) -> float | None:
    """Longest think time of a closed loop, None of an open one. Raises ConfigError for a think time without a loop."""
    from jobcast.traces.think_times import MAX_THINK_S

    if not closed_loop:
        if max_think_s is not None:
            raise ConfigError("--max-think goes with --closed-loop; add that or leave it out")
        return None
    return MAX_THINK_S if max_think_s is None else max_think_s


def console_of() -> Console:
    """The console that the command line's `--quiet` asked for."""
    console = Console(quiet=bool((click.get_current_context().obj or {}).get("quiet")))
    tell_compiling(console.note)
    return console


def tell_notes(trace: "Trace", console: Console) -> None:
    """Say on stderr what the trace's reader decided and left out; after the work, for a refusal is one line."""
    console.note(*(f"{trace.source.path}: {note}" for note in (*trace.notes, *dropped_lines(trace.dropped))))


def dropped_lines(dropped: Mapping[str, int]) -> list[str]:
    """What was left out, a line a reason."""
    return [f"dropped {count:,}: {reason}" for reason, count in dropped.items()]


def check_places(
    json_to: str | None,
    inputs: Iterable[Path | None] = (),
    files: Mapping[str, Path | None] = MappingProxyType({}),
    folders: Mapping[str, Path | None] = MappingProxyType({}),
) -> None:
    """Refuse `--json` and other places of results that cannot be written to, before the work begins."""
    # An empty variable of a shell script, most likely.
    if json_to == "":
        raise ConfigError("--json: names nothing; name a file, or - for stdout")
    json_file = Path(json_to) if json_to and json_to != "-" else None
    check_outputs({**files, "--json": json_file}, folders, inputs)


def emit_json(value: dict[str, Any], json_to: str | None) -> None:
    """Write figures where `--json` says."""
    # Nothing else may stand on stdout then.
    if json_to == "-":
        click.echo(to_json(value), nl=False)
    elif json_to:
        write_text(Path(json_to), to_json(value))


def asked_words(words: Sequence[str]) -> list[str]:
    """A command line without where its results go.

    >>> asked_words(["simulate", "--policy", "sia", "--json", "a.json", "--out=b.csv", "--quiet"])
    ['simulate', '--policy', 'sia']
    """
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in OUTPUTS:
            next(rest, None)
        elif word not in ("--quiet", "--debug") and not word.startswith(tuple(f"{one}=" for one in OUTPUTS)):
            kept.append(word)
    return kept


def typed_words() -> Sequence[str]:
    """The command line as it was typed, behind `jobcast`; nothing where no line was."""
    context = click.get_current_context(silent=True)
    words: Sequence[str] = ((context.obj if context else None) or {}).get("words", ())
    return words


def made_by() -> dict[str, list[str]]:
    """The command that makes a result, without where it goes, for whoever runs it again; see `jobcast bundle`."""
    return {"command": asked_words(typed_words())}


def table_or_json(value: dict[str, Any], json_to: str | None, table: str, console: Console) -> None:
    """Figures as JSON where asked; as a table on stdout unless JSON goes there."""
    emit_json(value, json_to)
    if json_to != "-":
        console.result(table)


def names_in(text: str) -> tuple[str, ...]:
    """Names between commas; a trailing comma names nothing.

    >>> names_in("sia, mmfs,")
    ('sia', 'mmfs')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def whole_numbers(text: str | None, option: str) -> tuple[int, ...]:
    """Numbers between commas. Raises ConfigError for others.

    >>> whole_numbers("4,8", "--ask-gpus")
    (4, 8)
    """
    parts = names_in(text or "")
    for part in parts:
        if not part.isdecimal() or int(part) < 1:
            raise ConfigError(f"{option} {text}: whole numbers >= 1 between commas are expected, got {part!r}")
    return tuple(int(part) for part in parts)


def home_of() -> Path:
    """The home of the registry."""
    # Here, since commands must show their help fast: the registry's package takes longer to import.
    from jobcast.models.registry.home import find_home

    return find_home()


def registry_of() -> "Registry":
    """The registry of the home."""
    from jobcast.models.registry import open_registry

    return open_registry(home_of())


def tidy_home(console: Console, out: Path | None = None) -> Path:
    """The home of the registry, swept, for a command that writes to its store.

    Runs that a dead process left running are ended; half-written files under the store, the home's data, `out` and
    among the system's temporary ones are removed. What a living process owns stays. What was done is said.

    Raises RegistryError for a store that cannot be written to.
    """
    from jobcast.models.registry.runs import sweep_store
    from jobcast.traces.owners import sweep_drafts_below, sweep_scratch

    home = home_of()
    store = sweep_store(home)
    roots = {place.resolve() for place in (home / "data", out) if place is not None}
    drafts = store.drafts + sum(sweep_drafts_below(root) for root in sorted(roots)) + sweep_scratch()
    parts = [counted(count, noun) for count, noun in ((store.runs, "run"), (drafts, "half-written file")) if count]
    if parts:
        console.note(f"swept what interrupted commands had left: {' and '.join(parts)}")
    return home
