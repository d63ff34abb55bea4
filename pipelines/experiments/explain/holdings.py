"""Of any run: what a job held over time, who held the GPUs while it held none, and what was forecast of it.

What was forecast of one job while a policy was asked, each answer beside the truth.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.law import GOODPUT, SPEEDUP
from jobcast.pipelines.experiments.explain.phrases import Told, finite, gpus_of, length
from jobcast.pipelines.experiments.explain.reservations import MOST
from jobcast.pipelines.experiments.explain.run_table import RunTable
from jobcast.pipelines.experiments.forecast_recording import ACCURACY, DURATION, EPOCH_TIME, LEFT
from jobcast.pipelines.report.formatting import counted, forecasts_in_words, instant, number

SHOWN_ANSWERS = 12
RIGHT = 5e-4
"""Share of the truth by which an answer may differ and still be called right."""
WORDS: Mapping[str, str] = {
    DURATION: "to run for {answer}",
    LEFT: "{answer} left, batch size x epochs: {of}",
    ACCURACY: "final accuracy {answer} after {of}",
    EPOCH_TIME: "{answer} an epoch on {of}",
}


DECLARED: Mapping[str, str] = {SPEEDUP: "declared sizes", GOODPUT: "goodput as measured"}
"""What the oracle tells of jobs that declare it, by law."""


def answers_of(table: RunTable, job: int) -> dict[str, Any]:
    """What the policy asks of forecasts, None where no record tells; who answers; what was answered of the job."""
    record = table.record
    if record is None:
        return {}
    rows = record.of_jobs
    mine = [] if rows is None else rows.filter(pl.col("job_id") == table.job_ids[job]).drop("job_id").to_dicts()
    return {"asks": record.figures.get("asks"), "source": _source(record.figures), "answers": mine}


def _source(figures: Mapping[str, Any]) -> str | None:
    label = figures.get("forecasts")
    if label == "oracle":
        return DECLARED.get(figures["law"], "the oracle: the future itself, which nobody has")
    return None if label is None else forecasts_in_words(label)


def tell_answers(explained: Told) -> list[str]:
    """The answers, a line each; where there is none, why."""
    forecast, policy = explained["forecast"], explained["run"]["policy"]
    if forecast.get("asks") is None:
        return []
    if not forecast["asks"]:
        return [f"  {policy} asks for no forecasts"]
    answers = forecast["answers"]
    if not answers and not forecast.get("duration_bin"):
        return [f"  {policy} asks for {', '.join(forecast['asks'])}, and was told nothing of this job"]
    lines = [_line(one) for one in answers[:SHOWN_ANSWERS]]
    if len(answers) > SHOWN_ANSWERS:
        lines.append(f"  and {counted(len(answers) - SHOWN_ANSWERS, 'more answer')}")
    return lines


def _line(one: Told) -> str:
    seconds, answer, truth = one["question"] != ACCURACY, one["answer"], one["truth"]
    show = length if seconds else number
    spread = f" ± {number(one['spread'])}" if one["spread"] else ""
    when = f"{instant(one['at_s'])}: " if one["at_s"] is not None else ""
    said = WORDS[one["question"]].format(answer=show(answer) + spread, of=one["of"])
    if truth is None:
        return f"  {when}{said}"
    return f"  {when}{said}; in truth {show(truth)}{_off(answer - truth, truth, seconds)}"


def _off(more: float, truth: float, seconds: bool) -> str:
    """By how much an answer was off: a time by a share of the truth."""
    if abs(more) <= RIGHT * abs(truth):
        return ""
    way = ("too long" if more > 0 else "too short") if seconds else ("too high" if more > 0 else "too low")
    by = f"{number(100.0 * abs(more) / truth)} %" if seconds and truth > 0.0 else number(abs(more))
    return f", {by} {way}"


SHOWN_STRETCHES, SHOWN_HOLDERS = 8, 5
HOLDERS = {"job": "job_id", "user": "user", "pool": "pool"}
"""What holders are grouped by -> column of the table."""
LEAST_GPUS = 1e-9
MARKET = ("market_budget", "market_price", "market_rounds", "market_worth_last", "market_worth_next")
"""See `schedulers.shockwave.policy`."""
MARKET_LINE = "  its first plan: a budget of {:.4g} buys {:.4g} rounds at {:.4g} a GPU-round; a GPU-round of {}"
FORECASTS = ("predicted_jct_s", "fair_finish_s", "accuracy", "accuracy_by_deadline", "iterations_done", "energy_kwh")
"""Columns that are told beside completions, where the table has them."""


def holdings_of(table: RunTable, job: int) -> dict[str, Any]:
    """All of it, of one job: `held`, `while_waiting`, `forecast`."""
    held = stretches_of(table, job)
    return {"held": held, "while_waiting": while_waiting(table, job, held), "forecast": forecast_of(table, job)}


def stretches_of(table: RunTable, job: int) -> list[dict[str, Any]]:
    """When the job held how many GPUs of which nodes, without the times in which it held none."""
    mine = np.flatnonzero(table.held.job == job)
    from_s, until_s = table.held.from_s[mine], table.held.until_s[mine]
    # Spans overlap where a job sits on several nodes: between two instants nothing changes.
    instants = np.unique(np.concatenate([from_s, until_s]))
    found: list[dict[str, Any]] = []
    for begin_s, end_s in zip(instants[:-1].tolist(), instants[1:].tolist(), strict=True):
        rows = mine[(from_s <= begin_s) & (until_s >= end_s)]
        # Fractions of GPUs are sums of floats: rounding lets equal stretches join.
        gpus = round(float(table.held.gpus[rows].sum()), 6)
        nodes = sorted({int(node) for node in table.held.node[rows] if node >= 0})
        if gpus <= LEAST_GPUS:
            continue
        last = found[-1] if found else None
        if last is not None and (last["until_s"], last["gpus"], last["nodes"]) == (begin_s, gpus, nodes):
            last["until_s"] = end_s
        else:
            found.append({"from_s": begin_s, "until_s": end_s, "gpus": gpus, "nodes": nodes})
    return found


def while_waiting(table: RunTable, job: int, held: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Who held how many GPUs, in the mean over the time in which the job held none; None where there was none.

    `jobs`, `users` and `pools` name those that held most, the largest first.
    """
    begin_s, end_s = _waits(table, job, held)
    seconds = float((end_s - begin_s).sum())
    if seconds <= 0.0:
        return None
    # Begin and end of each wait in turn.
    edges = np.column_stack([begin_s, end_s]).ravel()
    # Time waited so far at each edge: only every other stretch is a wait.
    waited = np.concatenate([[0.0], np.cumsum(np.diff(edges) * (np.arange(len(edges) - 1) % 2 == 0))])
    # How much of each span falls into the waits, all spans at once.
    inside = np.interp(table.held.until_s, edges, waited) - np.interp(table.held.from_s, edges, waited)
    gpus = np.bincount(table.held.job, inside * table.held.gpus, minlength=len(table)) / seconds
    return {
        "seconds": seconds,
        "gpus_held": float(gpus.sum()),
        **{f"{name}s": _most(table, gpus, column) for name, column in HOLDERS.items()},
    }


def _waits(table: RunTable, job: int, held: list[dict[str, Any]]) -> tuple[Floats, Floats]:
    """Begins and ends of the times between submission and end in which the job held nothing."""
    end_s = float(table.end_s[job])
    # It never ended: its wait lasts as long as anybody held GPUs.
    if not np.isfinite(end_s):
        end_s = float(table.held.until_s.max(initial=table.submit_s[job]))
    edges = [float(table.known_s[job])]
    for stretch in held:
        edges += [stretch["from_s"], stretch["until_s"]]
    begin, end = np.array(edges[::2]), np.array([*edges[1::2], end_s])
    kept: Bools = end > begin
    return begin[kept], end[kept]


def _most(table: RunTable, gpus: Floats, column: str) -> list[dict[str, Any]]:
    rows = table.rows
    if column not in rows.columns:
        return []
    grouped = (
        pl.DataFrame({"name": rows[column].cast(pl.String).fill_null(""), "gpus": gpus})
        .group_by("name", maintain_order=True)
        .agg(pl.col("gpus").sum())
        .filter(pl.col("gpus") > LEAST_GPUS)
        .sort("gpus", descending=True, maintain_order=True)
    )
    return [{"name": name, "gpus": share} for name, share in grouped.head(MOST).iter_rows()]


def forecast_of(table: RunTable, job: int) -> dict[str, Any]:
    """What was forecast of the job, and what came of it; nothing where nothing was."""
    result: dict[str, Any] = {}
    end_s, predicted_s = float(table.end_s[job]), table.seconds("predicted_end_time")
    if predicted_s is not None and np.isfinite(predicted_s[job]):
        result["predicted_end_s"] = float(predicted_s[job])
        result["later_than_predicted_s"] = finite(end_s - float(predicted_s[job]))
    due_s = table.seconds("deadline")
    if due_s is not None and np.isfinite(due_s[job]):
        result |= {"due_s": float(due_s[job]), "later_than_due_s": finite(end_s - float(due_s[job]))}
    if table.bins is not None:
        result["duration_bin"] = table.bins[job]
    for name in (*FORECASTS, *MARKET):
        value = table.number(name, job)
        if value is not None:
            result[name] = value
    return result | answers_of(table, job)


def tell_held(explained: Told) -> list[str]:
    """What the job held, a line a stretch."""
    held = explained["held"]
    if not held:
        return ["It held no GPUs."]
    lines = ["What it held"]
    for stretch in held[:SHOWN_STRETCHES]:
        on = f" on node {', '.join(map(str, stretch['nodes']))}" if stretch["nodes"] else ""
        span = f"{instant(stretch['from_s'])} to {instant(stretch['until_s'])}"
        lines.append(f"  {span} ({length(stretch['until_s'] - stretch['from_s'])}): {gpus_of(stretch['gpus'])}{on}")
    if len(held) > SHOWN_STRETCHES:
        lines.append(f"  and {len(held) - SHOWN_STRETCHES:,} more stretches")
    return lines


def tell_waiting(explained: Told) -> list[str]:
    """Who held the GPUs while the job held none."""
    waiting = explained["while_waiting"]
    if waiting is None:
        return []
    lines = [
        f"While it held none, for {length(waiting['seconds'])}, others held {waiting['gpus_held']:.3g} GPUs in the mean"
    ]
    for name in HOLDERS:
        shown = [f"{one['name'] or 'unnamed'} {one['gpus']:.3g}" for one in waiting[f"{name}s"][:SHOWN_HOLDERS]]
        if shown:
            lines.append(f"  by {name}: {', '.join(shown)}")
    return lines


def tell_forecast(explained: Told) -> list[str]:
    """What was forecast of the job."""
    forecast: Mapping[str, Any] = explained["forecast"]
    lines = []
    for key, late, what in (
        ("predicted_end_s", "later_than_predicted_s", "forecast at its submission to end"),
        ("due_s", "later_than_due_s", "due"),
    ):
        if key in forecast:
            lines.append(f"  {what} {instant(forecast[key])}{_apart(forecast[late])}")
    if forecast.get("duration_bin"):
        lines.append(f"  forecast to run {forecast['duration_bin']}")
    lines += [f"  {name} {forecast[name]:.6g}" for name in FORECASTS if name in forecast]
    if "market_price" in forecast:
        lines.append(_market(forecast))
    lines += tell_answers(explained)
    source = f" ({forecast['source']})" if forecast.get("source") else ""
    return [f"What was forecast of it{source}, and came", *lines] if lines else []


def _market(forecast: Mapping[str, Any]) -> str:
    """What a job bought; who buys no round has no last one."""
    budget, price, rounds, last, following = (forecast.get(name) for name in MARKET)
    worth = f"the next is worth {following:.4g} to it"
    if last is not None:
        worth = f"the last is worth {last:.4g} to it, of the next {following:.4g}"
    return MARKET_LINE.format(budget, rounds, price, worth)


def _apart(later_s: float | None) -> str:
    if later_s is None:
        return ", and did not end"
    return f"; it ended {length(abs(later_s))} {'later' if later_s > 0 else 'before'}"
