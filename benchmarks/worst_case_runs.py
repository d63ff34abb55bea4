"""Does PCS keep the completions that it promises, whoever comes? Random clusters against arrivals that mean harm.

    python -m benchmarks.worst_case_runs --runs 100000 --seed 0
    python -m benchmarks.worst_case_runs --tight FOLDER

A run draws GPUs, a configuration and jobs, and picks a victim among them. After it come arrivals by one of `TACTICS`:
floods of the other queues that outlast its bound, crowds behind it in its own queue, pulses, or none. Every job of the
run is promised its worst case at its submission, as `simulate --policy pcs --predict` does, and must keep it.
`reached` is the highest share of its bound that any victim took which had somebody ahead in its queue and other queues
beside it: that the bound is no idle one.

FOLDER holds trace_0e4a51.csv, speedups.csv and configs_0e4a51.json. Of its first 301 jobs on 64 GPUs every third is
played on against a flood: its queue, as it is at the job's submission, alone on the GPUs that it is sure of, with the
configuration's caps and without any; how much of the bound it takes in the worse of both.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.elastic import ElasticJobs, ElasticPolicy
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.schedulers.elastic.wfq import queue_at
from jobcast.schedulers.elastic.worst_case import guaranteed_gpus
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay
from jobcast.simulator.elastic.state import COUNT

WIDTH = 16
GPUS = 64
FIRST_JOBS = 301
TACTICS = ("quiet", "flood", "crowd", "flood and crowd", "pulses", "flood and pulses")
MOST_FLOOD = 40
"""Jobs of a flood in one queue: a longer one costs time, and a bound that outlasts it is kept anyway."""
_NONE = np.zeros(0, dtype=np.int64)
Row = tuple[float, float, float, float, int, tuple[tuple[float, float], ...]]
"""Of a job: submission, size, most and least GPUs, model, and stages as (share done at the end, most GPUs)."""


@dataclass
class Tally:
    """What was seen: runs, promises and seconds in them, those broken with what they were, the most a victim took."""

    runs: int = 0
    promises: int = 0
    promised_s: float = 0.0
    broken: list[str] = field(default_factory=list)
    reached: float = 0.0
    nearly: int = 0
    refused: Counter[str] = field(default_factory=Counter)


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


def curves(rng: np.random.Generator) -> np.ndarray:
    """(4, 2, WIDTH + 1) speedups: linear, concave, and two of steps up or down; spread ones slower."""
    gpus = np.arange(WIDTH + 1.0)
    steps = [np.concatenate([[0.0, 1.0], np.maximum(1 + np.cumsum(rng.uniform(-0.3, 1.5, WIDTH - 1)), 0.3)])] * 2
    packed = np.stack([gpus, gpus ** rng.uniform(0.3, 1.0), steps[0], np.maximum.accumulate(steps[1])])
    return np.stack([packed, packed * rng.uniform(0.5, 1.0)], axis=1)


def config(rng: np.random.Generator) -> WfqConfig:
    """One to four queues, weights down to a thousandth, caps and steps of all kinds."""
    queues = int(rng.integers(1, 5))
    cuts = np.sort(rng.uniform(1.0, 3.0, queues - 1))
    rates = tuple((10.0 ** rng.uniform(-3.0 if rng.random() < 0.3 else -1.0, 0.0, queues)).tolist())
    clip = 0.0 if rng.random() < 0.3 else float(rng.uniform(0.0, 1.05))
    return WfqConfig((*(10.0**cuts).tolist(), inf), rates, clip, float(rng.choice([0.0, 0.02, 0.2, 0.5])))


def jobs_of(rows: list[Row], speedup: np.ndarray, speed: np.ndarray) -> ElasticJobs:
    """Columns of rows that ascend in submission."""
    stages = [row[5] for row in rows]
    submit_s, size_s, most, least = (np.array([row[at] for row in rows], dtype=float) for at in range(4))
    return ElasticJobs(
        submit_s=submit_s,
        size_s=size_s,
        most=most,
        least=least,
        model=np.array([row[4] for row in rows], dtype=np.int64),
        stage_of=np.concatenate([[0], np.cumsum([len(one) for one in stages])]).astype(np.int64),
        stage_end=np.array([end for one in stages for end, _ in one]),
        stage_most=np.array([top for one in stages for _, top in one], dtype=float),
        speedup=speedup,
        speed=speed,
    )


def job(rng: np.random.Generator, at_s: float, gpus: float, span: tuple[float, float]) -> Row:
    """A job whose size lies within the two logarithms of `span`."""
    most = float(rng.choice([1, 2, 3, 4, 8, WIDTH]))
    least = min(float(rng.choice([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, most])), gpus)
    stages: tuple[tuple[float, float], ...] = ((1.0, most),)
    if rng.random() < 0.2:
        stages = ((0.4, most), (0.7, max(least, most // 2, 1.0)), (1.0, max(least, most // 4, 1.0)))
    return at_s, float(10.0 ** rng.uniform(*span)), most, least, int(rng.integers(4)), stages


def harm(rng: np.random.Generator, tactic: str, victim: Row, lasts_s: float, gpus: float, cuts: tuple[float, ...]):
    """Rows that come after a victim, at its submission or within `lasts_s` of it."""
    at_s, size_s = victim[0], victim[1]
    edges = [1.0, *cuts[:-1], 1e5]
    own = int(np.searchsorted(cuts[:-1], size_s))
    rows: list[Row] = []
    if "flood" in tactic:
        for queue in range(len(cuts)):
            count = int(min(MOST_FLOOD, lasts_s * gpus // edges[queue + 1] + 1)) if queue != own else 0
            rows += [(at_s, edges[queue + 1], gpus, 0.0, 0, ((1.0, gpus),))] * count
    if "crowd" in tactic:
        low, high = np.log10(edges[own]), np.log10(edges[own + 1])
        times = at_s + lasts_s * np.sort(rng.choice([0.0, rng.random()], 1) * rng.random(int(rng.integers(1, 12))))
        rows += [job(rng, float(one), gpus, (low, high)) for one in times]
    if "pulses" in tactic:
        times = at_s + lasts_s * rng.random(int(rng.integers(1, 25)))
        rows += [job(rng, float(one), gpus, (0.0, float(rng.uniform(0.5, 3.0)))) for one in times]
    return sorted(rows, key=lambda row: row[0])


def play(rng: np.random.Generator, tally: Tally) -> None:
    """One run; what it showed goes to the tally."""
    kinds = 2 if rng.random() < 0.2 else 1
    capacity = rng.choice([1, 2, 3, 4, 8, 12, 16], kinds).astype(float)
    gpus, own, whole = float(capacity.sum()), config(rng), bool(rng.random() < 0.3)
    speed = np.ones((4, 1)) if kinds == 1 else np.stack([np.ones(4), rng.uniform(0.3, 2.0, 4)], axis=1)
    nodes = _nodes(capacity) if whole and rng.random() < 0.4 else []
    preempt_s = float(rng.choice([0.0] * 6 + [3.0]))
    node_type, node_gpus = (np.array(column) for column in zip(*nodes, strict=True)) if nodes else (_NONE, np.zeros(0))
    cluster = ElasticCluster(capacity, node_type, node_gpus, preempt_s)
    policy = own.policy([str(kind) for kind in range(kinds)], whole=whole, monotone=bool(rng.random() < 0.3))
    speedup, at_s, rows = curves(rng), 0.0, []
    for _ in range(int(rng.integers(1, 11))):
        at_s += float(rng.choice([0.0, 0.0, 1.0, 20.0]))
        rows.append(job(rng, at_s, gpus, (0.0, 3.3)))
    alone = _promised(jobs_of(rows, speedup, speed), cluster, policy, len(rows))
    bound_s = alone.worst_cases[len(rows) - 1].end_s - at_s
    lasts_s = min(bound_s, 5000.0)
    tactic = str(rng.choice(TACTICS))
    later = harm(rng, tactic, rows[-1], lasts_s, gpus, own.thresholds)
    jobs = jobs_of([*rows, *later], speedup, speed)
    run = _promised(jobs, cluster, policy, len(jobs.size_s))
    if all(one.reason == "" for one in run.worst_cases.values()):
        run.finish()
    else:
        # Who can starve may leave all waiting: what has ended by the last promise counts.
        run.advance(max([0.0] + [one.end_s for one in run.worst_cases.values() if isfinite(one.end_s)]))
    _count(run, len(rows) - 1, len(own.rates), tally, f"{tactic}, {own}, {capacity}, whole {whole}")


def _nodes(capacity: np.ndarray) -> list[tuple[int, float]]:
    """Nodes of four GPUs and of one, by type."""
    widths = [[4.0] * (gpus // 4) + [1.0] * (gpus % 4) for gpus in capacity.astype(int).tolist()]
    return [(kind, width) for kind, its in enumerate(widths) for width in its]


def _promised(jobs: ElasticJobs, cluster: ElasticCluster, policy: ElasticPolicy, count: int) -> ElasticReplay:
    """A run in which each of the first jobs was promised its worst case at its submission."""
    run = ElasticReplay(jobs, jobs.size_s, cluster, policy, record=False)
    for one in range(count):
        run.submit(one + 1)
        run.worst_cases[one] = run.worst_case(one)
    return run


def _count(run: ElasticReplay, victim: int, queues: int, tally: Tally, what: str) -> None:
    end_s, submit_s, numbers = run.state.end_s, run.jobs.submit_s, run.policy.numbers
    tally.runs += 1
    for one, described in run.worst_cases.items():
        if not isfinite(described.end_s):
            tally.refused[described.reason] += 1
            continue
        tally.promises += 1
        tally.promised_s += described.end_s - float(submit_s[one])
        if not end_s[one] <= described.end_s:
            tally.broken.append(f"job {one} of {len(end_s)} ended {end_s[one]}, promised {described.end_s}: {what}")
    queue = [queue_at(numbers, size_s) for size_s in run.jobs.size_s[: victim + 1]]
    ahead = any(queue[one] == queue[victim] and not end_s[one] <= submit_s[victim] for one in range(victim))
    told_s = run.worst_cases[victim].end_s - submit_s[victim]
    if queues > 1 and ahead and isfinite(told_s):
        taken = float((end_s[victim] - submit_s[victim]) / told_s)
        tally.reached = max(tally.reached, taken)
        tally.nearly += taken >= 0.8


def tallied(runs: int, seed: int) -> Tally:
    """So many runs, each of a stream of its own, so that one can be played again."""
    tally = Tally()
    for number in range(runs):
        play(np.random.default_rng([seed, number]), tally)
    return tally


def tightness(folder: Path) -> dict[str, np.ndarray]:
    """Shares of their bounds that jobs of the trace take when all other queues are flooded, by configuration."""
    jobs, found = read_jobs(folder, FIRST_JOBS), {}
    for name, described in json.loads((folder / "configs_0e4a51.json").read_text(encoding="utf-8")).items():
        own = parse_config(described, name)
        run = ElasticReplay(jobs, jobs.size_s, ElasticCluster(np.array([float(GPUS)])), own.policy())
        found[name] = np.array([_flooded(run, job, own) for job in range(0, FIRST_JOBS, 3)])
    return found


def _flooded(run: ElasticReplay, job: int, own: WfqConfig) -> float:
    run.submit(job + 1)
    numbers, state = run.policy.numbers, run.state
    queue = queue_at(numbers, run.jobs.size_s[job])
    active = state.active[: int(state.count[COUNT.active])]
    there = np.array([one for one in active if queue_at(numbers, run.jobs.size_s[one]) == queue])
    left_s, most, count = (run.jobs.size_s - state.done_s)[there], run.jobs.most[there], len(there)
    alone = run.jobs._replace(
        submit_s=np.zeros(count), size_s=left_s, least=np.zeros(count), most=most, model=run.jobs.model[there],
        stage_of=np.arange(count + 1), stage_end=np.ones(count), stage_most=most,
    )  # fmt: skip
    cluster, ends_s = ElasticCluster(np.array([guaranteed_gpus(numbers, run.cluster.capacity, queue)])), []
    for clip in (own.clip_demand_factor, 0.0):
        policy = WfqConfig(clip_demand_factor=clip, delta=own.delta).policy()
        flooded = ElasticReplay(alone, left_s, cluster, policy)
        flooded.submit(count)
        flooded.finish()
        ends_s.append(float(flooded.state.end_s[-1]))
    return max(ends_s) / (run.worst_case(job).end_s - float(state.clock[0]))


def main() -> None:
    """Print what the runs showed; exit code 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tight", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    if asked.tight:
        for name, shares in tightness(asked.tight).items():
            print(f"{name}: of the bound, median {np.median(shares):.4f}, least {shares.min():.3f}")
        return
    tally = tallied(asked.runs, asked.seed)
    print(f"runs {tally.runs:,}, promises {tally.promises:,}, broken {len(tally.broken)}")
    print(f"reached {tally.reached:.4f} of the bound; 80 % or more in {tally.nearly:,} runs")
    for reason, count in tally.refused.most_common():
        print(f"no promise, {count:,}: {reason}")
    for line in tally.broken[:10]:
        print(line)
    raise SystemExit(bool(tally.broken))


if __name__ == "__main__":
    main()
