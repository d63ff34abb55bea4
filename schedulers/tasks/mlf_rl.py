"""MLF-RL: the order of waiting jobs and the hosts of tasks by learned networks. MLFS, section 3.4.

A decision is a sequence of picks. Tasks that should leave overloaded servers are those of MLF-H (section 3.3.3); the
network of hosts says where each goes: to another server, back to the queue with its whole job, which may be placed
elsewhere at once, or nowhere. Then the network of jobs picks the next waiting job among those that find places, and
the network of hosts a server for each task of it; or it picks to leave the rest in the queue, as long as some job runs.
Scores of jobs do not depend on earlier picks, so that picking the best one again and again is one order by score, down
to that of leaving the rest.

Who has to give way to whom among running and waiting jobs is MLF-H's choice (`swapping`).

`device_rl` is the same with other weights: it reads nothing of deadlines, urgency and accuracy, and leaves overloaded
servers alone (section 4.1, RL).

A decision that the networks cannot make is that of the rule whose place they take.
"""

import numpy as np

from jobcast.domain.answer_checks import failed
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.bad_answers import BadAnswerError, BadAnswers, Reason
from jobcast.domain.policy import Decision
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import TaskRule, TaskView
from jobcast.schedulers.tasks.features import hold_row, job_rows, jobs_with_queued_tasks, plain_view, some_job_runs
from jobcast.schedulers.tasks.host_selection import Room
from jobcast.schedulers.tasks.learned_hosts import fitting, move_tasks, place_in_order
from jobcast.schedulers.tasks.learned_priorities import Corrections
from jobcast.schedulers.tasks.mlf_h import MlfH, packing_of
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import SAME_SCORE, Layers, Networks, scores_of
from jobcast.schedulers.tasks.packing import Wants, limits_of, placement, room_of, wants_of
from jobcast.schedulers.tasks.preemption import displace
from jobcast.schedulers.tasks.priorities import job_order, task_priorities


class MlfRl(TaskRule):
    """A learned policy.

    Parameters
    ----------
    networks : weights
    name : `mlf_rl` or `device_rl`
    settings : limits, and which tasks should leave overloaded servers, as of MLF-H
    """

    settings = HeuristicSettings()

    def __init__(self, networks: Networks, name: str = "mlf_rl", settings: HeuristicSettings | None = None) -> None:
        super().__init__(settings)
        self.networks, self.name = networks, name

    def place(self, view: TaskView) -> Decision:
        """Move what should leave overloaded servers, then place waiting jobs by descending score."""
        seen = plain_view(view)
        room, wants, most = room_of(view), wants_of(view), self.settings.h_r
        limits = limits_of(most, most)
        leaving = tasks_leaving(view, self.settings)
        if len(leaving):
            count = len(jobs_with_queued_tasks(seen))
            move_tasks(seen, room, limits, wants, self.networks.hosts, leaving, count)
            # Stopped jobs wait from now on, and the network of jobs must see that.
            seen = seen._replace(gpu_of=room.place.copy())
        waiting = jobs_with_queued_tasks(seen)
        if len(waiting):
            scores = _ranks(self.networks.jobs, job_rows(seen, waiting))
            order = waiting[np.argsort(-scores, kind="stable")]
            # With nobody running the choice to hold would never be taken back.
            if some_job_runs(seen):
                least = _ranks(self.networks.jobs, hold_row(seen, len(waiting)))[0]
                order = order[: np.count_nonzero(scores >= least)]
            place_in_order(seen, room, limits, wants, self.networks.hosts, order, len(waiting))
            make_room(view, room, wants, self.settings)
        return placement(view, room)


def _ranks(layers: Layers, rows: Floats) -> Floats:
    """(n,) scores in units of what counts as equal."""
    return np.rint(scores_of(layers, rows) / SAME_SCORE)


def make_room(view: TaskView, room: Room, wants: Wants, settings: HeuristicSettings) -> None:
    """Let those in for whom running jobs give way by MLF-H's rule, or that fit alone only; changes the room.

    Jobs that fit without were left in the queue on purpose. Without `preempt` nobody gives way.
    """
    waiting = jobs_with_queued_tasks(plain_view(view)._replace(gpu_of=room.place))
    # Who fits was left in the queue by choice; only who does not may displace others.
    limits = limits_of(settings.h_r, settings.h_r)
    crowded = np.setdiff1d(waiting, fitting(room, limits, wants, waiting), assume_unique=True)
    if not len(crowded):
        return
    rank = rounded_all(task_priorities(view, settings))
    order = job_order(view, rank)
    order = order[np.isin(order, crowded)]
    hold = settings.hold if settings.preempt else np.inf
    displace(view, room, wants, limits, packing_of(settings), order, rank, hold)


def tasks_leaving(view: TaskView, settings: HeuristicSettings) -> Ints:
    """Tasks that MLF-H would move out of overloaded servers, by descending priority.

    Priorities are computed only where a server or GPU is overloaded.
    """
    over = (view.load > settings.leave_at * view.cluster.capacity).any() or (view.gpu_load > settings.leave_at).any()
    if not settings.migration or not over:
        return np.empty(0, dtype=np.int64)
    rank = rounded_all(task_priorities(view, settings))
    tasks = np.flatnonzero(MlfH(settings).leaving(view, rank))
    return tasks[np.argsort(-rank[tasks], kind="stable")]


NAME = "device_rl"


def device_rl(networks: Networks, filled: float = 1.0) -> MlfRl:
    """The learned policy with weights of another reward; nothing leaves overloaded servers.

    Parameters
    ----------
    networks : trained with completion times as the only reward
    filled : share up to which servers and GPUs are filled
    """
    return MlfRl(networks, NAME, HeuristicSettings(h_r=filled, migration=False, preempt=False))


# What bad answers are counted as.
DECISIONS = "decisions"
# Trained weights are some tens; sums of so large ones are still far from infinite, so that all scores are numbers.
MOST_WEIGHT = 1e6


class GuardedPolicy(TaskRule):
    """A learned policy's decisions, the rule's where its networks score no numbers or anything is raised.

    Parameters
    ----------
    learned, rule : either may miss decisions that the other made
    networks : of the learned policy, or its corrections of MLF-H
    tally : where decisions of the rule are counted
    """

    def __init__(self, learned: TaskRule, rule: TaskRule, networks: Networks | Corrections, tally: BadAnswers) -> None:
        self.name, self._learned, self._rule, self._tally = learned.name, learned, rule, tally
        # Looked for once: weights do not change in a run.
        self._fault = fault_of(networks)

    def place(self, view: TaskView) -> Decision:
        """The learned policy's decision, or the rule's."""
        self._tally.checked(DECISIONS)
        try:
            if self._fault is not None:
                raise BadAnswerError(*self._fault)
            return self._learned.place(view)
        except Exception as error:  # whatever a learned policy does wrong, the run goes on without it
            failed(self._tally, DECISIONS, error, f"at {view.now_s:.0f} s: ")
            return self._rule.place(view)


def fault_of(networks: Networks | Corrections) -> tuple[Reason, str] | None:
    """Why scores of what was learned may be no numbers; None where they are."""
    if isinstance(networks, Networks):
        heads = (("jobs", networks.jobs), ("hosts", networks.hosts))
        arrays = {f"{head}.{name}": each for head, layers in heads for name, each in layers._asdict().items()}
    else:
        arrays = {name: getattr(networks, name) for name in networks.__slots__}
    for name, weights in arrays.items():
        # Before the size, since nan compares as false.
        if not np.isfinite(weights).all():
            return Reason.NOT_FINITE, f"weights of {name} are no numbers"
        if (np.abs(weights) > MOST_WEIGHT).any():
            return Reason.OUT_OF_RANGE, f"weights of {name} are beyond {MOST_WEIGHT:g}"
    return None
