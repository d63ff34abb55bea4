"""How far policies are from the exact optimum of equation 1 (appendix A), and what constraint 4n does to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobcast.domain.energy import EnergyView, Floats
from jobcast.schedulers.energy.exact import nodes_to_use, solve
from jobcast.schedulers.energy.objective import proxy_objective
from jobcast.schedulers.energy.settings import ExactSettings
from jobcast.schedulers.registry import make_policy
from papers.andreas.bench import Bench
from papers.andreas.instances import MOST_JOBS, MOST_NODES, small
from papers.page import Claim, claims, grid, number, write_csv, write_page

INSTANCES = 200
BAR_PCT = 3.0
SAME_EUR = 1e-6
"""Costs that differ by less are the same."""
THOROUGH = "ANDREAS, thorough"
COMPARED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "ANDREAS": ("andreas", {}),
    "ANDREAS, MaxIt 1": ("andreas", {"max_iterations": 1}),
    "ANDREAS, hold 0": ("andreas", {"hold": 0.0}),
    "ANDREAS, caps": ("andreas", {"caps": True}),
    THOROUGH: ("andreas", {"thorough": True}),
    "ANDREAS, thorough, 4n": ("andreas", {"thorough": True, "force_nodes": True}),
    "ANDREAS, 4n": ("andreas", {"force_nodes": True}),
    "FIFO": ("energy_fifo", {}),
    "EDF": ("edf", {}),
    "PS": ("ps", {}),
}
HEAD = ("policy", "mean gap, %", "median", "worst", "of the sums, %", "optimal, %", "mean gap to 4n's optimum, %")


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """(n_instances,) EUR of the optima without and with constraint 4n, and of policies by their titles."""

    free: Floats
    forced: Floats
    costs: Mapping[str, Floats]


def compare(views: Sequence[EnergyView]) -> Compared:
    """Solve instances and ask policies for theirs."""
    optima: list[Floats] = []
    for forced in (False, True):
        solved = [solve(view, ExactSettings(force_nodes=forced)) for view in views]
        # A gap to a schedule that may itself be beaten would say nothing.
        proved = [one.gap == 0.0 for one in solved]
        if not all(proved):
            raise RuntimeError(f"instance {proved.index(False)} is not solved to the optimum")
        optima.append(np.array([one.objective for one in solved]))
    costs = {}
    for title, (name, settings) in COMPARED.items():
        policy = make_policy(name, None, settings)
        costs[title] = np.array([proxy_objective(view, policy.schedule(view)) for view in views])
    return Compared(optima[0], optima[1], costs)


def gaps_pct(cost: Floats, optimum: Floats) -> Floats:
    """Of instances whose optimum is not 0, %.

    >>> gaps_pct(np.array([1.1, 5.0]), np.array([1.0, 0.0])).round(6).tolist()
    [10.0]
    """
    some = optimum > SAME_EUR
    gaps: Floats = 100.0 * (cost[some] - optimum[some]) / optimum[some]
    return gaps


def exact(bench: Bench, out: Path, count: int = INSTANCES) -> None:
    """Write the page and the table of all instances into a folder."""
    views = [small(seed) for seed in range(count)]
    found = compare(views)
    columns = (found.free, found.forced, *found.costs.values())
    rows = ((at, *(f"{value:.6g}" for value in row)) for at, row in enumerate(np.transpose(columns).tolist()))
    write_csv(out, "exact", ("seed", "optimum", "optimum with 4n", *found.costs), rows)
    write_page(
        __file__,
        out,
        count=count,
        most_jobs=MOST_JOBS,
        most_nodes=MOST_NODES,
        table=grid(HEAD, (line(title, cost, found) for title, cost in found.costs.items())),
        constraint=constraint(views, found),
        claims=claims(_claim(found, title) for title in ("ANDREAS", THOROUGH)),
    )


def line(title: str, cost: Floats, found: Compared) -> tuple[str, ...]:
    """What `HEAD` names, of a policy."""
    gap, optimal = gaps_pct(cost, found.free), 100.0 * float(np.mean(cost <= found.free + SAME_EUR))
    sums = 100.0 * float(cost.sum() / found.free.sum() - 1.0)
    result = (number(float(value)) for value in (gap.mean(), np.median(gap), gap.max(), sums))
    return (title, *result, number(optimal, 0), number(float(gaps_pct(cost, found.forced).mean())))


def constraint(views: Sequence[EnergyView], found: Compared) -> str:
    """What constraint 4n costs beyond the optimum, and how often it cannot be met as printed."""
    extra, share = found.forced - found.free, gaps_pct(found.forced, found.free)
    short = sum(nodes_to_use(view) < min(len(view.active), len(view.cluster.kind_of)) for view in views)
    return (
        f"It changes the optimum in {100 * np.mean(extra > SAME_EUR):.0f} % of the instances and makes it dearer by "
        f"{extra.mean():.4f} EUR in the mean: {share.mean():.2f} % (median {np.median(share):.2f} %), "
        f"{100 * (found.forced.sum() / found.free.sum() - 1):.2f} % of the sums. As printed it cannot be met in "
        f"{short}."
    )


def _claim(found: Compared, title: str) -> Claim:
    mean = float(gaps_pct(found.costs[title], found.free).mean())
    said = f"{title} is above the optimum in the mean by at most (jobcast's own bar)"
    return Claim(said, f"{BAR_PCT:g} %", f"{number(mean)} %", mean <= BAR_PCT)
