"""MLF-RL as a learned correction of MLF-H: priorities, hosts and limits. After MLFS, section 3.4.

The policy is MLF-H whose weights depend on the state. Each active job's priority is multiplied by e^s, s a weighted sum
of what is read of the job, with weights that move with the length of the queue. So the order of waiting jobs, who gives
way to whom (a job that runs is told from one that waits), and which tasks leave an overloaded server are learned
together. The terms of the distance from the ideal virtual host have learned weights, and up to where servers are
filled and from where on tasks leave them are learned shares. With weights of 0 it is MLF-H.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import TaskView
from jobcast.schedulers.tasks.features import JOB_FEATURES, job_rows, jobs_with_queued_tasks, plain_view
from jobcast.schedulers.tasks.host_selection import HOST_TERMS
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import Networks, networks_of
from jobcast.schedulers.tasks.priorities import task_priorities

# What is read of an active job: as of a waiting one, and whether it runs.
RANK_FEATURES = (*JOB_FEATURES[:-1], "running")
_QUEUE = RANK_FEATURES.index("queue")
# Beyond that a job is before or behind all others anyway.
MOST_SCORE = 20.0
# Servers are filled up to this at the most; what tasks use swings, and beyond capacity all slow down.
MOST_FILLED = 1.25
SHAPES: Mapping[str, tuple[int, ...]] = {"ranks": (2, len(RANK_FEATURES)), "hosts": (HOST_TERMS,), "limits": (2,)}


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """What was learned.

    Attributes
    ----------
    ranks : (2, n_features) weights of `RANK_FEATURES`, and how they grow with the queue
    hosts : (6,) logarithms of the weights of `host_selection.ideal_host`
    limits : (2,) logarithms of factors of h_r, and of the share beyond which tasks leave
    """

    ranks: Floats
    hosts: Floats
    limits: Floats

    def settings(self, given: HeuristicSettings) -> HeuristicSettings:
        """Those of MLF-H with what was learned of them; shares may be above 1."""
        filled, leave = _powers(self.limits)
        h_r = min(float(given.h_r * filled), MOST_FILLED)
        return given.model_copy(update={"h_r": h_r, "move_at": float(given.leave_at * leave)})


def corrections_of(arrays: Mapping[str, Floats]) -> Corrections:
    """Corrections from arrays by name. Raises RegistryError where one has another shape than this version needs."""
    for name, shape in SHAPES.items():
        found = np.shape(arrays.get(name, ()))
        if found != shape:
            raise RegistryError(f"weights of {name} are {found}, this version needs {shape}; train the policy again")
    return Corrections(*(np.asarray(arrays[name], dtype=np.float64) for name in SHAPES))


def learned_from(arrays: Mapping[str, Floats]) -> Corrections | Networks:
    """What a registered policy learned: corrections of MLF-H, or networks that pick. Raises RegistryError."""
    return corrections_of(arrays) if "ranks" in arrays else networks_of(arrays)


def rank_rows(view: TaskView) -> Floats:
    """(n_active, n_features) what is read of active jobs; columns by `RANK_FEATURES`."""
    seen = plain_view(view)
    waiting = jobs_with_queued_tasks(seen)
    rows: Floats = job_rows(seen, seen.active)
    rows[:, _QUEUE] = np.log1p(len(waiting)) / 7.0
    rows[:, -1] = ~np.isin(seen.active, waiting)
    return rows


def scores(ranks: Floats, rows: Floats) -> Floats:
    """(n,) by what power of e jobs are raised."""
    own, by_queue = ranks
    found: Floats = rows @ own + rows[:, _QUEUE] * (rows @ by_queue)
    return found


def _powers(logs: Floats) -> Floats:
    return np.exp(np.clip(logs, -MOST_SCORE, MOST_SCORE))


class LearnedPriorities(MlfH):
    """MLF-H with corrections.

    Parameters
    ----------
    learned : what was learned
    settings : as of MLF-H
    """

    def __init__(self, learned: Corrections, settings: HeuristicSettings | None = None) -> None:
        super().__init__(learned.settings(settings or self.settings), "mlf_rl")
        self.learned, self.hosts = learned, _powers(learned.hosts)

    def ranks(self, view: TaskView) -> Floats:
        """See `MlfH`."""
        factor = np.ones(len(view.jobs.submit_s))
        factor[view.active] = _powers(scores(self.learned.ranks, rank_rows(view)))
        return rounded_all(task_priorities(view, self.settings) * factor[view.jobs.job_of])
