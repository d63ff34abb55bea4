"""How far policies are from the exact optimum of ANDREAS' proxy objective, and how large a model HiGHS still solves.

    PYTHONPATH=. python benchmarks/bench_andreas_exact.py [--instances 200] [--worst 0] [--sizes 10x5 20x10 ...]

Instances have 2 to 6 jobs and 1 to 3 nodes of V100 (1, 2 or 4 GPUs) and T4 (1 or 2). Half of the due dates are tight,
0.5 to 1.5 times the job's fastest run from now on, half loose, 1.5 to 6 times; weights are 1 to 5; three jobs in ten
run, if there is room. Gaps are those of the sums over instances, to the optima of the cost-to-go, of equation 1, and of
equation 1 with constraint 4n.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.energy import Deployment
from jobcast.schedulers.energy.exact import ExactSettings, solve
from jobcast.schedulers.registry import make_policy
from papers.andreas.exact import COMPARED, HEAD, compare, constraint, line
from papers.andreas.instances import instance, small
from papers.results import grid


def print_gaps(count: int, worst: int) -> None:
    """Print the gaps of policies, then what constraint 4n costs."""
    views = [small(seed) for seed in range(count)]
    found = compare(views)
    print(grid(HEAD, (line(title, cost, found) for title, cost in found.costs.items())))
    print(constraint(views, found))
    for title, cost in found.costs.items() if worst else ():
        name, settings = COMPARED[title]
        if name == "andreas":
            forced = bool(settings.get("force_nodes"))
            print(title)
            optimum = found.optima[2 if forced else 1]
            tell(views, cost[1], optimum, make_policy(name, None, settings), worst, forced=forced)


def tell(views, cost, optimum, policy, worst: int, *, forced: bool) -> None:
    """Print the instances with the largest gaps."""
    gap = np.where(optimum > tolerance.EUR, (cost - optimum) / np.maximum(optimum, tolerance.EUR), 0.0)
    for seed in np.argsort(-gap)[:worst]:
        view = views[seed]
        best = solve(view, ExactSettings(force_nodes=forced)).deployment
        print(f"   seed {seed}: {cost[seed]:.4f} against {optimum[seed]:.4f}, "
              f"{places(policy.schedule(view))} against {places(best)}")  # fmt: skip


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
        print_gaps(chosen.instances, chosen.worst)
