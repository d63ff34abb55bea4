"""What PCS publishes beside ours: configurations and runs of its simulator for cluster 0e4a51, rows of whole traces."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobcast import __version__
from jobcast.domain.arrays import Floats
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.simulator.elastic.run import replay_elastic
from jobcast.simulator.metrics import errors_pct, fair_finish_s
from papers.bench import Outcome, RunFile
from papers.pcs.fronts import NAMES
from papers.pcs.runs import FOLDER, TITLES, Task, percent, published, replay
from papers.results import HOUR_S, Replayed, grid, in_parallel, number, read_rows

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


RUNS = ".runs-figure7.jsonl"
"""Beside the figures' folders; not kept in version control."""
ROWS = {"0e4a51": "1", "b436b2": "2", "2869ce": "5", "ee9e8c": "6"}
"""Published rows by cluster. Which is b436b2's is not told: mean JCTs say so, which are equal to all digits printed."""
THEMIS = "Themis"
PUBLISHED = {TITLES["srsf"]: "Tiresias", **dict(zip(THEIRS, ("PCS-JCT", "PCS-bal", "PCS-pred"), strict=True))}
"""Columns of the published rows, where they are called otherwise."""
FILES = {"mean_error_pct": "avg_error", "p99_error_pct": "p99_error", "jct_over_afs": "avg_jct"}
SLOW = {"ee9e8c": ("srsf", "afs"), "b436b2": ("srsf",)}
"""Of these long traces only runs of these policies are made with forecasts: those of others cost much more."""
AS_PUBLISHED = {"rho": "speedup", "pending_lease": "false"}
Found = dict[tuple[str, str], dict[str, float]]
"""By cluster and policy."""


@dataclass(frozen=True, slots=True)
class Run:
    """A policy, or a published configuration, on a whole trace, and whether forecasts are made."""

    data: Path
    cluster: str
    name: str
    policy: str
    predict: bool

    @property
    def key(self) -> str:
        """In the file of runs."""
        return f"{__version__} {self.cluster} {self.name} {self.predict}"


def whole_traces(data: Path, folder: Path) -> Found:
    """Mean JCT, s, and errors, %, of each run; those on file in a folder are not made again."""
    file, runs = RunFile(folder / RUNS, resume=True), list(_runs(data))
    missing = [one for one in runs if one.key not in file.outcomes]
    for key, outcome in in_parallel(_outcome, missing, lambda made: made[0]):
        file.add(key, outcome)
    found = {(one.cluster, one.name): dict(file.outcomes[one.key].figures) for one in runs}
    for (cluster, _), figures in found.items():
        figures["jct_over_afs"] = figures["mean_jct_s"] / found[cluster, TITLES["afs"]]["mean_jct_s"]
    return found


def _runs(data: Path) -> Iterable[Run]:
    for cluster in ROWS:
        for policy in ("afs", "srsf", "elastic_themis", "elastic_fifo"):
            # FIFO's forecasts are exact: there is nothing to measure.
            predict = policy != "elastic_fifo" and policy in SLOW.get(cluster, (policy,))
            yield Run(data, cluster, TITLES[policy], policy, predict)
    for name in THEIRS:
        yield Run(data, CONFIGURED, name, "", predict=True)


def _outcome(run: Run) -> tuple[str, Outcome]:
    scenario = published(run.data, run.cluster, jobs=None)
    config = published_configs(run.data)[run.name] if not run.policy else None
    settings = AS_PUBLISHED if run.name == THEMIS else {}
    log = replay_elastic(replay(Task("", run.name, scenario, run.policy, config, settings)), predict=run.predict)
    figures = {"mean_jct_s": float(log.jct_s.mean()), "mean_error_pct": np.nan, "p99_error_pct": np.nan}
    if run.predict:
        errors = errors_pct(log)
        figures |= {"mean_error_pct": float(errors.mean()), "p99_error_pct": float(np.percentile(errors, 99))}
    return run.key, Outcome(figures)


def published_rows(data: Path) -> Found:
    """The published figures under our names."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for figure, name in FILES.items():
        by_row = {row["workload"]: row for row in read_rows(data / FOLDER / f"figure7_{name}.csv")}
        for cluster, row in ROWS.items():
            for ours in (*TITLES.values(), *THEIRS):
                if PUBLISHED.get(ours, ours) in by_row[row]:
                    rows.setdefault((cluster, ours), {})[figure] = float(by_row[row][PUBLISHED.get(ours, ours)])
    return rows


def whole_table(found: Found, paper: Found) -> str:
    """Ours, and the published figures in brackets."""
    head = ("cluster", "policy", "mean error %", "p99 error %", "mean JCT over AFS's")
    return grid(head, ((*key, *(_beside(found[key], paper[key], figure) for figure in FILES)) for key in found))


def _beside(ours: dict[str, float], paper: dict[str, float], figure: str) -> str:
    return f"{number(ours[figure], 3)} ({paper[figure]:g})"
