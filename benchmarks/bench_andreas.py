"""CPU milliseconds of a call of ANDREAS' randomised greedy, thorough as well, and of the baselines.

    python benchmarks/bench_andreas.py [--jobs 1000] [--repeat 3] [--no-openb]

100 nodes of two scenarios, half with V100s and half with T4s, with jobs of 1 to 10 hours in the queue, and the
1,213 nodes with 6,212 GPUs of the openb trace with 2,000 jobs. Half the GPUs are held when the call
comes. Everything runs once before it is measured, so that compiling is not.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np

from jobcast.domain.clock import HOUR_S
from jobcast.domain.energy import POSTPONED, EnergyCluster, EnergyJobs, EnergyView, Tariff
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
from jobcast.schedulers.registry import make_policy


class Kind(NamedTuple):
    """Nodes: how many, GPUs of each, how many times as slow as a V100, watts of a node in use and of a GPU."""

    count: int
    gpus: int
    slower: float
    node_w: float
    gpu_w: float


V100, T4 = (1.0, 170.0, 250.0), (2.5, 100.0, 70.0)
SCENARIOS = {
    "2 V100 / 1 T4": (Kind(50, 2, *V100), Kind(50, 1, *T4)),
    "4 V100 / 2 T4": (Kind(50, 4, *V100), Kind(50, 2, *T4)),
}
G2, P100, A10 = (1.2, 200.0, 300.0), (1.8, 170.0, 200.0), (1.5, 150.0, 130.0)
OPENB = (
    Kind(549, 8, *G2),
    Kind(39, 8, *G2),
    Kind(29, 8, *V100),
    Kind(37, 4, *V100),
    Kind(19, 1, *V100),
    Kind(131, 2, *P100),
    Kind(3, 1, *P100),
    Kind(17, 4, *T4),
    Kind(387, 2, *T4),
    Kind(2, 1, *A10),
)
"""Nodes of openb by GPU and number: G2, G3, V100, P100, T4, A10. Speeds and watts are ours."""


def draw_view(kinds: tuple[Kind, ...], jobs: int, seed: int = 0) -> EnergyView:
    """Jobs in the queue, some of them running on half of the GPUs."""
    rng = np.random.default_rng(seed)
    most = max(kind.gpus for kind in kinds)
    power_w = [[0.0, *(kind.node_w + kind.gpu_w * min(g, kind.gpus) for g in range(1, most + 1))] for kind in kinds]
    cluster = EnergyCluster(
        kind_of=np.repeat(np.arange(len(kinds)), [kind.count for kind in kinds]),
        kind_gpus=np.array([kind.gpus for kind in kinds]),
        power_w=np.array(power_w),
        pue=1.33,
        tariff=Tariff(np.zeros(1), np.array([0.172])),
    )
    epochs = rng.integers(20, 200, jobs).astype(float)
    epoch_s, scaling = rng.uniform(1.0, 10.0, jobs) * HOUR_S / epochs, rng.uniform(0.6, 0.95, jobs)
    times = np.full((jobs, len(kinds), most), np.inf)
    for row, kind in enumerate(kinds):
        for gpus in range(1, kind.gpus + 1):
            times[:, row, gpus - 1] = epoch_s * kind.slower / gpus**scaling
    submit_s = np.sort(rng.uniform(-10.0 * HOUR_S, 0.0, jobs))
    due_s = submit_s + rng.uniform(1.2, 3.0, jobs) * times.min(axis=(1, 2)) * epochs
    weight = rng.integers(1, 6, jobs).astype(float)
    node_of, gpus_of = hold_half(cluster, jobs, rng)
    runs = node_of != POSTPONED
    left = np.where(runs, epochs * rng.uniform(0.1, 1.0, jobs), epochs)
    return EnergyView(
        now_s=0.0,
        jobs=EnergyJobs(submit_s, due_s, weight, epochs, times),
        cluster=cluster,
        active=np.arange(jobs),
        node_of=node_of,
        gpus_of=gpus_of,
        left=left,
        left_saved=np.ceil(left),
        started=runs,
        restart_s=0.0,
        period_s=300.0,
    )


def hold_half(cluster: EnergyCluster, jobs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and GPUs of jobs drawn until half of the GPUs are held."""
    node_of, gpus_of = np.full(jobs, POSTPONED), np.zeros(jobs, dtype=np.int64)
    free = cluster.kind_gpus[cluster.kind_of]
    half = free.sum() // 2
    for job in rng.permutation(jobs):
        if free.sum() <= half:
            break
        node = rng.choice(np.flatnonzero(free))
        node_of[job], gpus_of[job] = node, rng.integers(1, free[node] + 1)
        free[node] -= gpus_of[job]
    return node_of, gpus_of


def measure(label: str, view: EnergyView, title: str, policy: WholeSchedule, repeat: int) -> None:
    """Print one row about calls with one view."""
    deployment, took_s = policy.schedule(view), []
    for _ in range(repeat):
        began_s = time.process_time()
        deployment = policy.schedule(view)
        took_s.append(time.process_time() - began_s)
    nodes, gpus = len(view.cluster.kind_of), int(view.cluster.kind_gpus[view.cluster.kind_of].sum())
    print(
        f"{label:14} {nodes:6d} {gpus:6d} {len(view.active):6d} {title:8} {1e3 * np.median(took_s):10.2f} "
        f"{1e3 * max(took_s):10.2f} {int(deployment.gpus_of.sum()):6d}",
        flush=True,
    )


def main() -> None:
    """Print one row a policy and cluster."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--jobs", type=int, default=1000)
    asked.add_argument("--repeat", type=int, default=3)
    asked.add_argument("--openb", action=argparse.BooleanOptionalAction, default=True)
    given = asked.parse_args()
    columns = f"{'nodes':>6} {'GPUs':>6} {'jobs':>6} {'policy':8} {'CPU ms':>10} {'at most':>10} {'used':>6}"
    print(f"{'cluster':14} {columns}")
    views = {label: draw_view(kinds, given.jobs) for label, kinds in SCENARIOS.items()}
    if given.openb:
        views["openb"] = draw_view(OPENB, 2 * given.jobs)
    for label, view in views.items():
        for title, thorough in (("andreas", False), ("thorough", True)):
            wanted = {"thorough": True} if thorough else {}
            measure(label, view, title, make_policy("andreas", None, wanted), given.repeat)
        for policy in ("energy_fifo", "edf", "ps"):
            measure(label, view, policy, make_policy(policy), given.repeat)


if __name__ == "__main__":
    main()
