"""How far policies are from the exact optima of one call: of the cost-to-go, and of equation 1 (appendix A)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.energy import POSTPONED, Deployment, EnergyView
from jobcast.schedulers.energy.andreas import outlook_of, queue_of
from jobcast.schedulers.energy.exact import nodes_to_use, solve
from jobcast.schedulers.energy.greedy_state import stamp
from jobcast.schedulers.energy.greedy_to_go import OWN, fits_node, land, lift, new_plan, total_eur
from jobcast.schedulers.energy.objective import proxy_objective
from jobcast.schedulers.energy.settings import AndreasSettings, ExactSettings
from jobcast.schedulers.registry import make_policy
from papers.andreas.bench import Bench
from papers.andreas.instances import MOST_JOBS, MOST_NODES, small
from papers.bench import read_settings
from papers.results import Claim, Page, claims, grid, number, read_rows

INSTANCES = 200
BAR_PCT = 1.0
OURS, THOROUGH = "ANDREAS", "equation 1, thorough"
ROWS = read_rows(Path(__file__).with_suffix(".csv"))
COMPARED = {row["title"]: (row["policy"], read_settings(row["settings"])) for row in ROWS}
OPTIMA = ("cost to go", "equation 1", "equation 1 with 4n")
HEAD = ("policy", *(cell for name in OPTIMA for cell in (f"{name}: gap of the sums, %", "optimal, %")))


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """(3, n_instances) EUR of the optima, see `OPTIMA`, and what schedules of policies cost by these objectives."""

    optima: Floats
    costs: Mapping[str, Floats]


def _compiled(sources: str) -> Any:
    """`least_cost`, compiled from these sources: Numba's cache looks at this file and at what a function encloses."""

    @numba.njit(cache=True)
    def least_cost(queue: Any, look: Any, plan: Any, node_of: Any, config_of: Any) -> Any:
        """The least cost-to-go of all schedules, by depth first; of one alone where its configurations are told."""
        # Never so; it makes the sources part of what Numba hashes.
        if not sources:
            return np.nan
        jobs, nodes, depth, least = len(plan.node), len(plan.free), 0, np.inf
        chosen = np.full(jobs + 1, -1)
        while depth >= 0:
            if depth == jobs:
                least = min(least, total_eur(queue, look, plan, least))
                depth -= 1
                continue
            if plan.node[depth] != POSTPONED:
                lift(queue, look, plan, depth)
            chosen[depth] += 1
            config, node = queue.first[depth] + (chosen[depth] - 1) // nodes, (chosen[depth] - 1) % nodes
            told = len(node_of) == 0 or (chosen[depth] == 0) == (node_of[depth] == POSTPONED)
            if chosen[depth] > 0 and config >= queue.last[depth]:
                chosen[depth] = -1
                depth -= 1
            elif chosen[depth] == 0:
                depth += 1 if told else 0
            elif told and (len(node_of) == 0 or (node == node_of[depth] and queue.gpus[config] == config_of[depth])):
                own = queue.kind[config] == queue.kind_of[node] and plan.free[node] >= queue.gpus[config]
                if own and fits_node(queue, depth, config, node):
                    land(queue, look, plan, depth, config, node)
                    # What waits costs at least nothing.
                    depth += 1 if plan.sums[OWN] < least else 0
        return least

    return least_cost


_least = _compiled(stamp())


def to_go_eur(view: EnergyView, deployment: Deployment | None = None) -> float:
    """The cost-to-go of a deployment, or the least of all."""
    queue = queue_of(view, 0.0)
    look = outlook_of(view, queue, AndreasSettings())
    plan = new_plan(queue, int(look.ends[-1]))
    plan.node[:], plan.free[:] = POSTPONED, view.cluster.kind_gpus[view.cluster.kind_of]
    plan.until_s[:] = look.idle_s
    none = np.zeros(0, dtype=np.int64)
    return float(_least(queue, look, plan, *((none, none) if deployment is None else deployment)))


def compare(views: list[EnergyView]) -> Compared:
    """Solve instances and ask policies for theirs."""
    optima = [np.array([to_go_eur(view) for view in views])]
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
        made = [(view, policy.schedule(view)) for view in views]
        to_go, proxy = ([price(*one) for one in made] for price in (to_go_eur, proxy_objective))
        costs[title] = np.array([to_go, proxy, proxy])
    return Compared(np.array(optima), costs)


def gaps_pct(cost: Floats, optimum: Floats) -> Floats:
    """(3,) by how much the sums over instances are above those of the optima, %.

    >>> gaps_pct(np.array([[1.5, 0.5]]), np.array([[1.0, 0.6]])).round(6).tolist()
    [25.0]
    """
    return np.asarray(100.0 * (cost.sum(axis=1) / optimum.sum(axis=1) - 1.0))


def exact(bench: Bench, page: Page, count: int = INSTANCES) -> None:
    """Write the page and the table of all instances into a folder."""
    views = [small(seed) for seed in range(count)]
    found = compare(views)
    columns = (*found.optima, *(row for cost in found.costs.values() for row in cost[:2]))
    rows = ((at, *(f"{value:.6g}" for value in row)) for at, row in enumerate(np.transpose(columns).tolist()))
    titles = (f"{title}: {name}" for title in found.costs for name in OPTIMA[:2])
    page.csv(("seed", *(f"optimum: {name}" for name in OPTIMA), *titles), rows)
    page.write(
        count=count,
        most_jobs=MOST_JOBS,
        most_nodes=MOST_NODES,
        table=grid(HEAD, (line(title, cost, found) for title, cost in found.costs.items())),
        constraint=constraint(views, found),
        claims=claims([_claim(found, OURS, 0), _claim(found, THOROUGH, 1)]),
    )


def line(title: str, cost: Floats, found: Compared) -> tuple[str, ...]:
    """What `HEAD` names, of a policy."""
    optimal = 100.0 * (cost <= found.optima + tolerance.EUR).mean(axis=1)
    cells = zip(gaps_pct(cost, found.optima).tolist(), optimal.tolist(), strict=True)
    return (title, *(cell for gap, share in cells for cell in (number(gap), number(share, 0))))


def constraint(views: list[EnergyView], found: Compared) -> str:
    """What constraint 4n costs beyond the optimum, and how often it cannot be met as printed."""
    _, free, forced = found.optima
    short = sum(nodes_to_use(view) < min(len(view.active), len(view.cluster.kind_of)) for view in views)
    return (
        f"It changes the optimum in {100 * np.mean(forced - free > tolerance.EUR):.0f} % of the instances and makes it "
        f"dearer by {(forced - free).mean():.4f} EUR in the mean, {100 * (forced.sum() / free.sum() - 1):.2f} % of the "
        f"sums. As printed it cannot be met in {short}."
    )


def _claim(found: Compared, title: str, which: int) -> Claim:
    gap = float(gaps_pct(found.costs[title], found.optima)[which])
    said = f"{title} is above the optimum by at most, of the sums (jobcast's own bar)"
    return Claim(said, f"{BAR_PCT:g} %", f"{number(gap)} %", gap <= BAR_PCT)
