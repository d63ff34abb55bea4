"""Courses of jobs of tasks: small workloads drawn from a large one, rewarded by the objectives of MLFS."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.policy import Trigger, View
from jobcast.domain.tasks import AccuracyForecast, Floats, TaskView
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Course, Learning, Picks, Round
from jobcast.pipelines.lifecycle.learning_to_schedule.episodes import EpisodeSettings, draw_episode
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import Picking
from jobcast.pipelines.lifecycle.learning_to_schedule.rewards import Scale, Standing, objectives
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.task_workload import TaskWorkload

ROUND_S = 300.0
"""Seconds between two decisions while learning: loads are drawn anew as often. By the minute it takes five times
as long."""
AFTER_S = 24 * 3600.0
"""A course ends so long after the last submission, or with the last job."""
HOUR_S = 3600.0
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
        settings: MlfHSettings,
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


def scale_of(workload: TaskWorkload, settings: MlfHSettings, forecast: AccuracyForecast | None, seed: int) -> Scale:
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
        settings: MlfHSettings,
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
