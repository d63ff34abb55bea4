"""ANDREAS' proxy objective of a schedule: what its late, postponed and first-ending jobs cost.

Filippini et al.: ANDREAS, FiCloud 2021, equation 1 and appendix A. The appendix writes due dates relative to the call;
here they are instants, and the call's own instant, T_c, is added to the times.
"""

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import HOUR_S
from jobcast.domain.energy import POSTPONED, Deployment, EnergyCluster, EnergyView, cost_eur_h, stay_s, times_left_s

# Penalty of postponing a job, section V.B.
RHO = 100.0


def proxy_objective(view: EnergyView, deployment: Deployment, rho: float = RHO, *, as_printed: bool = False) -> float:
    """f_OBJ of a deployment, EUR; infinite where a job is put where it cannot run. Equation 1.

    Whether the GPUs of the nodes suffice is not looked at.

    Parameters
    ----------
    view : the cluster at the call
    deployment : a node and GPUs for each active job, or `POSTPONED`
    rho : penalty of postponing a job
    as_printed : a node costs its cheapest job, which is what appendix A comes to: nothing in it ties alpha to who ends
        first. Else it costs its first-ending job, and the cheapest of those that end together
    """
    runs = np.asarray(deployment.node_of) != POSTPONED
    times_s = deployed_s(view, deployment)[runs]
    # Else 0 hours late times infinity would be no number.
    if not np.isfinite(times_s).all():
        return float("inf")
    node, gpus = deployment.node_of[runs], deployment.gpus_of[runs]
    late_eur = tardiness_eur(view, view.active[runs], times_s).sum()
    waits_eur = postponed_eur(view, rho)[~runs].sum()
    pi_eur = deployment_eur(view.cluster, view.now_s, node, gpus, times_s)
    return float(late_eur + waits_eur + pi_eur[counted(node, times_s, pi_eur, as_printed=as_printed)].sum())


def deployed_s(view: EnergyView, deployment: Deployment) -> Floats:
    """(n_active,) t_j, seconds that jobs still need as deployed: `stay_s` for those that go on; infinite: postponed."""
    here = view.active
    node, gpus = np.asarray(deployment.node_of), np.asarray(deployment.gpus_of)
    runs = node != POSTPONED
    kind = view.cluster.kind_of[np.where(runs, node, 0)]
    moved_s = startable_s(view)[np.arange(len(here)), kind, np.maximum(gpus, 1) - 1]
    # Another number of GPUs on the same node is a new start as well.
    stays = runs & (node == view.node_of[here]) & (gpus == view.gpus_of[here])
    return np.where(runs, np.where(stays, stay_s(view), moved_s), np.inf)


def counted(node: Ints, times_s: Floats, pi_eur: Floats, *, as_printed: bool) -> Ints:
    """(n_used,) the job of each used node whose cost counts, as an index into the rows; arguments are (n_deployed,).

    >>> counted(np.array([0, 0, 4]), np.array([9.0, 5.0, 1.0]), np.array([1.0, 2.0, 3.0]), as_printed=False).tolist()
    [1, 2]
    """
    order = np.lexsort((pi_eur, node) if as_printed else (pi_eur, times_s, node))
    first = np.unique(np.asarray(node)[order], return_index=True)[1]
    return order[first]


def tardiness_h(end_s: Floats, due_s: Floats) -> Floats:
    """Hours by which ends are late, none where there is no due date; shapes broadcast. Constraints 4i and 4s.

    >>> tardiness_h(np.array([7200.0, 7200.0]), np.array([3600.0, np.inf])).tolist()
    [1.0, 0.0]
    """
    # inf - inf, of jobs that never end and are never due.
    with np.errstate(invalid="ignore"):
        late: Floats = np.where(np.isposinf(due_s), 0.0, np.maximum(0.0, end_s - due_s) / HOUR_S)
    return late


def tardiness_eur(view: EnergyView, job: Ints, times_s: Floats) -> Floats:
    """(n,) omega_j tau_j of jobs, by their ids, that need so many seconds from now on, EUR."""
    return view.jobs.weight[job] * tardiness_h(view.now_s + times_s, view.jobs.due_s[job])


def startable_s(view: EnergyView) -> Floats:
    """(n_active, n_kinds, most_gpus) `times_left_s`, infinite beyond a node's GPUs as well."""
    times_s = times_left_s(view)
    fits = np.arange(1, times_s.shape[2] + 1) <= view.cluster.kind_gpus[:, None]
    return np.where(fits & np.isfinite(times_s), times_s, np.inf)


def longest_s(view: EnergyView) -> Floats:
    """(n_active,) M_j: the longest that jobs could take wherever they were started now; 0 where they run nowhere."""
    times_s = startable_s(view)
    longest: Floats = times_s.max(axis=(1, 2), where=np.isfinite(times_s), initial=0.0)
    return longest


def postponed_eur(view: EnergyView, rho: float = RHO) -> Floats:
    """(n_active,) rho omega_j tau-hat_j: what jobs cost if they wait, EUR. Constraint 4j.

    They are taken to start after H and to need M_j then.
    """
    return rho * tardiness_eur(view, view.active, view.period_s + longest_s(view))


def deployment_eur(cluster: EnergyCluster, now_s: float, node: Ints, gpus: Ints, times_s: Floats) -> Floats:
    """(n,) pi_jn: EUR of nodes for so many seconds as if a job's own GPUs were all that is in use. Constraint 4k."""
    rate: Floats = cost_eur_h(cluster, now_s)[cluster.kind_of[node], gpus]
    return times_s / HOUR_S * rate
