"""What copies and moves of tasks earn where servers are slow: MLF-H on MLFS's generated workloads, paired by draw.

    python benchmarks/bench_stragglers.py [--draws 501,502] [--jobs 310] [--gpus 40] [--shares 0,0.05,0.2]
        [--ways ignore,move,replicate,both] [--set NAME=VALUE ...] [--runs FILE]

Each draw is replayed for each share of slow servers and each of the ways, of which the first is what the others are
held against. Runs are written to FILE as they end, and those on file are not made again. The table has mean completion
times over those of the first way, with 95 % intervals (Student's t of differences of logarithms), points of deadlines
kept, and GPU-hours used over those of the first way.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import t as student

from jobcast.domain.hardware import Cluster
from jobcast.pipelines.experiments.clusters import servers
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.experiments.tasks.jobs import task_jobs
from jobcast.pipelines.experiments.tasks.simulation import simulate_tasks
from jobcast.simulator.metrics import figures
from jobcast.traces.generators import generate, generate_tasks
from jobcast.traces.learning_curves import write_job_curves
from jobcast.traces.readers import read_trace
from jobcast.traces.table_files import write_trace
from jobcast.traces.tasks import write_tasks

GPUS_PER_SERVER = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", default="501,502")
    parser.add_argument("--jobs", type=int, default=310)
    parser.add_argument("--gpus", type=int, default=40)
    parser.add_argument("--shares", default="0,0.05,0.2")
    parser.add_argument("--ways", default="ignore,move,replicate,both")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--runs", type=Path, help="where runs are kept; those that are there are not made again")
    told = parser.parse_args()
    settings = dict(one.split("=", 1) for one in told.settings)
    shares, ways, runs = told.shares.split(","), told.ways.split(","), on_file(told.runs)
    for draw in told.draws.split(","):
        scenario = None
        for share, way in product(shares, ways):
            key = key_of(told, settings, draw, share, way)
            if key not in runs:
                scenario = scenario or drawn(int(draw), told.jobs, told.gpus)
                how = {"stragglers": share, "slow_servers": way, **settings}
                ask = Ask(policy="mlf_h", home=Path(), settings=how, seed=int(draw))
                made = simulate_tasks(scenario, ask, None)
                row = {**figures(made.log), "used_h": made.log.columns["used_gpu_s"].sum() / 3600.0}
                kept = {name: row[name] for name in ("mean_jct_s", "deadline_ratio", "used_h")}
                runs[key] = {**kept, "cpu_s": made.cpu_s}
                if told.runs:
                    with told.runs.open("a") as file:
                        file.write(json.dumps([key, runs[key]]) + "\n")
    tell(runs, told, settings, shares, ways)


def key_of(told, settings, draw, share, way):
    """What a run is known by in the file."""
    return json.dumps([draw, told.jobs, told.gpus, share, way, sorted(settings.items())])


def on_file(path):
    """Figures of runs by key."""
    return dict(json.loads(line) for line in path.read_text().splitlines()) if path and path.exists() else {}


def drawn(seed, jobs, gpus):
    """A draw of the generator `mlfs` without a trace, on servers of four GPUs; the load of its x on 80 GPUs."""
    settings = {"jobs": jobs, "gpus": gpus}
    with TemporaryDirectory() as folder:
        trace, tasks, curves = (Path(folder, f"{name}.parquet") for name in ("jobs", "tasks", "curves"))
        of_tasks, of_curves = generate_tasks("mlfs", seed, settings)
        write_trace(generate("mlfs", seed, settings)[0], trace)
        write_tasks(of_tasks, tasks)
        write_job_curves(of_curves, curves)
        place = Cluster((servers(gpus // GPUS_PER_SERVER, GPUS_PER_SERVER),), origin=f"{gpus} GPUs")
        return task_jobs(cut_scenario(read_trace(trace), place), tasks=tasks, curves=curves)


def tell(runs, told, settings, shares, ways):
    print("| slow | done about it | draws | mean time | deadlines, points | GPU-hours |\n|---|---|---|---|---|---|")
    for share, way in product(shares, ways[1:]):
        found = []
        for draw in told.draws.split(","):
            keys = [key_of(told, settings, draw, share, one) for one in (ways[0], way)]
            found.append([[runs[key][name] for key in keys] for name in ("mean_jct_s", "deadline_ratio", "used_h")])
        of = np.array(found)  # (draws, measures, 2)
        logs = np.log(of[:, :, 1] / of[:, :, 0])
        late = 100.0 * (of[:, 1, 1] - of[:, 1, 0])
        times, used = (percent(*interval(logs[:, kind])) for kind in (0, 2))
        mean, low, high = interval(late)
        print(f"| {share} | {way} | {len(of)} | {times} | {mean:+.1f} ({low:+.1f} to {high:+.1f}) | {used} |")


def interval(values):
    """Mean, and its 95 % interval."""
    half = (
        student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    )
    return values.mean(), values.mean() - half, values.mean() + half


def percent(*logs):
    mean, low, high = (100.0 * np.expm1(one) for one in logs)
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


if __name__ == "__main__":
    main()
