"""Registered versions as rows of figures and as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.domain.errors import ConfigError, RegistryError
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelCard, ModelVersion
from jobcast.models.registry.evaluations import BacktestRecord, last_backtests, log_backtest
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.layout import aligned
from jobcast.traces.owners import scratch_room

NO_CALENDAR = "-"


def has_calendar(version: ModelVersion) -> bool:
    """Whether a version was trained on a stretch of time; training curves have none."""
    return version.train_from_s < version.train_until_s


def version_row(version: ModelVersion) -> dict[str, Any]:
    """What there is to say of a version, JSON-ready."""
    return {
        "name": version.name,
        "version": version.version,
        "aliases": list(version.aliases),
        "algorithm": version.algorithm,
        "trained_from": iso(version.train_from_s) if has_calendar(version) else None,
        "trained_until": iso(version.train_until_s) if has_calendar(version) else None,
        "trace": version.trace_name,
        "trace_sha256": version.trace_sha256,
        "content_sha256": version.content_sha256,
        "run_id": version.run_id,
        "registered": iso(float(int(version.created_s))),
        "jobcast": version.tags.get("jobcast_version"),
    }


def version_details(registry: Registry, version: ModelVersion) -> dict[str, Any]:
    """All that there is to say of a version, JSON-ready: where it comes from, figures, its last backtests.

    Of one whose files are gone, which `missing` says, the figures are those that its run shows.
    """
    try:
        figures: dict[str, Any] = {"metrics": registry.metrics(version)}
    except RegistryError as error:
        figures = {"metrics": registry.run_metrics(version), "missing": str(error)}
    return {
        **version_row(version),
        "origin": registry.origin(version),
        "parameters": registry.parameters(version),
        **figures,
        "backtests": last_backtests(version),
        **registry.staleness(),
    }


def log_on_versions(
    home: Path, figures: Mapping[str, Any], name: str, sha256: str, window: tuple[float | None, ...]
) -> str:
    """Keep a backtest beside every version in it; a line about what was done, empty where there was nothing to do.

    A registry that cannot be written to is told of and spoils nothing: figures are the backtest's, wherever they lie.

    Parameters
    ----------
    figures : `rows` with the `versions` behind them, `gains`, `baselines`, as `jobcast backtest --json` tells them
    name, sha256 : of the trace
    window : begin and end, seconds from the epoch
    """
    labels: dict[tuple[str, int], set[str]] = {}
    for row in figures["rows"]:
        # A version may answer in several rows, of one policy or more.
        for one in row["versions"].items():
            labels.setdefault(one, set()).add(row["label"])
    if not labels:
        return ""
    bases = set(figures["baselines"].values())
    # What a version is worth is told against a baseline, not against its rivals.
    known = [gain for gain in figures["gains"] if gain["against"] in bases and gain["ratio"] is not None]
    begin, end = (str(iso(seconds)) for seconds in window)
    try:
        registry = open_registry(home)
        gains = [
            (registry.resolve(*one), [gain for gain in known if gain["label"] in mine]) for one, mine in labels.items()
        ]
        record = BacktestRecord(name, sha256, begin, end, gains)
        return f"logged on {', '.join(log_backtest(home, record))}"
    # The backtest is done: its figures must not be lost for a registry that is away.
    except (RegistryError, ConfigError) as error:
        return f"not logged on the versions: {error}"


def of_version(version: ModelVersion) -> dict[str, Any]:
    """Which version figures are of, as results of commands begin."""
    return {"predictor": version.name, "version": version.version, "aliases": list(version.aliases)}


def made_from(source: Any, notes: Iterable[str] = (), dropped: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What figures were made from and by, as results of commands end.

    Parameters
    ----------
    source : of a trace, or a table; has `path`, `sha256` and `rows`
    notes, dropped : what the reader decided and left out
    """
    return {
        "inputs": {"trace": {key: getattr(source, key) for key in ("path", "sha256", "rows")}},
        "notes": list(notes),
        **({"dropped": dict(dropped)} if dropped else {}),
        "jobcast": __version__,
    }


@contextmanager
def saved(model: Any) -> Iterator[Path]:
    """The folder that a fitted predictor was saved into, while it is registered."""
    with scratch_room("model") as room:
        folder = room / model.name
        model.save(folder)
        yield folder


def card_of_table(table: Any, model: Any, seed: int, **result: Any) -> ModelCard:
    """What the registry is told of a predictor that learnt from a table or trace, of `path`, `sha256` and `rows`."""
    told = {"trace_name": Path(table.path).stem, "trace_sha256": table.sha256, "trace_rows": table.rows, **result}
    times = {"train_from_s": model.trained_from_s_, "train_until_s": model.trained_until_s_}
    return ModelCard(name=model.name, seed=seed, **times, **told)


def of_training(version: ModelVersion, home: Path, seed: int) -> dict[str, Any]:
    """What every training tells of its version."""
    result = {"run_id": version.run_id, "algorithm": version.algorithm, "seed": seed, "home": str(home)}
    result |= {"new": version.is_new}
    if version.instead_of is not None:
        result["instead_of"] = version.instead_of
    return {**of_version(version), **result}


def versions_table(versions: Iterable[ModelVersion]) -> str:
    """A line a version."""
    rows = [
        (
            version.name,
            str(version.version),
            ", ".join(version.aliases),
            version.algorithm,
            version.trace_name,
            str(iso(version.train_until_s)) if has_calendar(version) else NO_CALENDAR,
        )
        for version in versions
    ]
    if not rows:
        return "no models yet; run `jobcast run`, or `jobcast train NAME --trace FILE`"
    return aligned([("model", "version", "aliases", "algorithm", "trace", "trained until"), *rows])


def details(figures: Mapping[str, Any], indent: str = "") -> str:
    """Nested figures, a line each."""
    lines = []
    for key, value in figures.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}", details(value, indent + "  ")] if value else []
        elif isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
            lines += [f"{indent}{key}", *(details(one, indent + "  ") for one in value)]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            lines.append(f"{indent}{key:<24} {', '.join(map(_shown, value))}")
        elif value is not None:
            lines.append(f"{indent}{key:<24} {_shown(value)}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def version_lines(result: Mapping[str, Any]) -> list[str]:
    """Which version a training made, in lines."""
    aliases = ", ".join(result["aliases"])
    lines = [f"{result['predictor']} version {result['version']} ({aliases or 'no alias'}), {result['algorithm']}"]
    if not result.get("new", True):
        lines.append("the same model was registered before: no new version, aliases stay")
    elif "instead_of" in result:
        lines.append(
            f"the same model as version {result['instead_of']}, whose files are gone or damaged: has its aliases"
        )
    elif CHAMPION in result["aliases"]:
        lines.append("champion as the first version of its name: not gated (`jobcast run` gates)")
    return lines


def training_table(result: Mapping[str, Any]) -> str:
    """What `train` says to a person."""
    lines = version_lines(result)
    lines.append(f"trained on {result['training']['train_from']} to {result['training']['train_until']}")
    for horizon, block in result["validation"].get("horizons", {}).items():
        shown = [
            f"{name} {block[name]:.3f}"
            for name in ("base_rate", "f1", "pr_auc", "ece", "coverage", "over")
            if block.get(name) is not None
        ]
        lines.append(f"  end of training time, {horizon}: {', '.join(shown)}")
    if "accuracy" in result["validation"]:
        block = result["validation"]
        lines.append(f"  end of training time: accuracy {block['accuracy']:.3f}, macro F1 {block['macro_f1']:.3f}")
    return "\n".join(lines)
