"""Runs of the engine as an environment of Gymnasium: an action is one pick of the decision at hand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Course

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ConfigError("learning needs Gymnasium, which the extra gym brings: pip install 'jobcast[gym]'") from error

register = gymnasium.register
LARGEST = 1e6
"""Numbers of an observation are cut to +- this; they are of about the size of one."""
Seen = dict[str, Any]


class Scheduling(gymnasium.Env[Seen, Any]):
    """Courses pick by pick.

    An observation has `head` (what is picked, as a number), `rows` (most, columns; beyond what is read of each thing to
    pick from, all is 0) and `mask` (most,), 1 for each of these things. An action is a row. One that is not offered
    picks the first row. The reward is that of all decisions that were completed. An episode terminates with the last
    job, and is truncated at the instant that its course says. `info` has `rounds`, the decisions that were completed;
    `taught`, the row that a heuristic would pick; and `not_offered`, how many actions so far were not offered.

    Parameters
    ----------
    begin : draws a course
    columns : by head, how many its rows have
    most : rows of an observation
    weights : of objectives in the reward
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        begin: Callable[[np.random.Generator], Course],
        columns: Mapping[str, int],
        most: int,
        weights: Sequence[float],
    ) -> None:
        self._begin, self._heads = begin, tuple(columns)
        self._shape, self._weights = (most, max(columns.values())), np.array(weights)
        self.action_space = spaces.Discrete(most)
        self.observation_space = spaces.Dict(
            {
                "head": spaces.Discrete(len(columns)),
                "rows": spaces.Box(-LARGEST, LARGEST, self._shape, np.float64),
                "mask": spaces.MultiBinary(most),
            }
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Draw a course, the same for the same seed; there are no options."""
        super().reset(seed=seed)
        if options:
            raise ConfigError(f"reset knows no option {next(iter(options))}; give `gymnasium.make` what differs")
        self._course = self._begin(self.np_random)
        self._not_offered = self._shown = 0
        self._choice = self._course.next()
        return self._seen(), self._info()

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Pick, and go on to the next choice."""
        if self._choice is not None:
            # An untrained agent must be able to go on: it is counted, not refused.
            offered = 0 <= action < len(self._choice.rows)
            self._not_offered += not offered
            self._course.take(int(action) if offered else 0)
            self._choice = self._course.next()
        info, over = self._info(), self._choice is None
        reward = float(sum(self._weights @ one.earned for one in info["rounds"]))
        return self._seen(), reward, over and self._course.over, over and not self._course.over, info

    def _seen(self) -> Seen:
        rows, mask, head = np.zeros(self._shape), np.zeros(self._shape[0], dtype=np.int8), 0
        if self._choice is not None:
            count, columns = self._choice.rows.shape
            np.clip(self._choice.rows, -LARGEST, LARGEST, out=rows[:count, :columns])
            mask[:count] = 1
            head = self._heads.index(self._choice.head)
        return {"head": head, "rows": rows, "mask": mask}

    def _info(self) -> dict[str, Any]:
        """What an observation leaves out."""
        # Only what was completed since the last step: rewards are told once.
        rounds = tuple(self._course.rounds[self._shown :])
        self._shown += len(rounds)
        taught = 0 if self._choice is None else self._choice.taught
        return {"rounds": rounds, "taught": taught, "not_offered": self._not_offered}
