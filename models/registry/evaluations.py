"""Evaluations beside the version that they score: an MLflow run of their own, under the run that trained it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import (
    CARD_MARKDOWN,
    CUT,
    DRAWINGS,
    HEADLINES,
    ModelVersion,
    description_of,
    figure_name,
    headlines,
    with_gains,
)
from jobcast.models.registry.runs import log_numbers, open_run, run_tags
from jobcast.models.registry.store import Store
from jobcast.models.registry.stores import store_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARENT_TAG = "mlflow.parentRunId"
KIND_TAG = "jobcast.kind"
KIND = "evaluation"
BACKTEST = "backtest"
BACKTESTS_TAG = "backtests"
"""Tag of a version: its last backtests with their gains, newest first, as JSON."""
LAST = 5


def log_evaluation(
    home: Path, version: ModelVersion, result: Mapping[str, Any], files: Sequence[Path], kind: str = KIND
) -> str:
    """Keep an evaluation in MLflow: figures as metrics, the window as parameters, tables and plots as artifacts.

    Parameters
    ----------
    home : folder that holds `mlruns/`
    version : what was scored
    result : figures as `jobcast evaluate --json` tells them
    files : tables, plots and JSON to keep beside them
    kind : what it was: an evaluation, or a comparison with another version

    Returns
    -------
    The id of the run. It is a child of the run that trained the version and carries its number as a tag.

    Raises
    ------
    RegistryError
        The store cannot be written.
    """
    store = store_of(home)
    with store.client() as client:
        parent = client.get_run(version.run_id)
        name = f"{kind} of {version} from {result['window']['from']}"
        with open_run(client, store, parent.info.experiment_id, name, _tags(version, kind)) as run_id:
            _log(client, run_id, result, files)
    return run_id


@dataclass(frozen=True, slots=True)
class BacktestRecord:
    """What versions were worth to schedulers on a trace.

    Attributes
    ----------
    trace, trace_sha256 : its name and hash
    from_time, until_time : the window that was replayed, ISO-8601
    gains : versions, each with how many times as fast a row is as another: `label`, `policy`, `against`, `ratio`,
        `low`, `high` as `jobcast backtest --json` tells them
    """

    trace: str
    trace_sha256: str
    from_time: str
    until_time: str
    gains: Sequence[tuple[ModelVersion, Sequence[Mapping[str, Any]]]]


def log_backtest(home: Path, record: BacktestRecord) -> dict[str, str]:
    """Keep a backtest in MLflow, beside every version in it; ids of the runs, by version.

    Each gets a run under the one that trained it, a tag with the last backtests, and the gains in its description.

    Raises RegistryError where the store cannot be written.
    """
    store, made = store_of(home), {}
    with store.client() as client:
        for version, gains in record.gains:
            made[str(version)] = _log_backtest(client, store, record, version, gains)
    return made


def _log_backtest(
    client: "MlflowClient",
    store: Store,
    record: BacktestRecord,
    version: ModelVersion,
    gains: Sequence[Mapping[str, Any]],
) -> str:
    about = {"trace": record.trace, "from": record.from_time, "until": record.until_time}
    facts = {**about, "trace_sha256": record.trace_sha256}
    parent, name = client.get_run(version.run_id), f"{BACKTEST} of {version} from {record.from_time}"
    with open_run(client, store, parent.info.experiment_id, name, _tags(version, BACKTEST)) as run_id:
        figures = {
            figure_name((one["label"], f"against {one['against']}", end)): one[end]
            for one in gains
            for end in ("ratio", "low", "high")
            if one.get(end) is not None
        }
        log_numbers(client, run_id, dict(list(figures.items())[:HEADLINES]), facts)
        client.log_dict(run_id, {**facts, "gains": list(gains)}, "gains.json")
    lines = [{key: one.get(key) for key in ("label", "policy", "against", "ratio", "low", "high")} for one in gains]
    # The newest first; the oldest falls out.
    last = [{**facts, "run_id": run_id, "gains": lines[:HEADLINES]}, *last_backtests(version)][:LAST]
    # The card's table is made anew from all that are kept.
    rows = [{**one, **gain, "policy": gain["label"]} for one in last for gain in one["gains"]]
    number = str(version.version)
    text = client.get_model_version(version.name, number).description or ""
    # What was cut is not in it any more; what people wrote into it stands nowhere else.
    text = (_card_of(store, version) if CUT in text else "") or text
    client.update_model_version(version.name, number, description_of(with_gains(text, rows)))
    client.set_model_version_tag(version.name, number, BACKTESTS_TAG, json.dumps(last))
    return run_id


def _card_of(store: Store, version: ModelVersion) -> str:
    """The card beside a version's model; empty where it cannot be read."""
    try:
        return (store.folder(version) / CARD_MARKDOWN).read_text(encoding="utf-8")
    except (RegistryError, OSError):
        return ""


def last_backtests(version: ModelVersion) -> list[dict[str, Any]]:
    """A version's last backtests, newest first: run, trace, window, gains."""
    return list(json.loads(version.tags.get(BACKTESTS_TAG, "[]")))


def _tags(version: ModelVersion, kind: str) -> dict[str, str]:
    return {
        KIND_TAG: kind,
        PARENT_TAG: version.run_id,
        "model_name": version.name,
        "model_version": str(version.version),
        **run_tags(),
    }


def _log(client: "MlflowClient", run_id: str, result: Mapping[str, Any], files: Sequence[Path]) -> None:
    trace = result["inputs"]["trace"]
    facts = {
        **{key: result["window"][key] for key in ("from", "until")},
        "pools": len(result["pools"]),
        "trace_sha256": trace["sha256"],
        "trace_rows": trace["rows"],
        "bootstrap": json.dumps(result.get("bootstrap")),
    }
    # What is no score would only take the place of one among the headlines.
    scored = {key: result[key] for key in result if key not in ("inputs", "version", "bootstrap", "trained")}
    log_numbers(client, run_id, headlines(scored), facts)
    for file in files:
        client.log_artifact(run_id, str(file), "plots" if file.suffix in DRAWINGS else "tables")
