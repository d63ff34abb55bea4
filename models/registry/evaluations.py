"""Evaluations beside the version that they score: an MLflow run of their own, under the run that trained it."""

import json
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast import __version__
from jobcast.models.registry.cards import ModelVersion, flatten_metrics
from jobcast.models.registry.runs import open_run
from jobcast.models.registry.writer import DRAWINGS, METRICS_A_BATCH

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARENT_TAG = "mlflow.parentRunId"
KIND_TAG = "jobcast.kind"
KIND = "evaluation"
MS_PER_S = 1000.0


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
    from jobcast.models.registry.mlflow_door import mlflow_errors, open_client

    with mlflow_errors(home):
        client = open_client(home)
        parent = client.get_run(version.run_id)
        name = f"{kind} of {version} from {result['window']['from']}"
        with open_run(client, home, parent.info.experiment_id, name, _tags(version, kind)) as run_id:
            _log(client, run_id, result, files)
    return run_id


def _tags(version: ModelVersion, kind: str) -> dict[str, str]:
    return {
        KIND_TAG: kind,
        PARENT_TAG: version.run_id,
        "model_name": version.name,
        "model_version": str(version.version),
        "jobcast_version": __version__,
        "python": platform.python_version(),
    }


def _log(client: "MlflowClient", run_id: str, result: Mapping[str, Any], files: Sequence[Path]) -> None:
    from mlflow.entities import Metric, Param

    trace = result["inputs"]["trace"]
    facts = {
        **{key: result["window"][key] for key in ("from", "until")},
        "pools": len(result["pools"]),
        "trace_sha256": trace["sha256"],
        "trace_rows": trace["rows"],
        "bootstrap": json.dumps(result.get("bootstrap")),
    }
    client.log_batch(run_id, params=[Param(name, str(value)) for name, value in facts.items()])
    now_ms = int(time.time() * MS_PER_S)
    scored = {key: result[key] for key in result if key not in ("inputs", "version", "bootstrap", "trained")}
    metrics = [Metric(name, value, now_ms, 0) for name, value in flatten_metrics(scored).items()]
    for first in range(0, len(metrics), METRICS_A_BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + METRICS_A_BATCH])
    for file in files:
        client.log_artifact(run_id, str(file), "plots" if file.suffix in DRAWINGS else "tables")
