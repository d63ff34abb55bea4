"""Intervals of completion times, scored: traces x policies x how sizes are known, one line a cell.

Traces are those of TuftsNATLab/PCS (`pcs/trace_NAME.csv` in the folder JOBCAST_DATA), on as many GPUs as make a load
of 0.9, down to whole nodes of eight; the last 60 % of the jobs are scored, every n-th so that 350 are. PCS goes by
the balanced configuration that is published for the cluster, else by that for 0e4a51.

    JOBCAST_DATA=DIR python benchmarks/bench_intervals.py [--traces 0e4a51,2869ce] [--against CHECKOUT] [--json FILE]

`--against` scores the code of another checkout too, 393025d and later ones, and tells the pinball loss over its loss.
`cpu_s` is all of a cell's CPU time, `warm_s` what of it the jobs of the past take that a tracker begins with.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

GPUS = {"0e4a51": 64, "2869ce": 32, "ee9e8c": 176, "b436b2": 152}
POLICIES = ("elastic_fifo", "srsf", "pcs")
SIZES = ("declared", "noisy:0.4", "forecast")
SCORED = 350
HISTORY = 0.4
FUTURES = 40
COLUMNS = (
    *("n", "coverage_50", "coverage_90", "first_half", "second_half", "wide_share", "coverage_90_wide"),
    *("ratio_median", "pinball", "pinball_s", "cpu_s", "warm_s"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", default=",".join(GPUS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--futures", type=int, default=FUTURES)
    parser.add_argument("--scored", type=int, default=SCORED)
    parser.add_argument("--seed", type=int, default=0, help="of the futures")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--json", type=Path, help="where figures are added, one JSON object a line")
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(cell(*options.cell, options.futures, options.scored, options.seed)))
        return
    print(f"{'trace':<7} {'GPUs':>4} {'policy':<12} {'sizes':<10}", *(f"{one:>11.11}" for one in COLUMNS), "over old")
    for sizes in options.sizes.split(","):
        for trace in options.traces.split(","):
            for policy in options.policies.split(","):
                mine = asked(None, (trace, policy, sizes), options)
                old = asked(options.against, (trace, policy, sizes), options) if options.against else {}
                ratios = [f"{mine[name] / old[name]:.2f}" for name in ("pinball", "pinball_s") if old.get(name)]
                print(
                    f"{trace:<7} {GPUS[trace]:>4} {policy:<12} {sizes:<10}",
                    *(f"{mine[one]:>11.4g}" if mine[one] is not None else f"{'-':>11}" for one in COLUMNS),
                    *ratios,
                    flush=True,
                )
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        result = {"trace": trace, "gpus": GPUS[trace], "policy": policy, "sizes": sizes}
                        file.write(json.dumps({**result, "seed": options.seed, **mine, "old": old}) + "\n")


def asked(checkout, key, options):
    """One cell, in a process of its own: the code of another checkout must not meet ours."""
    root = checkout or Path(__file__).resolve().parents[1]
    words = [
        sys.executable,
        __file__,
        "--cell",
        *key,
        "--futures",
        str(options.futures),
        "--scored",
        str(options.scored),
        "--seed",
        str(options.seed),
    ]
    result = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(root / "src")}, stdout=subprocess.PIPE, check=True, text=True
    )
    return figures(json.loads(result.stdout.splitlines()[-1]))


def cell(name, policy, sizes, futures, scored, seed):
    """Intervals of a cell and what jobs came to, by whatever version of the package is imported."""
    from importlib.util import find_spec

    former = find_spec("jobcast.pipelines.experiments") is None
    spread = float(sizes.partition(":")[2] or 0.0)
    how = {"futures": futures, "seed": seed, "declared": sizes != "forecast"}
    began_s = time.process_time()
    found, made, warm_s = (tracked_by_393025d if former else tracked)(name, policy, spread, scored, how)
    return {
        "made": [[(one.level, one.low_s, one.high_s) for one in row] for row in made],
        "actual_s": found.actual_s.tolist(),
        "futures_s": found.futures_s.tolist(),
        "cpu_s": time.process_time() - began_s,
        "warm_s": warm_s,
    }


def tracked(name, policy, spread, scored, how):
    """What was drawn, intervals, and the CPU seconds of the jobs of the past that a tracker begins with."""
    from jobcast.models.completion.completion_time import tracker_of
    from jobcast.pipelines.experiments.clusters import cluster_of
    from jobcast.pipelines.experiments.elastic import completion_prediction, conformal_intervals
    from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
    from jobcast.pipelines.experiments.elastic.simulation import prepare, with_sizes
    from jobcast.pipelines.experiments.scenarios import cut_scenario
    from jobcast.traces.readers import read_trace

    trace, settings = read_trace(converted(name)), settings_of(policy, name)
    facts = {"speedups": Path(settings["speedups"])}
    from_s = float(trace.submit_s[int(HISTORY * len(trace))])
    place = cluster_of(trace, pools=None, gpus=GPUS[name], cluster=None, from_s=from_s)
    scene = elastic_jobs(cut_scenario(trace, place.shared, from_s=from_s), **facts)
    wrong = wrong_by(spread, len(scene))
    known = []
    began_s = time.process_time()
    if hasattr(completion_prediction, "warmed"):
        facts["spread"] = spread
        known = [completion_prediction.warmed(scene, policy, settings, facts, **how)]
    warm_s = time.process_time() - began_s
    scene = with_sizes(scene, scene.workload.size_s * wrong)
    earlier = completion_prediction.earlier_of(scene, facts)
    found = conformal_intervals.forecast_run(
        prepare(scene, policy, settings), earlier, asked_about(len(scene), scored), **how
    )
    submit_s = scene.workload.jobs.submit_s[found.job]
    return found, conformal_intervals.track(found, submit_s, tracker_of(None, *known)), warm_s


def tracked_by_393025d(name, policy, spread, scored, how):
    """The same by the first version that told intervals, whose modules stand elsewhere."""
    from dataclasses import replace

    from jobcast.models.completion.calibration import IntervalTracker
    from jobcast.pipelines.elastic import intervals
    from jobcast.pipelines.elastic.cluster import hardware
    from jobcast.pipelines.elastic.history import earlier_of
    from jobcast.pipelines.elastic.scene import elastic_scene
    from jobcast.pipelines.elastic.simulating import prepare

    from jobcast.traces.readers import read_trace

    trace, settings = read_trace(converted(name)), settings_of(policy, name)
    from_s = float(trace.submit_s[int(HISTORY * len(trace))])
    place = hardware(trace, gpus=GPUS[name], cluster=None, pools=None)
    scene = elastic_scene(trace, place, speedups=Path(settings["speedups"]), from_s=from_s)
    earlier, count = earlier_of(scene, place, settings, from_s), len(scene.size_s)
    declared_s = scene.jobs.size_s * wrong_by(spread, count)
    scene = replace(scene, jobs=scene.jobs._replace(size_s=declared_s))
    own = {key: value for key, value in settings.items() if key != "speedups"}
    run = prepare(scene, policy.removeprefix("elastic_"), own)
    found = intervals.forecast_run(run, earlier, asked_about(count, scored), **how)
    return found, intervals.track(found, scene.jobs.submit_s[found.job], IntervalTracker()), 0.0


def wrong_by(spread, count):
    """Factors of what jobs declare, log-normal."""
    import numpy as np

    rng = np.random.default_rng(0)
    rng.uniform(size=count)
    return np.exp(spread * rng.standard_normal(count))


def asked_about(count, scored):
    """Every n-th job."""
    every = max(1, count // scored)
    return list(range(every // 2, count, every))


def figures(found):
    """Of a cell: one way of counting for all versions, this checkout's."""
    import numpy as np

    from jobcast.models.completion.intervals import LEAST_S, Interval, interval_figures

    rows = [[Interval(*one) for one in row] for row in found.pop("made")]
    actual_s, futures_s = (np.array(found.pop(name)) for name in ("actual_s", "futures_s"))
    return {**interval_figures(rows, actual_s, np.maximum(futures_s, LEAST_S)), **found}


def converted(name):
    """The trace in the package's own format, written once."""
    from tempfile import gettempdir

    path = Path(gettempdir()) / f"bench_intervals_{name}.parquet"
    if not path.exists():
        source = data() / f"trace_{name}.csv"
        words = (sys.executable, "-m", "jobcast", "trace", "convert", "pcs", source, "--out", path)
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return path


def settings_of(policy, name):
    """Speedups, and the configuration of PCS."""
    settings = {"speedups": str(data() / "speedups.csv")}
    if policy == "pcs":
        published = data() / f"configs_{name}.json"
        saved = json.loads((published if published.exists() else data() / "configs_0e4a51.json").read_text())
        path = converted(name).with_suffix(".json")
        path.write_text(json.dumps(next(one for key, one in saved.items() if "bal" in key)))
        settings["config"] = str(path)
    return settings


def data():
    """Where the traces are."""
    return Path(os.environ["JOBCAST_DATA"]) / "pcs"


if __name__ == "__main__":
    main()
