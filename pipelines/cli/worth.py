"""`jobcast worth`: what each forecast is worth to each scheduler on a trace."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from jobcast.domain.clock import HOUR_S, WEEK_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.pairs import settings_of
from jobcast.pipelines.cli import options
from jobcast.pipelines.report.formatting import UNKNOWN, counted, number, percent
from jobcast.pipelines.report.layout import aligned


@click.command(name="worth", cls=options.PolicyCommand)
@options.trace_option()
@options.cluster_options
@click.option("--policies", default="sia,sia_risk", show_default=True, metavar="A,B", help="Policies between commas.")
@click.option("--forecasts", "now", default="registry", show_default=True, metavar="KIND", help="Source in use.")
@options.window_options
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Of forecasts that draw.")
@click.option("--baseline", default="fcfs", show_default=True, metavar="NAME", help="Policy to compare with.")
@click.option("--price", type=options.Finite(min=0.0), metavar="EUR", help="Of a GPU-hour: shares in money too.")
@options.matrix_options
def command(
    trace_path: Path, policies: str, now: str, price: float | None, pairs: tuple[str, ...], json_to: str | None,
    **asked: Any,
) -> None:  # fmt: skip
    """What each forecast (arrivals, loads, durations) is worth to a scheduler, and what a better one would be.

    `worth` is each forecast's share of what those in use bring beyond none, `to gain` its share of what exact ones
    would add (Shapley values: they add up), in hours of waiting GPUs saved a week. Then how many of its answers may be
    wrong, the others as they are: before none at all would serve as well, and before more than 1 % of jobs are slowed.

    \b
    Example:
      jobcast worth --trace jobs.parquet --pools pools.csv --from 2024-02-05
      jobcast worth --trace jobs.parquet --pools pools.csv --from 2024-02-05 --policies sia --price 0.80
    """
    from jobcast.pipelines.cli.backtest_request import BacktestRequest, replayed
    from jobcast.pipelines.experiments.backtest import Baselines
    from jobcast.pipelines.experiments.experiment import Experiment, beside_experiment
    from jobcast.pipelines.experiments.simulation import trust_lines
    from jobcast.pipelines.experiments.worth import mixed, parts_of, specs_of, values_of, worth
    from jobcast.schedulers.registry import find_policy
    from jobcast.traces.readers import read_trace

    options.check_places(json_to, (trace_path, asked["pools"], asked["cluster"]))
    wanted = {name: parts_of(find_policy(name)) for name in options.names_in(policies)}
    if not wanted:
        raise ConfigError("--policies: nothing named; write --policies sia,sia_risk")
    specs = {name: specs_of(parts, now) for name, parts in wanted.items()}
    console, home = options.console_of(), options.home_of()
    experiment = Experiment.asked(read_trace(trace_path), asked)
    found, notes = dict[str, Any](), dict[str, None]()
    # Window and cluster are the same for all policies, and so is what each is compared with.
    shared: Baselines = {}
    how = beside_experiment(asked)
    for name, parts in wanted.items():
        sources = tuple(specs[name].values())
        request = BacktestRequest(policies=(name,), forecasts=sources, settings=settings_of(pairs), **how)
        done = replayed(request, experiment, home, console, f"worth {name}", shared)
        if done.lacking:
            raise ConfigError(done.lacking[0].why)
        # With --set both ways ran; what is asked about is the policy as it was set.
        settings = done.wanted[-1].settings
        ran = [one for one in done.results if (one.cell.policy, one.cell.settings) == (name, settings)]
        # Of the forecasts in use alone: mixtures of them ask the same predictors.
        in_use = (one.figures for one in ran if one.cell.spec == mixed(parts, {}, now))
        notes |= dict.fromkeys((*done.notes, *(line for figures in in_use for line in trust_lines(figures))))
        found[name] = worth(parts, now, values_of(ran))
    gpus = done.experiments[0].place().gpus
    week_eur = None if price is None else gpus * WEEK_S / HOUR_S * price
    result = {
        "policies": found,
        "forecasts": now,
        "price_eur": price,
        "cluster_eur_week": week_eur,
        "inputs": {"trace": asdict(experiment.trace.source)},
    }
    console.note(*notes)
    tables = [_told(name, one, price) for name, one in found.items()]
    if week_eur is not None:
        tables.append(_whole(gpus, week_eur))
    options.table_or_json(result, json_to, "\n\n".join(tables), console)


def _whole(gpus: int, week_eur: float) -> str:
    return (
        f"EUR are of GPU-hours that jobs wait for, which nobody pays: they may exceed what the cluster costs, "
        f"{counted(gpus, 'GPU')} all week for {number(week_eur)} EUR"
    )


def _told(name: str, found: Mapping[str, Any], price: float | None) -> str:
    def amounts(value: float) -> list[str]:
        return [number(value), *([] if price is None else [number(value * price)])]

    money = [] if price is None else ["EUR"]
    head = [
        name,
        "worth, GPU-h/week",
        *money,
        "to gain, GPU-h/week",
        *money,
        "useful while wrong",
        "harmless while wrong",
    ]
    rows: list[Sequence[str]] = [head]
    for one in found["parts"]:
        if one["worth"] == one["headroom"] == 0.0:
            until = [UNKNOWN, UNKNOWN]  # the policy asks and does not go by it
        else:
            shares = (one[key] for key in ("break_even", "harmless_until"))
            until = ["all" if share is None else percent(100.0 * share) for share in shares]
        rows.append([one["part"], *amounts(one["worth"]), *amounts(one["headroom"]), *until])
    whole = [sum(one[key] for one in found["parts"]) for key in ("worth", "headroom")]
    rows.append(["all", *amounts(whole[0]), *amounts(whole[1]), "", ""])
    return "\n".join([aligned(rows), *_verdict(found["parts"], found)])


def _verdict(parts: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> list[str]:
    slowed = " / ".join(percent(found[name]["slowed_pct"]) for name in ("none", "now", "exact"))
    lines = [f"slowed: {slowed} of jobs with none, these and exact forecasts"]
    if len(parts) > 1:
        most = max(parts, key=lambda one: one["headroom"])
        least = min(parts, key=lambda one: one["headroom"])
        if most["headroom"] > 0.0:
            gain = number(most["headroom"])
            lines.append(f"improve {most['part']} first ({gain} GPU-h/week to gain), {least['part']} last")
        else:
            lines.append("no forecast is worth improving: exact ones would save no more")
    return lines
