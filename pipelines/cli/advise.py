"""`jobcast advise`: what a policy that lends would do now on a running Slurm, and doing it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.domain.errors import ClusterError, ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.report.layout import aligned
from jobcast.traces.files import reason

if TYPE_CHECKING:
    from jobcast.live.advice import Advice
    from jobcast.live.advisor import Advisor, Rules
    from jobcast.live.champions import ChampionWatch
    from jobcast.live.event_log import EventLog
    from jobcast.live.news import Clock
    from jobcast.live.slurm import Slurm
    from jobcast.live.state import LogReader
    from jobcast.models.registry import Registry
    from jobcast.pipelines.report.console import Console

PATIENCE_S = 60.0
"""For which a cluster may be silent until it is said that nothing is done."""


@click.command(name="advise")
@click.option("--slurm", is_flag=True, help="The Slurm that SLURM_CONF or /etc names; the one cluster so far.")
@click.option("--apply", "apply_", is_flag=True, help="Do it; without, only say what would be done.")
@click.option("--undo", is_flag=True, help="Put limits of leases back as before the first --apply, and stop.")
@click.option("--once", is_flag=True, help="Look once, not again and again.")
@click.option("--every", "every_s", type=options.Finite(min=0.5), default=5.0, show_default=True, help="Seconds.")
@click.option("--policy", default="sia", show_default=True, help="That lends: see `jobcast policies`.")
@options.set_option
@options.pool_by_option
@click.option("--max-lent", type=click.IntRange(min=0), help="GPUs that a pool may have on lease at once.")
@click.option("--actions-per-minute", type=click.IntRange(min=1), default=30, show_default=True, help="Grants.")
@click.option("--preempt", is_flag=True, help="Let owners stop jobs on lease; without, these end by themselves.")
@options.clock_options
@options.json_option
def command(
    slurm: bool, apply_: bool, undo: bool, once: bool, every_s: float, json_to: str | None, **asked: Any
) -> None:
    """Say, or do, what lends idle GPUs of a running Slurm to jobs that will be gone before their owners need them.

    A job that is lent to is put into the QOS lent_<its pool>, whose limit is what that pool has on lease, with a mark
    in its AdminComment. No time limit is shortened unless its comment holds jobcast=shorten. Where forecasts are
    missing, old or bad nothing new is lent, and it is said. Slurm holds all that counts: stopping this at any time
    leaves running jobs alone, and the next look finds the leases by their marks.

    \b
    Example:
      jobcast advise --slurm --once
      jobcast advise --slurm --apply --max-lent 16 --json advice.jsonl
      jobcast advise --slurm --undo
    """
    from jobcast.live.advisor import Rules
    from jobcast.live.claims import alone
    from jobcast.live.event_log import EventLog, kept_for_good
    from jobcast.live.slurm import Slurm
    from jobcast.live.state import LogReader

    if not slurm:
        raise ConfigError("advise: name the cluster; add --slurm")
    if undo and (apply_ or once):
        raise ConfigError("--undo: goes alone; leave --apply and --once out")
    console, home = options.console_of(), options.home_of()
    log = EventLog(home)
    clock = clock_of(log, asked["clock_scale"], asked["clock_start"])
    make = lending_policy(asked["policy"], settings_of(asked["pairs"]))
    rules = Rules(asked["pool_by"], asked["max_lent"], asked["actions_per_minute"], asked["preempt"])
    with kept_for_good():
        known = LogReader(log)
    watch, advisor = advisor_of(Slurm(), known, options.registry_of(), make, rules, clock)
    # Nobody of a home without a live side applies, and what is refused leaves none behind.
    changes = apply_ or (undo and (home / "live").is_dir())
    with alone(home) if changes else nullcontext():
        if undo:
            click.echo("\n".join(advisor.undo(time.time())))
            return
        with _lines(json_to) as write:
            _watch(advisor, watch, apply_, once, every_s, write, console)


def _watch(
    advisor: "Advisor",
    watch: "ChampionWatch",
    apply_: bool,
    once: bool,
    every_s: float,
    write: Callable[[dict[str, Any]], None],
    console: "Console",
) -> None:
    """Look, say, do; again and again. A cluster that does not answer is asked again, and it is said."""

    said, said_s = "", 0.0
    while True:
        began_s = time.time()
        watch.poll()
        try:
            figures, table = _one(advisor, apply_, began_s)
        except ClusterError as error:
            if once:
                raise
            # Said at once, and again each minute: whoever reads the end of a log must see it.
            if str(error) != said or began_s - said_s >= PATIENCE_S:
                console.note(f"nothing is done: {error}")
                write({"as_of_s": began_s, "degraded": [str(error)], "actions": []})
                said, said_s = str(error), began_s
        else:
            said = ""
            if once or figures["actions"] or figures["failed"]:
                click.echo(table)
            write(figures)
        if once:
            return
        time.sleep(max(0.0, began_s + every_s - time.time()))


def _one(advisor: "Advisor", apply_: bool, now_s: float) -> tuple[dict[str, Any], str]:
    """One look: figures for JSON, and a table."""
    from jobcast.live.advice import advice_figures

    snapshot = advisor.look(now_s)
    advice = advisor.advise(snapshot)
    figures = advice_figures(advice) | {"applied": apply_, "failed": []}
    if apply_:
        figures["failed"] = advisor.carry_out(advice, snapshot)
        figures["outlived_forecast"] = len(advisor.overstayed(advice))
    figures["took_s"] = time.time() - now_s
    return figures, _table(advice, figures)


def _table(advice: "Advice", figures: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [("pool", "quota", "held", "on lease", "waiting for")]
    rows += [(name, *(str(row[key]) for key in row)) for name, row in advice.pools.items()]
    done = "done" if figures["applied"] else "would do"
    actions = [
        (one.do, one.what, one.pool, "no limit" if one.gpus is None else f"{one.gpus} GPUs", one.why)
        for one in advice.actions
    ]
    lines = [f"as of {figures['as_of']}", aligned(rows), "", f"{done}: nothing" if not actions else f"{done}:"]
    lines += [aligned(actions)] if actions else []
    lines += [f"left: job {name}: {why}" for name, why in advice.left]
    if advice.stopped["jobs"]:
        lost = f"{advice.stopped['jobs']} jobs on lease were stopped in 7 days"
        lines.append(f"{lost}: {advice.stopped['gpu_hours_lost']:.1f} GPU-hours lost")
    lines += [f"degraded: {why}" for why in advice.degraded]
    lines += [f"failed: {why}" for why in figures["failed"]]
    return "\n".join(lines)


def advisor_of(
    cluster: "Slurm",
    known: "LogReader",
    registry: "Registry",
    make_policy: Callable[[Any], Any],
    rules: "Rules",
    clock: "Clock",
) -> tuple["ChampionWatch", "Advisor"]:
    """What looks at a Slurm and says what to lend by the champions, and what looks these up."""
    from jobcast.live.advisor import Advisor
    from jobcast.live.champions import ARRIVALS, DURATIONS, LOADS, ChampionWatch
    from jobcast.live.forecasts import ChampionForecasts

    # What cannot answer now is found out when it is asked: nothing is known of the cluster yet.
    watch = ChampionWatch(registry, lambda _: None, needed=(ARRIVALS, LOADS, DURATIONS))
    return watch, Advisor(cluster, known, ChampionForecasts(watch), make_policy, rules, clock)


def lending_policy(name: str, settings: dict[str, str]) -> Callable[[Any], Any]:
    """Makes a policy that lends by forecasts. Raises ConfigError for one that does not, or settings it has not.

    Slurm starts what fits a pool's quota, past a job that does not: a policy that can reckon with that does by default.
    """
    from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
    from jobcast.schedulers.policies import LOADS, POOLS
    from jobcast.schedulers.registry import BUILT_IN, find_policy, make_policy
    from jobcast.simulator.guard import Nobody

    spec = find_policy(name)
    if spec.kind != POOLS or LOADS not in spec.asks:
        lending = ", ".join(one.name for one in BUILT_IN.values() if one.kind == POOLS and LOADS in one.asks)
        raise ConfigError(f"policy {name} lends nothing by forecasts of loads; choose from {lending}")
    settings = {**spec.overtaking, **settings}
    # Settings that it has not are refused now, not at the first look.
    make_policy(name, Nobody("", DEFAULT_HORIZONS_MIN), settings)
    return lambda forecasts: make_policy(name, forecasts, settings)


def clock_of(log: "EventLog", scale: float, start: str | None) -> "Clock":
    """Of forecasts, which counts from where it counted when it was first asked for: see the log."""
    from jobcast.live.event_log import CLOCK, Event
    from jobcast.live.news import REAL, Clock

    if scale == 1.0 and start is None:
        return REAL
    asked, now_s = {"scale": scale, "start": start}, time.time()
    for _, one in log.since(0):
        if one.kind == CLOCK and {name: one.facts[name] for name in asked} == asked:
            return Clock(scale, one.facts["from_s"], one.at_s)
    at_s = now_s if start is None else parse_time(start, "--clock-start")
    log.append([Event(at_s, CLOCK, f"{scale:g}", at_s, {**asked, "from_s": now_s})])
    return Clock(scale, now_s, at_s)


@contextmanager
def _lines(json_to: str | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A file, or standard output, that takes a line of JSON a look."""
    import json

    if json_to is None:
        yield lambda figures: None
        return
    if json_to == "-":
        yield lambda figures: click.echo(json.dumps(figures))
        return
    try:
        with Path(json_to).open("a", encoding="utf-8") as file:
            yield lambda figures: print(json.dumps(figures), file=file, flush=True)
    except OSError as error:
        raise ConfigError(f"--json {json_to}: cannot be written ({reason(error)})") from error
