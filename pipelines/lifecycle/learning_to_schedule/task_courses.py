"""Courses of jobs of tasks: small workloads drawn from a large one, rewarded by the objectives of MLFS.

Reward 7 of MLFS, section 3.4, as it comes in from decision to decision. The five objectives of equation 1 are told in
one unit: each adds up over a run to its value there as a share of what MLF-H reached on the same workload, or is a
share already. What equation 1 inverts (mean completion time, bandwidth) counts as a loss instead, which near MLF-H's
value is the same to the first order: 1/x grows by what x falls.

1. completion: an active job costs the seconds that pass, over jobs x MLF-H's mean completion time (-1 in all)
2. deadlines: a job that is not over by its deadline costs 1 / jobs at that time
3. bandwidth: MB sent between servers, over those of MLF-H (-1 in all)
4. accuracy requirements: a job without its accuracy by its deadline (or end) costs 1 / jobs at that time
5. accuracy: what jobs gain by their deadlines, over jobs
"""

from dataclasses import dataclass

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import TrainingError
from jobcast.domain.policy import Trigger, View
from jobcast.domain.tasks import GPU, AccuracyForecast, TaskCluster, TaskJobs, TaskView
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Course, Learning, Picks, Round
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import Picking
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """What is drawn for an episode.

    Attributes
    ----------
    jobs : how many, in order of submission
    servers : fewest and most
    load : least and largest offered load, in shares of GPUs
    """

    jobs: int = 60
    servers: tuple[int, int] = (8, 12)
    load: tuple[float, float] = (0.5, 2.5)


def draw_episode(workload: TaskWorkload, settings: EpisodeSettings, rng: np.random.Generator) -> TaskWorkload:
    """A stretch of jobs whose submissions are drawn together so that they offer the load that was drawn.

    Jobs that would not fit on the servers by themselves are left out.

    Raises
    ------
    TrainingError
        Fewer than two jobs are left to draw from.
    """
    servers = int(rng.integers(settings.servers[0], settings.servers[1] + 1))
    # Drawn before it is cut, so that draws stay in step on clusters of any size.
    servers = min(servers, len(workload.cluster.capacity))
    cluster = first_servers(workload.cluster, servers)
    able = np.flatnonzero(_shares(workload) <= _ROOM * cluster.capacity[:, GPU].sum())
    if len(able) < 2:
        raise TrainingError(f"{len(able)} jobs fit on {servers} servers; train on a trace of more and narrower jobs")
    count = min(settings.jobs, len(able))
    begin = int(rng.integers(0, len(able) - count + 1))
    part = part_of(workload, able[begin : begin + count], cluster)
    load = rng.uniform(*settings.load)
    work_s = float((_shares(part) * part.jobs.iterations * part.jobs.iteration_s).sum())
    # Jobs submitted at once have no span; a second stands for it.
    span_s = float(np.ptp(part.jobs.submit_s))
    factor = work_s / cluster.capacity[:, GPU].sum() / load / max(span_s, 1.0)
    return submitted(part, part.jobs.submit_s[0] + factor * (part.jobs.submit_s - part.jobs.submit_s[0]))


_ROOM = 0.8
"""Share of the GPUs that one job may use by itself."""


def _shares(workload: TaskWorkload) -> "np.typing.NDArray[np.float64]":
    """GPU shares of all tasks of each job."""
    return np.asarray(np.add.reduceat(workload.jobs.demand[:, GPU], workload.jobs.task_of[:-1]))


def first_servers(cluster: TaskCluster, count: int) -> TaskCluster:
    """The first servers of a cluster."""
    return TaskCluster(cluster.capacity[:count].copy(), cluster.server_of[cluster.server_of < count].copy())


def submitted(workload: TaskWorkload, submit_s: "np.typing.NDArray[np.float64]") -> TaskWorkload:
    """The same jobs submitted at other times; deadlines move with them."""
    jobs = workload.jobs
    moved = jobs._replace(submit_s=submit_s, deadline_s=jobs.deadline_s + submit_s - jobs.submit_s)
    return TaskWorkload(moved, workload.truth, workload.cluster, workload.job_ids)


def part_of(workload: TaskWorkload, which: Ints, cluster: TaskCluster | None = None) -> TaskWorkload:
    """Some of the jobs, in ascending order, on the same or other servers."""
    jobs, truth = workload.jobs, workload.truth
    tasks, task_of = _ranges(jobs.task_of, which)
    edges, edge_of = _ranges(jobs.edge_of, which)
    new_task = np.full(len(jobs.job_of), -1, dtype=np.int64)
    new_task[tasks] = np.arange(len(tasks))
    # The first fields are by job, those below by task, the last by edge.
    columns = {name: getattr(jobs, name)[which] for name in TaskJobs._fields[:11]}
    columns |= {name: getattr(jobs, name)[tasks] for name in ("demand", "compute_s", "size_share", "is_server")}
    columns |= {
        "task_of": task_of,
        "edge_of": edge_of,
        "job_of": np.repeat(np.arange(len(which)), np.diff(task_of)),
        "edge_from": new_task[jobs.edge_from[edges]],
        "edge_to": new_task[jobs.edge_to[edges]],
        "volume_mb": jobs.volume_mb[edges],
    }
    return TaskWorkload(
        TaskJobs(**columns),
        TaskTruth(
            truth.metric[which], truth.model_mb[which], None if truth.iterations is None else truth.iterations[which]
        ),
        workload.cluster if cluster is None else cluster,
        [workload.job_ids[job] for job in which],
    )


def _ranges(begins: Ints, which: Ints) -> tuple[Ints, Ints]:
    """All numbers of the ranges of some jobs, and where each job's begin among them."""
    sizes = np.diff(begins)[which]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # Counting up, less how far each job's range was moved to the front.
    return np.arange(new[-1]) - np.repeat(new[:-1] - begins[:-1][which], sizes), new


ETA = 0.95
"""Discount of a step. MLFS, section 4.1."""
STEP_S = 900.0
"""A step of the discount; the paper does not tell it. By the minute, 0.95 would look twenty minutes ahead, by a quarter
of an hour it looks five hours ahead: jobs run for hours."""
HORIZON_S = 6 * 3600.0
"""t_m: rewards later than this after a decision do not count towards it."""
OBJECTIVES = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """What MLF-H reached on a workload: mean completion time in seconds, MB between servers."""

    mean_jct_s: float
    moved_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How jobs stand at an instant; arrays (n_jobs,).

    Attributes
    ----------
    now_s : seconds from the epoch
    over, come : whether they have ended, been submitted
    accuracy : the latest finished epoch's, before the first that before training
    sent_mb : between servers, so far
    """

    now_s: float
    over: Bools
    come: Bools
    accuracy: Floats
    sent_mb: float


def objectives(before: Standing, after: Standing, deadline_s: Floats, target: Floats, scale: Scale) -> Floats:
    """What a round added to each objective, (5,).

    Parameters
    ----------
    deadline_s, target : (n_jobs,) infinite and NaN where there is none
    """
    jobs = len(deadline_s)
    passed_s = after.now_s - before.now_s
    # The mean of both ends of the round, for jobs arrive and end within it.
    active = float((after.come & ~after.over).sum() + (before.come & ~before.over).sum()) / 2.0
    # Half open, so that a deadline counts in exactly one round.
    due = (deadline_s > before.now_s) & (deadline_s <= after.now_s)
    late = due & ~after.over
    judged = late | (after.over & ~before.over & (deadline_s > before.now_s))
    poor = judged & (after.accuracy < target - tolerance.SHARES)
    # What is learnt after the deadline is worth nothing to this objective.
    in_time = deadline_s > before.now_s + tolerance.LATER_S
    gained = float((after.accuracy - before.accuracy)[in_time].sum())
    return np.array(
        [
            -active * passed_s / (jobs * scale.mean_jct_s),
            -float(late.sum()) / jobs,
            -(after.sent_mb - before.sent_mb) / scale.moved_mb if scale.moved_mb > 0.0 else 0.0,
            -float(poor.sum()) / jobs,
            gained / jobs,
        ]
    )


def returns(rewards: Floats, now_s: Floats, eta: float = ETA) -> Floats:
    """Discounted rewards from each decision to `HORIZON_S` after it, (n,).

    Parameters
    ----------
    rewards : (n,) of the rounds after each decision
    now_s : (n,) when decisions were made, ascending
    eta : discount of `STEP_S`

    >>> returns(np.array([1.0, 1.0]), np.array([0.0, 900.0])).tolist()
    [1.95, 1.0]
    """
    found, total = np.empty(len(rewards)), 0.0
    for place in range(len(rewards) - 1, -1, -1):
        # By time, not by decision: rounds are of different lengths.
        apart_s = now_s[place + 1] - now_s[place] if place + 1 < len(rewards) else 0.0
        total = rewards[place] + eta ** (apart_s / STEP_S) * total
        found[place] = total
    # The discounted tail from beyond the horizon is taken off again: one pass in place of a sum a decision.
    beyond = np.searchsorted(now_s, now_s + HORIZON_S)
    there = beyond < len(rewards)
    far = beyond[there]
    apart_s = now_s[far] - now_s[there]
    cut = found.copy()
    cut[there] -= eta ** (apart_s / STEP_S) * found[far]
    return cut


ROUND_S = 300.0
"""Seconds between two decisions while learning: loads are drawn anew as often. By the minute it takes five times
as long."""
AFTER_S = 24 * 3600.0
"""A course ends so long after the last submission, or with the last job."""
UNSCALED = Scale(1.0, 1.0)


def state_of(view: TaskView) -> Floats:
    """What a baseline reads: jobs, those in the queue, hours of work left, GPU hours left, and jobs with time left to
    their deadlines, (5,)."""
    jobs, active = view.jobs, view.active
    # A job is in the queue as long as any of its tasks is.
    queued = np.logical_or.reduceat(view.gpu_of < 0, jobs.task_of[:-1])[active]
    left_h = np.maximum(view.limit[active] - view.done[active], 0.0) * jobs.iteration_s[active] / HOUR_S
    in_time = jobs.deadline_s[active] > view.now_s
    return np.array([len(active), queued.sum(), left_h.sum(), left_h @ jobs.gpus[active], in_time.sum()], dtype=float)


class TaskCourse(Course):
    """A run of jobs of tasks.

    Parameters
    ----------
    workload, forecast, seed : as of `simulator.laws.tasks.Tasks`
    scale : what MLF-H reached
    settings : of MLF-H
    round_s : between two decisions
    """

    def __init__(
        self,
        workload: TaskWorkload,
        scale: Scale,
        settings: HeuristicSettings,
        forecast: AccuracyForecast | None = None,
        seed: int = 0,
        round_s: float = ROUND_S,
    ) -> None:
        self._law = Tasks(workload, forecast, seed=seed)
        self._jobs, self._scale, self._settings, self._round_s = workload.jobs, scale, settings, round_s
        self._first = workload.truth.metric[:, 0]
        learning = Learning("mlf_rl in training", Trigger(on_events=False, period_s=round_s))
        run = Simulation(workload.whole(), learning, law=self._law)
        super().__init__(run, float(workload.jobs.submit_s[-1]) + AFTER_S)

    def open(self, view: View) -> Picks:
        """See `Course`."""
        seen = view.facts(TaskView)
        self._before, self._state = self._standing(seen.now_s), state_of(seen)
        return Picking(seen, self._settings).picks()

    def close(self, view: View | None) -> Round:
        """See `Course`."""
        after = self._standing(self._end_of_round(view))
        earned = objectives(self._before, after, self._jobs.deadline_s, self._jobs.target, self._scale)
        return Round(self._before.now_s, self._state, earned)

    def _end_of_round(self, view: View | None) -> float:
        """When the round after the latest decision was over, before any time in which there was nobody."""
        # Idle hours cost nobody anything.
        end_s = self._before.now_s + self._round_s
        if view is None:
            return end_s
        now_s = view.facts(TaskView).now_s  # asked for here, so that accounts are up to date
        return end_s if now_s > end_s + tolerance.EVENT_S else now_s

    def _standing(self, now_s: float) -> Standing:
        state = self._law.state
        known = state.accuracy
        return Standing(
            now_s,
            ~np.isnan(state.end_s),
            self._jobs.submit_s <= now_s,
            np.where(np.isnan(known), self._first, known),
            float(state.edge_mb.sum() + state.moved_mb.sum()),
        )


def scale_of(
    workload: TaskWorkload, settings: HeuristicSettings, forecast: AccuracyForecast | None, seed: int
) -> Scale:
    """What MLF-H reaches on a workload, up to the end of a course."""
    course = TaskCourse(workload, UNSCALED, settings, forecast, seed)
    while (choice := course.next()) is not None:
        course.take(choice.taught)
    earned = np.array([one.earned for one in course.rounds])
    return Scale(-float(earned[:, 0].sum()), -float(earned[:, 2].sum()))


class TaskCourses:
    """Courses on stretches of a workload, drawn.

    Parameters
    ----------
    workload : jobs to draw from, the truth about them, and servers
    settings, forecast : as of `TaskCourse`
    drawn : what is drawn
    scaled : whether rewards are shares of what MLF-H reaches on the same stretch, which it is run for
    """

    def __init__(
        self,
        workload: TaskWorkload,
        settings: HeuristicSettings,
        forecast: AccuracyForecast | None = None,
        drawn: EpisodeSettings | None = None,
        scaled: bool = True,
    ) -> None:
        self._workload, self._settings, self._forecast = workload, settings, forecast
        self._drawn, self._scaled = drawn or EpisodeSettings(), scaled
        self._scales: dict[tuple[int, bytes], Scale] = {}

    @property
    def most(self) -> int:
        """Most rows of a choice: each job and the choice of none, or each server and the queue."""
        return 1 + max(self._drawn.jobs, self._drawn.servers[1])

    def __call__(self, rng: np.random.Generator) -> TaskCourse:
        """Draw one; raises TrainingError where there are too few jobs that fit on the servers."""
        part = draw_episode(self._workload, self._drawn, rng)
        seed = int(rng.integers(2**31))
        scale = self._scale(part, seed) if self._scaled else UNSCALED
        return TaskCourse(part, scale, self._settings, self._forecast, seed)

    def _scale(self, part: TaskWorkload, seed: int) -> Scale:
        """MLF-H is run once a draw, however often that is begun anew."""
        # Submissions are drawn as well: they tell two stretches of equal seed apart.
        key = (seed, part.jobs.submit_s.tobytes())
        if key not in self._scales:
            self._scales[key] = scale_of(part, self._settings, self._forecast, seed)
        return self._scales[key]
