"""Published configurations and runs of PCS's simulator for cluster 0e4a51, beside ours."""

import json
from pathlib import Path

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.simulator.metrics import fair_finish_s
from papers.pcs.fronts import NAMES
from papers.pcs.runs import FOLDER, TITLES, percent
from papers.results import HOUR_S, Replayed, grid, number, read_rows

CONFIGURED = "0e4a51"
THEIRS = tuple(f"{name} (published)" for name in NAMES)
MEASURED = {"FIFO": TITLES["elastic_fifo"], "SRSF": TITLES["srsf"], "PCS_bal": THEIRS[1]}
"""Published runs, and what they are called here."""
COLUMNS = ("completion_time_s", "predicted_jct_s", "fair_finish_time_s")
HEAD = (
    "run", "mean JCT h", "mean error %", "p99", "completion apart, s", "forecast apart, s", "fair finish apart, s",
)  # fmt: skip


def published_configs(data: Path) -> dict[str, WfqConfig]:
    """The published configurations for the cluster, by `THEIRS`. Raises ConfigError for a file that holds others."""
    path = data / FOLDER / f"configs_{CONFIGURED}.json"
    saved = json.loads(path.read_text(encoding="utf-8"))
    keys = [f"PCS_config_{CONFIGURED}_{name.removeprefix('PCS-')}" for name in NAMES]
    return {name: parse_config(saved[key], f"{path}, {key}") for name, key in zip(THEIRS, keys, strict=True)}


def compared(data: Path, done: list[Replayed]) -> str:
    """A table: figures of the published runs, and the largest difference of a job from ours, s."""
    rows = []
    for run, name in MEASURED.items():
        log = next(one.log for one in done if one.name == name)
        jct, forecast, fair = (_column(data, run, column) for column in COLUMNS)
        ours = (log.jct_s, log.columns["predicted_end_s"] - log.submit_s, fair_finish_s(log))
        apart = [float(np.abs(mine - one).max()) for mine, one in zip(ours, (jct, forecast, fair), strict=True)]
        # Relative to the forecast: PCS, section 2.2.
        errors = 100 * np.abs(forecast - jct) / forecast
        error = percent(float(errors.mean())), percent(float(np.percentile(errors, 99)))
        rows.append((name, number(float(jct.mean()) / HOUR_S), *error, *(f"{value:.0e}" for value in apart)))
    return grid(HEAD, rows)


def _column(data: Path, run: str, column: str) -> Floats:
    rows = read_rows(data / FOLDER / f"measured_{CONFIGURED}_{run}.csv")
    return np.array([float(row[column]) for row in rows])
