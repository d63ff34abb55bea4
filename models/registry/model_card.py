"""A version for people, in markdown: what it learnt from, how well it does, what it is worth, what it does not know."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobcast.models.registry.cards import ModelCard, figure_name, headlines

CARD_MARKDOWN = "model_card.md"
GAINS = "## Gains in backtests"
NO_GAINS = "None yet: `jobcast backtest --forecasts registry` adds them."
CALIBRATION = re.compile(r"(^|/)(ece|coverage\w*|miss_rate|under_predicted|threshold)$")
"""Figures that say how far stated chances hold."""
METADATA = "metadata.json"
MOST_POOLS = 20  # by name


def summary_of(model: object) -> str:
    """What a predictor forecasts: the first paragraph of its class's docstring."""
    return " ".join((inspect.getdoc(type(model)) or "").split("\n\n")[0].split())


def model_card(card: ModelCard, folder: Path, model: object, tags: Mapping[str, str]) -> str:
    """The card of a version that is about to be registered.

    Parameters
    ----------
    card : what it is registered with
    folder : what the predictor's `save` wrote
    model : the predictor
    tags : of the version
    """
    main = headlines(card.metrics)
    calibration = {name: value for name, value in main.items() if CALIBRATION.search(name)}
    others = {name: value for name, value in main.items() if name not in calibration}
    intervals = dict(_intervals(card.metrics, ()))
    parts = [
        f"# {card.name}: {card.algorithm}",
        " ".join(filter(None, (summary_of(model), _sentence(card.description)))),
        "## Trained on",
        _trained_on(card, tags),
        "## Figures",
        _table(others, intervals) or "None were told.",
        "## Calibration",
        _table(calibration, intervals) or "None was measured.",
        gains_section(()),
        "## Limits",
        _limits(card, folder),
    ]
    return "\n\n".join(parts) + "\n"


def gains_section(gains: Sequence[Mapping[str, Any]]) -> str:
    """The section of what a version was worth in backtests; each of `gains` as `evaluations.log_backtest` keeps it."""
    rows = [
        f"| {one['policy']} | {one['against']} | {_number(one['ratio'])} | {_ends(one.get('low'), one.get('high'))} |"
        f" {one['trace']} | {one['from']} to {one['until']} |"
        for one in gains
    ]
    head = "| policy | against | speedup | 95 % | trace | window |\n| :-- | :-- | --: | :-- | :-- | :-- |"
    return f"{GAINS}\n\n" + ("\n".join([head, *rows]) if rows else NO_GAINS)


def with_gains(text: str, gains: Sequence[Mapping[str, Any]]) -> str:
    """A card with these gains in the place of those that it has."""
    before, found, after = text.partition(GAINS)
    if not found:
        return "\n\n".join(filter(None, (text.rstrip(), gains_section(gains)))) + "\n"
    _, mark, rest = after.partition("\n## ")
    return f"{before}{gains_section(gains)}\n{mark}{rest}"


def _trained_on(card: ModelCard, tags: Mapping[str, str]) -> str:
    window = card.train_from_s < card.train_until_s
    result = {
        "trace": f"{card.trace_name}, {card.trace_rows:,} rows",
        "sha256": card.trace_sha256,
        "from": _iso(card.train_from_s) if window else None,
        "until": _iso(card.train_until_s) if window else None,
        "seed": card.seed,
        "code": tags.get("code_sha256"),
        **card.parameters,
    }
    return _list(f"{name}: {value}" for name, value in result.items() if value is not None)


def _limits(card: ModelCard, folder: Path) -> str:
    """What the predictor's own file says of where it ends."""
    file = folder / METADATA
    result = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    pools = result.get("pools") or ()
    shown = ", ".join(map(str, pools[:MOST_POOLS])) + (
        f" and {len(pools) - MOST_POOLS} more" * (len(pools) > MOST_POOLS)
    )
    spans = result.get("feature_spans") or {}
    lines = {
        f"horizons: {', '.join(f'{k:g}' for k in result.get('horizons_min', ()))} minutes; no others": "horizons_min"
        in result,
        f"pools that it has learnt from: {shown}": pools,
        f"it reads {len(card.feature_names)} columns; beyond the values of the training it is counted": spans,
        f"it knows nothing from {_iso(card.train_until_s)} on, and is refused on what it has seen": (
            card.train_from_s < card.train_until_s
        ),
        "of another cluster than it was trained on nothing is promised": True,
    }
    return _list(line for line, holds in lines.items() if holds)


def _table(figures: Mapping[str, float], intervals: Mapping[str, Sequence[float]]) -> str:
    if not figures:
        return ""
    rows = [
        f"| {name} | {_number(value)} | {_ends(*intervals.get(name, (None, None)))} |"
        for name, value in figures.items()
    ]
    return "\n".join(["| figure | value | 95 % |", "| :-- | --: | :-- |", *rows])


def _intervals(nested: Mapping[str, Any], path: tuple[str, ...]) -> Iterable[tuple[str, Sequence[float]]]:
    """Intervals that blocks hold beside their figures, by the figure's name."""
    for key, value in nested.items():
        if key == "intervals" and isinstance(value, Mapping):
            yield from ((figure_name((*path, name)), ends) for name, ends in value.items() if ends is not None)
        elif isinstance(value, Mapping):
            yield from _intervals(value, (*path, str(key)))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.4g} to {high:.4g}"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
