"""What drift means, in words: what is off, since when, what it costs, and the command that mends it."""

from collections.abc import Mapping, Sequence
from shlex import join
from typing import Any

from jobcast.pipelines.lifecycle.drift_verdict import CHECK, FINE, RETRAIN, ROLL_BACK, Found
from jobcast.pipelines.report.formatting import iso, listed, number

WORDS = {
    "bias": "forecasts less what came, on average",
    "surprise": "surprise beyond what the forecasts themselves expect (nats)",
    "miss_rate": "share of the windows with arrivals that the gate declared idle",
    "coverage": "share of the windows whose load the estimate reached",
    "accuracy": "share of the jobs whose likeliest bin was right",
    "log_loss": "log loss",
    "coverage_90": "share that the 90 % intervals held",
    "skill": "error saved against the rule that learns nothing",
    "mae_log10": "distance from the truth (powers of ten)",
    "mae": "error of the last value",
    "mape": "relative error",
    "regime_error": "error of batch sizes to come (% of the epochs)",
    "speedup": "speedup over the heuristic",
}
"""Figures that have limits."""
COSTS = {
    "pool_hours_lent_wrongly": "pool-hours lent although their owners came",
    "pool_hours_held_in_vain": "pool-hours held although nobody came",
    "gpu_hours_lent_wrongly": "GPU-hours that owners came for beyond what was reserved",
    "gpu_hours_held_in_vain": "GPU-hours held for nobody",
    "gpu_hours_kept_too_long": "GPU-hours that jobs ran on after the time told",
}
"""What mistakes cost; of windows that overlap each counts for its step, and of horizons their mean."""
PASSED = "off until the week before, no longer beyond doubt"
UNHARMED = "inputs moved, forecasts hold"


def in_words(one: Found, promised: bool) -> str:
    """A figure that is off, with the interval that holds beside all others."""
    words = WORDS.get(one.figure, one.figure)
    span = [f"{number(one.low)} to {number(one.high)}"] if one.high > one.low else []
    beside = "; ".join([*span, *([f"promised {number(one.nominal)}"] if promised else [])])
    return f"{one.block}: {words} {number(one.value)}{f' ({beside})' if beside else ''}"


def advice(weeks: Sequence[Mapping[str, Any]], name: str, path: str, until_s: float | None) -> dict[str, Any]:
    """What happened, since when, what it costs and what to do, of weeks up to the last one.

    Parameters
    ----------
    name, path : of the predictor and of the trace
    until_s : up to when there is something to learn from, seconds from the epoch; None of a file without a calendar
    """
    last = weeks[-1]
    says, moved = last["verdict"], last["inputs"]["moved"]
    what = listed(last["reasons"]) if last["reasons"] else "every figure is within what its few days can tell"
    if says == FINE and moved:
        what = f"{UNHARMED}: {listed(moved[:3])}"
    since = last["off"][0]["since"] if last["off"] else None
    return {
        "what": what,
        "since": since,
        "cost": _cost(weeks, since),
        "do": _to_do(says),
        "command": _command(says, name, path, until_s),
    }


def _cost(weeks: Sequence[Mapping[str, Any]], since: str | None) -> dict[str, float]:
    """Of a week: on average since it is off, else over all of them; weeks that are cut short do not count."""
    whole = [week for week in weeks if week["complete"]]
    late = [week for week in whole if since is None or week["from"] >= since] or whole
    names = late[-1]["cost"] if late else {}
    return {name: round(sum(week["cost"][name] for week in late) / len(late), 2) for name in names}


def _to_do(says: str) -> str:
    return {
        FINE: "nothing",
        RETRAIN: "train a version on what has come since, then let it be compared",
        ROLL_BACK: "go back to the champion of before, which forecasts these weeks better",
        CHECK: "look at how the trace is recorded before anything is trained on it",
    }.get(says, "look again next week: it is, or was, off by more than chance")


def _command(says: str, name: str, path: str, until_s: float | None) -> str | None:
    """What to type, where there is something to do."""
    until = () if until_s is None else ("--until", str(iso(until_s)))
    words: tuple[str, ...] | None = {
        RETRAIN: ("train", name, "--trace", path, *until),
        ROLL_BACK: ("models", "rollback", name),
        CHECK: ("trace", "describe", path),
    }.get(says)
    return None if words is None else join(("jobcast", *words))


def cost_in_words(cost: Mapping[str, float]) -> str:
    """Of a week."""
    return listed([f"{number(amount)} {COSTS[name]}" for name, amount in cost.items()])
