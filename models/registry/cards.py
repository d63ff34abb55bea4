"""What is told of a model when it is registered, and what the registry answers about its versions.

A version for people, in markdown: what it learnt from, how well it does, what it is worth, what it does not know.
"""

import hashlib
import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Scalar = str | int | float | bool | None

NOT_IN_A_METRIC_NAME = re.compile(r"[^\w\-. /]", re.ASCII)  # MLflow: alphanumerics, _, -, ., space and /
DRAWINGS = frozenset({".svg", ".png"})
HEADLINES = 30
"""Figures that a run shows as metrics at most; all of them lie in a table beside the model."""
BEST_KNOWN = (
    *("f1", "pr_auc", "ece", "precision", "recall", "coverage", "missed", "over", "coverage_nonzero"),
    *("accuracy", "log_loss", "macro_f1", "under_predicted", "mae", "mape", "coverage_90", "width_90", "roc_auc"),
    *("speedup", "ratio", "miss_rate", "freed_idle_share", "base_rate", "threshold"),
)
"""Figures by how much they say, the most first."""
ASIDE = frozenset({"by_pool", "baselines", "ablation", "without", "without_bots", "by_duration_group"})
"""Blocks of details, whose figures are no headlines."""
DIGEST_LENGTH = 6  # characters that keep two names apart which differ only in what was replaced


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a version is registered with.

    Attributes
    ----------
    name : the predictor's name, `will-jobs-arrive`
    algorithm, seed : what it was fitted with
    trace_name, trace_sha256, trace_rows : the data set
    train_from_s, train_until_s : training window, seconds from the epoch, the end exclusive
    feature_names : columns that the model reads, in order
    parameters : what else it was fitted with, scalars by name
    metrics : scores by horizon and pool, nested as `jobcast evaluate --json` writes them
    series : values by step, by metric, for MLflow's history, such as what each trial of a search reached
    files : drawings (.svg, .png) and tables to keep beside the run
    description : one line for people
    """

    name: str
    algorithm: str
    seed: int
    trace_name: str
    trace_sha256: str
    trace_rows: int
    train_from_s: float
    train_until_s: float
    feature_names: tuple[str, ...] = ()
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    metrics: Mapping[str, object] = field(default_factory=dict)
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One registered version, as the store held it when it was read.

    Attributes
    ----------
    name, version : the model and its version number, from 1
    aliases : names that point at it, ascending
    run_id : MLflow run that it came from
    location : artifact URI of its files
    created_s : seconds from the epoch
    tags : what was recorded with it
    is_new : whether whoever answers has registered it just now; else an equal model was found
    instead_of : number of the version of the same files whose place it has just taken, since they are gone or damaged
    """

    name: str
    version: int
    aliases: tuple[str, ...]
    run_id: str
    location: str
    created_s: float
    tags: Mapping[str, str]
    is_new: bool = field(default=False, compare=False)
    instead_of: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"

    @property
    def content_sha256(self) -> str:
        """Hash of the predictor's files; equal content means an equal model."""
        return self.tags["content_sha256"]

    @property
    def card_sha256(self) -> str | None:
        """Hash of the version's card, which holds those of all its files and of the code; None in older stores."""
        return self.tags.get("card_sha256")

    @property
    def algorithm(self) -> str:  # noqa: D102
        return self.tags["algorithm"]

    @property
    def trace_name(self) -> str:  # noqa: D102
        return self.tags["trace_name"]

    @property
    def trace_sha256(self) -> str:  # noqa: D102
        return self.tags["trace_sha256"]

    @property
    def train_from_s(self) -> float:
        """Begin of the training window, seconds from the epoch."""
        return float(self.tags["train_from_s"])

    @property
    def train_until_s(self) -> float:
        """End of the training window (exclusive), seconds from the epoch."""
        return float(self.tags["train_until_s"])


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model with its versions, newest first, and where its aliases point."""

    name: str
    description: str
    tags: Mapping[str, str]
    aliases: Mapping[str, int]
    versions: tuple[ModelVersion, ...]


def content_sha256(folder: Path) -> str:
    """Hash of a folder's files, names and bytes; file times, owners and the folder's own name do not count."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest((file.relative_to(folder).as_posix(), file.read_bytes()) for file in files)


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """Hash of files by name and content, in the order given."""
    total = hashlib.sha256()
    for name, data in files:
        total.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return total.hexdigest()


def flatten_metrics(nested: Mapping[str, object]) -> dict[str, float]:
    """Finite figures of a nested result by a name that MLflow takes; what is no figure is left out.

    >>> flatten_metrics({"horizons": {"5min": {"f1": 0.5, "by_pool": {"a": {"n": 3}}}}, "note": "x"})
    {'horizons/5min/f1': 0.5, 'horizons/5min/by_pool/a/n': 3.0}
    """
    return {figure_name(path): value for path, value in _leaves(nested, ())}


def headlines(nested: Mapping[str, object], most: int = HEADLINES) -> dict[str, float]:
    """At most so many figures of a nested result, by the names of `flatten_metrics`: the least deep, the best known.

    >>> headlines({"horizons": {"5min": {"n": 9, "f1": 0.5, "by_pool": {"a": {"f1": 3}}}}}, 2)
    {'horizons/5min/f1': 0.5, 'horizons/5min/n': 9.0}
    """
    known = {name: place for place, name in enumerate(BEST_KNOWN)}
    leaves = [(path, value) for path, value in _leaves(nested, ()) if not ASIDE.intersection(path)]
    leaves.sort(key=lambda leaf: (len(leaf[0]), known.get(leaf[0][-1], len(known))))  # stable: else as they were told
    return {figure_name(path): value for path, value in leaves[:most]}


def _leaves(nested: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in nested.items():
        here = (*path, str(key))
        if isinstance(value, Mapping):
            yield from _leaves(value, here)
        elif _is_number(value):
            yield here, float(value)  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    try:
        # isfinite takes True for 1.
        return not isinstance(value, str | bytes | bool | None) and math.isfinite(value)  # type: ignore[arg-type]
    except TypeError:
        return False


def figure_name(path: tuple[str, ...]) -> str:
    """Name of a figure in MLflow: parts joined by slashes.

    A part with characters that MLflow refuses gets a digest of what it was.

    >>> figure_name(("5min", "by_pool", "a", "f1"))
    '5min/by_pool/a/f1'
    >>> figure_name(("caf%",)) == figure_name(("caf!",))
    False
    """
    return "/".join(_metric_part(part) for part in path)


def _metric_part(part: str) -> str:
    clean = NOT_IN_A_METRIC_NAME.sub("_", part.replace("/", "_")).strip(" .") or "_"
    if clean == part:
        return part
    # Two pools whose names differ in a refused character must not overwrite each other.
    return f"{clean}-{hashlib.sha256(part.encode()).hexdigest()[:DIGEST_LENGTH]}"


CARD_MARKDOWN = "model_card.md"
GAINS = "## Gains in backtests"
NO_GAINS = "None yet: `jobcast backtest --forecasts registry` adds them."
CALIBRATION = re.compile(r"(^|/)(ece|coverage\w*|miss_rate|under_predicted|threshold)$")
"""Figures that say how far stated chances hold."""
METADATA = "metadata.json"
MOST_POOLS = 20  # by name
CUT = "Too long to be shown whole"
"""What a description says at its end that is not all of a card."""
SECTION = "\n## "
"""How a section of a card begins."""
MOST_CHARACTERS = 5000  # of a description and of a registered model's tag, MLflow's columns


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
    _, mark, rest = after.partition(SECTION)
    return f"{before}{gains_section(gains)}\n{mark}{rest}"


def description_of(text: str) -> str:
    """A card as a version's description: its whole lines that MLflow has room for; PostgreSQL refuses more.

    Of a longer one the longest sections lose their last lines, so that a long list hides no other section.
    """
    if len(text) <= MOST_CHARACTERS:
        return text
    end = f"\n\n{CUT}: see `jobcast models show`, and `{CARD_MARKDOWN}` beside the model.\n"
    sections = [section.rstrip() for section in text.split(SECTION)]
    while len(shown := f"\n{SECTION}".join(sections)) + len(end) > MOST_CHARACTERS:
        longest = max(range(len(sections)), key=lambda place: len(sections[place]))
        sections[longest] = sections[longest].rpartition("\n")[0].rstrip()
    return shown + end


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
