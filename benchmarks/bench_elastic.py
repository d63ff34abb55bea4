"""CPU seconds of elastic policies on a Philly virtual cluster, without and with forecasts, and growth to 50,000 jobs.

    python benchmarks/bench_elastic.py FOLDER [--growth docs/pcs/growth.svg]

FOLDER holds trace_0e4a51.csv, speedups.csv and configs_0e4a51.json. Everything runs once before it is measured, so that
compiling is not. 64 GPUs; PCS in its balanced configuration. For growth the trace is repeated, which keeps its load.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.elastic import ElasticJobs, ElasticPolicy
from jobcast.schedulers.elastic.config import parse_config
from jobcast.schedulers.policies import ELASTIC
from jobcast.schedulers.registry import make_policy, names_of
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay, replay_elastic

GPUS = 64
FIRST_JOBS = 301
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
FORECAST_UNTIL = 10_000
"""Jobs beyond which growth with forecasts is not measured."""
GROWING = ("elastic_fifo", "srsf", "pcs", "afs")


def read_jobs(folder: Path, count: int) -> ElasticJobs:
    """The first `count` jobs of the trace, repeated as often as needed, each time after the last arrival."""
    table, known = pl.read_csv(folder / "trace_0e4a51.csv"), pl.read_csv(folder / "speedups.csv")
    models = known["model"].unique(maintain_order=True).to_list()
    speedup = np.zeros((len(models), 2, GPUS + 1))
    for row, model in enumerate(models):
        of_model = known.filter(pl.col("model") == model).sort("gpus")
        gpus, faster = [0, *of_model["gpus"].to_list()], [0.0, *of_model["speedup"].to_list()]
        speedup[row] = np.interp(np.arange(GPUS + 1), gpus, faster)
    picked = np.arange(count) % len(table)
    most = table["num_jobs"].to_numpy().astype(float)[picked]
    return ElasticJobs(
        submit_s=np.cumsum(table["sleep_time"].to_numpy().astype(float)[picked]),
        size_s=table["service"].to_numpy().astype(float)[picked],
        least=np.zeros(count),
        most=most,
        model=np.array([models.index(name) for name in table["model_name"]], dtype=np.int64)[picked],
        stage_of=np.arange(count + 1),
        stage_end=np.ones(count),
        stage_most=most.copy(),
        speedup=speedup,
        speed=np.ones((len(models), 1)),
    )


def read_policies(folder: Path) -> dict[str, ElasticPolicy]:
    """All policies; PCS as configured there."""
    result = json.loads((folder / "configs_0e4a51.json").read_text())["PCS_config_0e4a51_bal"]
    found = {name: make_policy(name) for name in names_of(ELASTIC)}
    return found | {"pcs": parse_config(result, "balanced").policy()}


def cpu_s(jobs: ElasticJobs, policy: ElasticPolicy, *, predict: bool) -> float:
    """CPU seconds of one run."""
    run = ElasticReplay(jobs, jobs.size_s, ElasticCluster(np.array([float(GPUS)])), policy)
    begun_s = time.process_time()
    replay_elastic(run, predict=predict)
    return time.process_time() - begun_s


def plot(growth: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """CPU seconds over jobs, both logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "growth"
    figure, axes = plt.subplots(figsize=(5.0, 3.4))
    for name, points in growth.items():
        dashed = name.endswith("forecasts")
        axes.loglog(*zip(*points, strict=True), marker="o", ms=3, lw=1, ls="--" if dashed else "-", label=name)
    axes.set(xlabel="jobs", ylabel="CPU seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print one row a policy, then one a size."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--growth", type=Path, help="plot of growth to write; without it growth is not measured")
    given = asked.parse_args()
    policies = read_policies(given.folder)
    for policy in policies.values():
        cpu_s(read_jobs(given.folder, 50), policy, predict=True)
    print(f"{'jobs':>6} {'policy':8} {'CPU s':>8} {'with forecasts':>15}")
    rows = [(FIRST_JOBS, name) for name in policies] + [(len(pl.read_csv(given.folder / "trace_0e4a51.csv")), "pcs")]
    for count, name in rows:
        jobs = read_jobs(given.folder, count)
        plain_s, forecast_s = (cpu_s(jobs, policies[name], predict=predict) for predict in (False, True))
        print(f"{count:6d} {name:8} {plain_s:8.3f} {forecast_s:15.3f}", flush=True)
    if given.growth is None:
        return
    growth: dict[str, list[tuple[int, float]]] = {}
    for count in SIZES:
        jobs = read_jobs(given.folder, count)
        for name in GROWING:
            growth.setdefault(name, []).append((count, cpu_s(jobs, policies[name], predict=False)))
        if count <= FORECAST_UNTIL:
            growth.setdefault("pcs, with forecasts", []).append((count, cpu_s(jobs, policies["pcs"], predict=True)))
        result = (f"{name} {points[-1][1]:.2f}" for name, points in growth.items() if points[-1][0] == count)
        print(f"{count:6d}", *result, flush=True)
    plot(growth, given.growth)


if __name__ == "__main__":
    main()
