"""What a copy of a run costs: `Simulation.fork` of a cluster with so many active jobs, about half of them running.

Each run is taken to the instant at which all its jobs have been submitted, then copied again and again; the best and
the median time of a copy in milliseconds of CPU are told, in truth and of what is believed.

    python benchmarks/bench_forks.py [--jobs 2000] [--past 10000] [--copies 40]
"""

import argparse
import sys
import time

import numpy as np

from jobcast.domain.energy import EnergyCluster, EpochTimes, Tariff
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.meters import EnergyMeter
from jobcast.simulator.workload import Workload

POOLS = 20
LONG_S = 1e6


def by_quotas(policy, count, past):
    """Rigid jobs of many pools, whose quotas hold half of them; others are over."""
    rng = np.random.default_rng(0)
    whole = count + past
    jobs = [
        Job(at, f"{at:06}", f"p{at % POOLS:02}", float(at), int(rng.integers(1, 5)), preemptible=True)
        for at in range(whole)
    ]
    outcomes = [Outcome(1.0) for _ in range(past)]
    outcomes += [Outcome(float(one)) for one in rng.uniform(LONG_S, 2 * LONG_S, count)]
    quota = max(8, sum(job.gpus for job in jobs[past:]) // (2 * POOLS))
    workload = Workload(jobs, outcomes, [Pool(f"p{at:02}", quota) for at in range(POOLS)])
    source = Oracle(workload)
    return Simulation(workload, make_policy(policy, source, {}), source)


def by_epochs(policy, count, past):
    """Jobs of epochs on nodes of two kinds, which hold half of them; some are over."""
    kinds = np.repeat([0, 1], [count // 8, count // 4])
    watts = np.array([[0.0, 420.0, 670.0], [0.0, 240.0, 240.0]])
    tariff = Tariff(np.zeros(1), np.full(1, 0.2))
    cluster = EnergyCluster(kinds, np.array([2, 1]), watts, pue=1.3, tariff=tariff)
    servers, whole = cluster.kind_gpus[kinds].tolist(), count + past
    jobs = [Job(at, f"{at:06}", "all", 10.0 * at, 1, preemptible=True, due_s=1e9) for at in range(whole)]
    epochs = np.where(np.arange(whole) < past, 1.0, LONG_S)
    epoch_s = np.broadcast_to(np.array([[9.0, 6.0], [9.0, np.inf]]), (whole, 2, 2)).copy()
    workload = Workload(jobs, [Outcome(9.0 * one) for one in epochs], [Pool("all", sum(servers))], servers=servers)
    law = Epochs(EpochTimes(epochs, epoch_s), cluster)
    return Simulation(workload, make_policy(policy, None, {}), law=law, meters=[EnergyMeter(cluster)])


RUNS = {
    **{f"pools {name}": lambda *counts, name=name: by_quotas(name, *counts) for name in ("fcfs", "ssf", "mmfs", "sia")},
    "rounds las": lambda *counts: by_quotas("las", *counts),
    **{f"epochs {name}": lambda *counts, name=name: by_epochs(name, *counts) for name in ("energy_fifo", "edf")},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2000, help="active jobs")
    parser.add_argument("--past", type=int, default=10_000, help="jobs that are over")
    parser.add_argument("--copies", type=int, default=40, help="copies made of each run")
    options = parser.parse_args()
    print(
        f"{'run':<20} {'active':>7} {'running':>8} {'truth, ms':>12} {'median':>8} {'believed, ms':>15} {'median':>8}"
    )
    for name, make in RUNS.items():
        run = make(options.jobs, options.past)
        run.run(run.workload.jobs[-1].submit_s)
        truth = _copied(options.copies, run.fork)
        believed = _copied(options.copies, lambda run=run: run.fork(lambda job: LONG_S))
        cluster = run.cluster
        print(
            f"{name:<20} {len(cluster.active):>7} {len(cluster.running):>8} {truth.min():>12.2f} "
            f"{np.median(truth):>8.2f} {believed.min():>15.2f} {np.median(believed):>8.2f}"
        )
    return 0


def _copied(count, copy):
    """(count,) milliseconds of CPU a copy."""
    took = []
    for _ in range(count):
        began_s = time.process_time()
        copy()
        took.append(1e3 * (time.process_time() - began_s))
    return np.array(took)


if __name__ == "__main__":
    sys.exit(main())
