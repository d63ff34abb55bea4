"""Scheduling of tasks as an environment of Gymnasium: an action is one pick of the decision at hand."""

from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.policy import Trigger
from jobcast.domain.tasks import AccuracyForecast, Floats, TaskRule, TaskView
from jobcast.pipelines.learning_to_schedule.picking import HOSTS, JOBS, Choice, Picking
from jobcast.pipelines.learning_to_schedule.rewards import OBJECTIVES, Scale, Standing, objectives
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.simulator.engine import SAME_S, Simulation
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.task_workload import TaskWorkload

ROUND_S = 300.0
"""Seconds between two decisions while learning: loads are drawn anew as often. By the minute it takes five times
as long."""
AFTER_S = 24 * 3600.0
"""An episode ends so long after the last submission, or with the last job."""
MOST = 512
"""Rows of an observation; of more things to pick from, the first ones are shown."""
HEADS = (JOBS, HOSTS)
HOUR_S = 3600.0


class _Learning(TaskRule):
    """Stands for the policy in messages of the engine; an environment decides pick by pick."""

    name = "mlf_rl in training"

    def __init__(self, round_s: float) -> None:
        self.trigger = Trigger(on_events=False, period_s=round_s)


def state_of(view: TaskView) -> Floats:
    """What a baseline reads: jobs, those in the queue, hours of work left, GPU hours left, and jobs with time left to
    their deadlines, (5,)."""
    jobs, active = view.jobs, view.active
    queued = np.logical_or.reduceat(view.gpu_of < 0, jobs.task_of[:-1])[active]
    left_h = np.maximum(view.limit[active] - view.done[active], 0.0) * jobs.iteration_s[active] / HOUR_S
    in_time = jobs.deadline_s[active] > view.now_s
    return np.array([len(active), queued.sum(), left_h.sum(), left_h @ jobs.gpus[active], in_time.sum()], dtype=float)


class Course:
    """A run of a workload, choice by choice.

    Parameters
    ----------
    workload, forecast, seed : as of `simulator.laws.tasks.Tasks`
    round_s : between two decisions
    settings : of MLF-H
    scale : what MLF-H reached
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
        self._run = Simulation(workload.whole(), _Learning(round_s), law=self._law)
        self._jobs, self._scale, self._settings = workload.jobs, scale, settings
        self._first = workload.truth.metric[:, 0]
        self._until_s = float(workload.jobs.submit_s[-1]) + AFTER_S
        self.times_s: list[float] = []
        self.rewards: list[Floats] = []
        self.states: list[Floats] = []
        self._round_s = round_s
        self._picking: Picking | None = None
        self._before = self._standing(float(workload.jobs.submit_s[0]))
        self._view = self._look()

    @property
    def decisions(self) -> int:
        """How many were completed."""
        return len(self.rewards)

    def next(self) -> Choice | None:
        """The next choice, of this decision or a later one; None at the end."""
        while self._view is not None and self._view.now_s <= self._until_s:
            if self._picking is None:
                self._before = self._standing(self._view.now_s)
                self._picking = Picking(self._view, self._settings)
                self.states.append(state_of(self._view))
            choice = self._picking.next()
            if choice is not None:
                return choice
            self._run.carry_out(self._picking.decision())
            self._picking, self._view = None, self._look()
            self.times_s.append(self._before.now_s)
            after = self._standing(self._end_of_round())
            told = objectives(self._before, after, self._jobs.deadline_s, self._jobs.target, self._scale)
            self.rewards.append(told)
        return None

    def _look(self) -> TaskView | None:
        seen = self._run.look()
        return None if seen is None else seen.facts(TaskView)

    def _end_of_round(self) -> float:
        """When the round after the latest decision was over, before any time in which there was nobody."""
        end_s = self._before.now_s + self._round_s
        return end_s if self._view is None or self._view.now_s > end_s + SAME_S else self._view.now_s

    def take(self, picked: int) -> None:
        """Answer the latest choice."""
        assert self._picking is not None
        self._picking.take(picked)

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


def need_gymnasium() -> Any:
    """Gymnasium; ConfigError where it is not installed."""
    try:
        import gymnasium
    except ImportError as error:
        raise ConfigError("Gymnasium is not installed; it needs the extra rl: pip install 'jobcast[rl]'") from error
    return gymnasium


def schedule_env(
    draw: Any, betas: tuple[float, ...], settings: MlfHSettings, forecast: AccuracyForecast | None = None
) -> Any:
    """An environment of Gymnasium around courses.

    An observation has `head` (0: jobs, 1: hosts), `rows` (MOST, features) and `mask` (MOST,); an action is a row. The
    reward is that of all rounds that passed, with the weights `betas`. `reset(seed=...)` draws a workload.

    Parameters
    ----------
    draw : a seed -> (workload, scale)

    Raises ConfigError without Gymnasium.
    """
    gym = need_gymnasium()
    wide = max(len(JOB_FEATURES), len(HOST_FEATURES))

    class ScheduleEnv(gym.Env):  # type: ignore[name-defined,misc]
        """See `schedule_env`."""

        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

        def __init__(self) -> None:
            self.action_space = gym.spaces.Discrete(MOST)
            self.observation_space = gym.spaces.Dict(
                {
                    "head": gym.spaces.Discrete(len(HEADS)),
                    "rows": gym.spaces.Box(-np.inf, np.inf, (MOST, wide), np.float64),
                    "mask": gym.spaces.MultiBinary(MOST),
                }
            )

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            """Begin with a workload that the seed draws."""
            super().reset(seed=seed)
            drawn = int(self.np_random.integers(2**31))
            workload, scale = draw(drawn)
            self._course = Course(workload, scale, settings, forecast, drawn)
            self._choice = self._course.next()
            return self._seen(), {"decisions": 0}

        def step(self, action: int) -> Any:
            """Pick; the choice after it, the reward of the rounds that passed, whether the run is over."""
            done, count = self._course.decisions, len(self._choice.rows) if self._choice else 0
            if not 0 <= action < count:
                raise ValueError(f"action {action} is none of the {count} rows to pick from")
            self._course.take(int(action))
            self._choice = self._course.next()
            told = self._course.rewards[done:]
            reward = float(sum((np.array(betas) @ each for each in told), 0.0))
            return self._seen(), reward, self._choice is None, False, {"decisions": self._course.decisions}

        def _seen(self) -> dict[str, Any]:
            rows, mask = np.zeros((MOST, wide)), np.zeros(MOST, dtype=np.int8)
            head = 0
            if self._choice is not None:
                shown = self._choice.rows[:MOST]
                rows[: len(shown), : shown.shape[1]] = shown
                mask[: len(shown)] = 1
                head = HEADS.index(self._choice.head)
            return {"head": head, "rows": rows, "mask": mask}

    assert len(betas) == OBJECTIVES
    return ScheduleEnv()
