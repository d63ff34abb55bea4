"""How far policies are from the exact optimum of ANDREAS' proxy objective, and how large a model HiGHS still solves.

    python benchmarks/bench_andreas_exact.py [--instances 200] [--worst 0] [--sizes 10x5 20x10 ...]

Instances have 2 to 6 jobs and 1 to 3 nodes of V100 (1, 2 or 4 GPUs) and T4 (1 or 2). Half of the due dates are tight,
0.5 to 1.5 times the job's fastest run from now on, half loose, 1.5 to 6 times; weights are 1 to 5; three jobs in ten
run, if there is room. The gap is (policy - optimum) / optimum, over instances whose optimum is not zero. Constraint 4n
(forced) has an optimum of its own, to which the same schedules are compared.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from jobcast.domain.energy import Deployment, EnergyView
from jobcast.pipelines.reproduce.andreas.instances import instance, small
from jobcast.schedulers.energy.exact import ExactSettings, nodes_to_use, solve
from jobcast.schedulers.energy.objective import proxy_objective
from jobcast.schedulers.energy.policies import find_energy_policy

POLICIES = ("andreas", "fifo", "edf", "ps")
VARIANTS = {
    "andreas, 4n": ("andreas", {"force_nodes": True}),
    "andreas, caps": ("andreas", {"caps": True}),
    "andreas, thorough": ("andreas", {"thorough": True}),
    "andreas, thorough, 4n": ("andreas", {"thorough": True, "force_nodes": True}),
}
SAME = 1e-6


def compare(count: int, worst: int) -> None:
    """Print the gaps of policies, then what constraint 4n costs."""
    views = [small(seed) for seed in range(count)]
    optima, seconds = [], []
    for forced in (False, True):
        begun_s = time.perf_counter()
        solved = [solve(view, ExactSettings(force_nodes=forced)) for view in views]
        seconds.append((time.perf_counter() - begun_s) / count)
        assert max(one.gap for one in solved) == 0.0
        optima.append(np.array([one.objective for one in solved]))
    print(f"{count} instances; optimum 0 in {np.sum(optima[0] <= SAME)}; a solve takes {seconds[0]:.3f} s, "
          f"forced {seconds[1]:.3f} s")  # fmt: skip
    print(f"{'':>21}{'gap to the optimum %':^38} {'gap to the forced optimum %':^38}")
    print(f"{'policy':>21}{(head := 'mean  median     worst  total  exact'):>38} {head:>38}")
    makers = {name: find_energy_policy(name)() for name in POLICIES}
    makers |= {name: find_energy_policy(of)(read) for name, (of, read) in VARIANTS.items()}
    for name, policy in makers.items():
        cost = np.array([proxy_objective(view, policy.decide(view)) for view in views])
        print(f"{name:>21}{row(cost, optima[0])} {row(cost, optima[1])}")
        if worst and name.startswith("andreas"):
            tell(views, cost, optima[int(name.endswith("4n"))], policy, worst, forced=name.endswith("4n"))
    forced_nodes(views, optima)


def row(cost: np.ndarray, optimum: np.ndarray) -> str:
    """Mean, median and worst gap, that of the sums, and the share that is optimal."""
    some = optimum > SAME
    gap = 100.0 * (cost[some] - optimum[some]) / optimum[some]
    exact = 100.0 * np.mean(cost <= optimum + SAME)
    total = 100.0 * (cost.sum() / optimum.sum() - 1.0)
    return f"{gap.mean():9.2f} {np.median(gap):7.2f} {gap.max():9.1f} {total:6.2f} {exact:5.0f} "


def forced_nodes(views: Sequence[EnergyView], optima: Sequence[np.ndarray]) -> None:
    """What constraint 4n costs beyond the optimum, and how often it cannot be met as printed."""
    free, forced = optima
    some = free > SAME
    extra = forced - free
    short = [nodes_to_use(view) < min(len(view.active), len(view.cluster.kind_of)) for view in views]
    print(
        f"4n: binds in {100 * np.mean(extra > SAME):.0f} %, costs {extra.mean():.4f} EUR on average, "
        f"{100 * (extra[some] / free[some]).mean():.1f} % (median {100 * np.median(extra[some] / free[some]):.1f} %) "
        f"where the optimum is not 0, {100 * (forced.sum() / free.sum() - 1):.2f} % of the total; "
        f"infeasible as printed in {sum(short)}"
    )


def tell(views, cost, optimum, policy, worst: int, *, forced: bool) -> None:
    """Print the instances with the largest gaps."""
    gap = np.where(optimum > SAME, (cost - optimum) / np.maximum(optimum, SAME), 0.0)
    for seed in np.argsort(-gap)[:worst]:
        view = views[seed]
        best = solve(view, ExactSettings(force_nodes=forced)).deployment
        print(f"   seed {seed}: {cost[seed]:.4f} against {optimum[seed]:.4f}, "
              f"{places(policy.decide(view))} against {places(best)}")  # fmt: skip


def places(deployment: Deployment) -> str:
    """Node and GPUs of each job."""
    pairs = zip(deployment.node_of.tolist(), deployment.gpus_of.tolist(), strict=True)
    return " ".join("-" if node < 0 else f"{node}:{gpus}" for node, gpus in pairs)


def sizes(names: Sequence[str], limit_s: float) -> None:
    """Print one row a size: how long solves take and how much is proved."""
    print(f"{'jobs x nodes':>12} {'4n':>6} {'seconds':>18} {'gap %':>18}")
    for name in names:
        jobs, nodes = map(int, name.split("x"))
        for forced in (False, True):
            taken, gaps = [], []
            for seed in range(2):
                view, begun_s = instance(seed, jobs, nodes), time.perf_counter()
                gaps.append(f"{100 * solve(view, ExactSettings(time_limit_s=limit_s, force_nodes=forced)).gap:.3f}")
                taken.append(f"{time.perf_counter() - begun_s:.1f}")
            print(
                f"{name:>12} {'forced' if forced else 'free':>6} {' '.join(taken):>18} {' '.join(gaps):>18}", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--worst", type=int, default=0, help="print so many of andreas' worst instances")
    parser.add_argument("--sizes", nargs="*", default=[], help="jobs x nodes, such as 20x10")
    parser.add_argument("--limit-s", type=float, default=60.0, help="of a solve, with --sizes")
    chosen = parser.parse_args()
    if chosen.sizes:
        sizes(chosen.sizes, chosen.limit_s)
    else:
        compare(chosen.instances, chosen.worst)
