"""What scaling workers in the market is worth to Shockwave (its section 8.2): elastic against as asked, and Pollux.

    JOBCAST_DATA=DIR python benchmarks/bench_shockwave_workers.py [--mix NAME ...] [--first-seed N] [--draws N]

Draws of the generator `gavel` on 8 GPUs, enriched by assumed speedups: each job may run
on 1 GPU up to those asked for. All meet the same jobs under the law of epochs; batch sizes change as the jobs have it.
Medians over draws (least to most), for all but the first also of its difference to the first by draw, percent.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.pipelines.surface import command

GPUS, JOBS, RESTART_S = 8, 30, 20
CLUSTER = f"nodes:\n  - {{count: {GPUS // 4}, gpus: 4, gpu_type: v100}}\n"
MIXES: dict[str, dict[str, object]] = {
    "published": {},
    "wide": {"width_shares": "0.25,0.25,0.25,0.25"},
    "wide, calm": {"width_shares": "0.25,0.25,0.25,0.25", "contention": 1},
}
RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "shockwave": ("shockwave", {}),
    "shockwave, workers=elastic": ("shockwave", {"workers": "elastic"}),
    "pollux": ("pollux", {}),
}
SHOWN = ("makespan_s", "mean_jct_s", "worst_ftf", "unfair_pct_105_lifetime")


def main() -> None:
    options = _options()
    for mix in options.mix:
        seeds = range(options.first_seed, options.first_seed + options.draws)
        # (draws, runs, figures)
        rows = []
        for seed in seeds:
            rows.append(figures_of(MIXES[mix], seed))
            print(f"{mix}, seed {seed}: {rows[-1]}", flush=True)
        table = np.array(rows)
        print(f"\n{mix}: {options.draws} draws\n| policy | {' | '.join(SHOWN)} |\n| --- |{' --- |' * len(SHOWN)}")
        for place, name in enumerate(RUNS):
            print(f"| {name} | {' | '.join(_spread(one) for one in table[:, place].T)} |", flush=True)
        for place, name in list(enumerate(RUNS))[1:]:
            change = 100.0 * (table[:, place, :2] / table[:, 0, :2] - 1.0)
            print(f"| {name}, % | {' | '.join(_spread(one, '.1f') for one in change.T)} | | |", flush=True)


def figures_of(mix: dict[str, object], seed: int) -> list[list[float]]:
    """`SHOWN` of each of `RUNS` on one draw."""
    with tempfile.TemporaryDirectory(prefix="jobcast-bench-") as room:
        drawn, regimes, enriched, nodes = (Path(room) / name for name in ("d.csv", "r.csv", "enriched", "nodes.yaml"))
        nodes.write_text(CLUSTER)
        how: dict[str, object] = {"jobs": JOBS, "gpus": GPUS, **mix}
        command("trace", "generate", "gavel", out=drawn, regimes_out=regimes, seed=seed, set=how)
        command("trace", "enrich", str(drawn), facts="speedups,training,epochs", out=enriched)
        rows: list[list[float]] = []
        for policy, own in RUNS.values():
            asks: dict[str, Any] = {"forecasts": "restatement"} if policy == "shockwave" else {}
            settings = {"restart_s": RESTART_S, **own}
            trace = enriched / "jobs.parquet"
            told = command("simulate", trace=trace, cluster=nodes, law="epochs", policy=policy, set=settings, **asks)
            rows.append([float(told[name]) for name in SHOWN])
        return rows


def _spread(values: Any, form: str = ",.4g") -> str:
    return f"{np.median(values):{form}} ({values.min():{form}} to {values.max():{form}})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mix", nargs="+", choices=[*MIXES], default=[*MIXES])
    parser.add_argument("--first-seed", type=int, default=800)
    parser.add_argument("--draws", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
