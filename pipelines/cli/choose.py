"""`jobcast choose`: the scheduler and setting for this cluster, from replayed windows."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobcast.domain.clock import DAY_S
from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.experiments.forecast_specs import HELP, PREDICTORS, split_forecasts
from jobcast.pipelines.report.files import write_text
from jobcast.pipelines.report.formatting import (
    between,
    counted,
    duration,
    moment,
    number,
    on_shown_clock,
    percent,
    shown_zone,
)
from jobcast.pipelines.report.layout import aligned

if TYPE_CHECKING:
    from jobcast.pipelines.cli.backtest_request import Replayed
    from jobcast.pipelines.report.console import Console
    from jobcast.traces.table import Trace

CANDIDATES = "easy,mmfs,sia,sia_risk"
TRAIN_SHARE = 0.6
"""Of the time that the trace spans, to train on where no window is named."""


@click.command(name="choose", cls=options.PolicyCommand)
@options.trace_option()
@options.cluster_options
@click.option("--now", "baseline", default="fcfs", show_default=True, metavar="NAME", help="Policy in use.")
@click.option("--policies", default=CANDIDATES, show_default=True, metavar="A,B", help="Candidates, or all.")
@click.option("--forecasts", metavar="K1,K2", help=f"Sources between commas: {HELP}; default: as of simulate.")
@options.window_options
@click.option("--windows", type=click.IntRange(min=2), default=4, show_default=True, help="Split the window in N.")
@click.option(
    "--slowed",
    "slowed_pct",
    type=options.Finite(0.0, 100.0),
    default=1.0,  # choice.MOST_SLOWED_PCT, of a slow module
    show_default=True,
    metavar="PCT",
    help="Jobs that may end later than now, in percent.",
)
@options.law_option
@options.matrix_options
@click.option("--train", is_flag=True, help="Train predictors that have no version on what came before the windows.")
@click.option("--html", type=options.FILE, help="Write a page that recommends, with its evidence.")
@options.timezone_option
def command(
    trace_path: Path, policies: str, forecasts: str | None, slowed_pct: float, pairs: tuple[str, ...],
    json_to: str | None, html: Path | None, train: bool, **asked: Any,
) -> None:  # fmt: skip
    """Say which scheduler and setting to run on this cluster, from what would have been in windows of its past.

    Window after window the choice is made by those before it, as it would have been then: another scheduler is taken
    only where it is faster beyond doubt (the lower bound of the paired interval above 1) and slows few enough jobs.
    What the walk lost against the best choice in hindsight is told as its regret. With --set, policies that know the
    setting, that of --now among them, are candidates both without it and with it. With --train and without --from, the
    windows begin after the first 60 % of the time.

    \b
    Example:
      jobcast choose --trace jobs.parquet --pools pools.csv --train --html choice.html
      jobcast choose --trace jobs.parquet --pools pools.csv --from 2024-02-05 --now easy --slowed 0.5 --windows 6
    """
    from jobcast.pipelines.cli.backtest_request import BacktestRequest, replayed
    from jobcast.pipelines.experiments.backtest_results import jobs_of
    from jobcast.pipelines.experiments.choice import choose, rows_of
    from jobcast.pipelines.experiments.experiment import Experiment, beside_experiment
    from jobcast.pipelines.experiments.rigid_jobs import asks_for_locality
    from jobcast.pipelines.experiments.settings import settings_for
    from jobcast.traces.readers import read_trace

    options.check_places(json_to, (trace_path, asked["pools"], asked["cluster"]), {"--html": html})
    console, home, trace = options.console_of(), options.home_of(), read_trace(trace_path)
    if train:
        asked["from_s"] = _trained(trace, asked["from_s"], home, console)
    settings = settings_of(pairs)
    # What is in use is replayed as it is; a setting that it knows makes it a candidate, too.
    knows = settings_for(asked["baseline"], settings, asks_for_locality(settings))
    request = BacktestRequest(
        policies=tuple(dict.fromkeys((*options.names_in(policies), *([asked["baseline"]] if knows else ())))),
        forecasts=() if forecasts is None else tuple(split_forecasts(forecasts)),
        settings=settings,
        **beside_experiment(asked),
    )
    done = replayed(request, Experiment.asked(trace, asked), home, console, "choose")
    now = next(cell.label for cell in done.cells if cell.policy == request.baseline)
    # Each window tells anew what a policy lacks.
    lacks = {one["policy"]: one["lacks"] for one in done.skipped} | {one.cell.policy: one.why for one in done.lacking}
    if not done.results:
        raise ConfigError("; ".join(dict.fromkeys(lacks.values())))
    rows, left = rows_of(jobs_of(done.results), [one.row() for one in done.results], now)
    if now not in {row.label for row in rows}:
        raise ConfigError(f"--now {request.baseline}: {lacks.get(request.baseline) or left[now]}")
    result = choose(rows, now, slowed_pct, left=left)
    result["skipped"] = [{"policy": policy, "lacks": why} for policy, why in lacks.items()]
    result["inputs"] = {"trace": asdict(trace.source)}
    result["versions"] = next(
        (dict(one.run.models) for one in done.results if one.cell.label == result["choice"]["label"]), {}
    )
    said = (*done.notes, *(f"skipped {policy}: {why}" for policy, why in lacks.items()), *done.doubts)
    console.note(*map(on_shown_clock, said), *_stretched(result))
    untrained = any(why.startswith("no model") for why in lacks.values())
    learn = "bring a longer trace" if train else "add --train: it trains what is missing on the time before the windows"
    result["remedy"] = learn if untrained else ""
    if untrained:
        console.note(result["remedy"])
    if html:
        _write_page(html, result, done)
        console.note(f"page: {html}")
    options.table_or_json(result, json_to, _told(result), console)


def _trained(trace: "Trace", from_s: float | None, home: Path, console: "Console") -> float:
    """Train each predictor that has no version, on what came before the windows; where they begin.

    From what is too little to learn from nothing is learned: the policies that need no forecasts are compared then.
    """
    from jobcast.models.registry import CHAMPION, open_registry
    from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
    from jobcast.pipelines.lifecycle.training import train_and_register

    first, last = float(trace.submit_s[0]), float(trace.submit_s[-1])
    begin = first + TRAIN_SHARE * (last - first) if from_s is None else from_s
    registry = open_registry(home)
    there = {version.name for version in registry.list()}
    for name in PREDICTORS:
        if name not in there:
            try:
                with console.progress(f"train {name}") as step:
                    train_and_register(name, None, trace, None, begin, TrainSettings(), home=home, progress=step)
            except TrainingError as error:
                console.note(f"{name} is not trained: {error}")
            else:
                console.note(f"trained {name} on the time before {moment(begin)} {shown_zone()}: champion, not gated")
        elif CHAMPION in registry.show(name).aliases:
            version = registry.resolve(name)
            until = f"{moment(version.train_until_s)} {shown_zone()}"
            console.note(f"{name} is not trained anew: its champion learnt from {version.trace_name} until {until}")
    return begin


def _write_page(path: Path, result: Mapping[str, Any], done: "Replayed") -> None:
    import shlex

    from jobcast.pipelines.report.advice import choice_page

    first, last = done.experiments[0], done.experiments[-1]
    place = first.place()
    facts = [
        ("trace", f"{first.trace.source.path} ({number(first.trace.source.rows)} rows)"),
        ("SHA-256", first.trace.source.sha256),
        (
            "replayed",
            f"{moment(first.from_s)} to {moment(last.until_s)} {shown_zone()}, "
            f"{counted(len(done.experiments), 'window')}",
        ),
        ("jobs compared", number(result["candidates"][0]["jobs"])),
        ("pools", f"{len(place.pools)} with {number(place.gpus)} GPUs in all"),
        ("quotas", place.origin),
        ("jobs that may be slowed", f"{result['slowed_pct']:g} %"),
        *(("note", on_shown_clock(note)) for note in (*done.notes, *done.doubts, *_stretched(result))),
    ]
    windows = zip(result["windows"], done.experiments, strict=True)
    shown = {**result, "windows": [{**one, "from": moment(of.from_s)} for one, of in windows]}
    write_text(path, choice_page(shown, facts, done.closer(), f"jobcast {shlex.join(options.typed_words())}"))


def _stretched(result: Mapping[str, Any]) -> list[str]:
    """What to know of hours a week that stand for less than a day."""
    if result["days"] >= 1.0:
        return []
    seen = duration(result["days"] * DAY_S)
    return [f"hours a week are those of {seen} of jobs, told as of a week; bring a longer trace before going by them"]


def _told(result: Mapping[str, Any]) -> str:
    from jobcast.pipelines.report.advice import in_money, regret_in_words

    head = ["", "against now", "95 %", "saved h/week", "slowed", "by (h)", "why not"]
    body = [
        [
            one["label"],
            number(one.get("speedup")),
            between(one.get("low"), one.get("high")),
            number(one.get("saved_h_week")),
            percent(one.get("slowed_pct")),
            number(one.get("slowdown_h")),
            one["why"] or "",
        ]
        for one in result["candidates"]
    ]
    verdict = f"run {result['choice']['label']}" if result["switch"] else f"stay with {result['now']}"
    used = ", ".join(one["used"] for one in result["windows"])
    walked = number(result["walk_saved_h_week"])
    lines = [
        aligned([head, *body]),
        "",
        verdict,
        f"  by windows it would have been: {used}: {walked} h/week saved",
        f"  the best in hindsight, {result['best_in_hindsight']} throughout: {regret_in_words(result)}",
    ]
    if money := in_money(result):
        lines.append(f"  {money[0].lower()}{money[1:]}")
    return "\n".join(lines)
