"""Runs of workloads with their choices written down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jobcast.domain.tasks import AccuracyForecast, Floats, Ints
from jobcast.models.scheduling.policy import Picks, picks_of
from jobcast.pipelines.learning_to_schedule.environment import HEADS, Course
from jobcast.pipelines.learning_to_schedule.picking import HOSTS, JOBS, Choice
from jobcast.pipelines.learning_to_schedule.rewards import Scale
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES
from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.network import Networks, scores_of
from jobcast.simulator.task_workload import TaskWorkload

FEATURES: Mapping[str, int] = {JOBS: len(JOB_FEATURES), HOSTS: len(HOST_FEATURES)}
"""Columns by head."""
Chooser = Callable[[Choice], int]


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """A run.

    Attributes
    ----------
    picks : by head
    decision : by head, (n,) the decision that each pick belongs to
    times_s : (n_decisions,) when decisions were made
    rewards : (n_decisions, 5) what the rounds after them added to the objectives
    states : (n_decisions, n_numbers) how things stood before them; see `environment.state_of`
    """

    picks: Mapping[str, Picks]
    decision: Mapping[str, Ints]
    times_s: Floats
    rewards: Floats
    states: Floats


def roll_out(course: Course, choose: Chooser, *, taught: bool = False) -> Rollout:
    """Run a course to its end.

    Parameters
    ----------
    choose : answers choices
    taught : write down what MLF-H would have picked, in place of what was picked
    """
    rows: dict[str, list[Floats]] = {head: [] for head in HEADS}
    chosen: dict[str, list[int]] = {head: [] for head in HEADS}
    decision: dict[str, list[int]] = {head: [] for head in HEADS}
    while (choice := course.next()) is not None:
        picked = choose(choice)
        rows[choice.head].append(choice.rows)
        chosen[choice.head].append(choice.taught if taught else picked)
        decision[choice.head].append(course.decisions)
        course.take(picked)
    return Rollout(
        {head: picks_of(rows[head], chosen[head], FEATURES[head]) for head in HEADS},
        {head: np.array(decision[head], dtype=np.int64) for head in HEADS},
        np.array(course.times_s),
        np.array(course.rewards).reshape(-1, 5),
        np.array(course.states[: course.decisions]),
    )


def as_taught(choice: Choice) -> int:
    """MLF-H's pick."""
    return choice.taught


def sampling(networks: Networks, rng: np.random.Generator) -> Chooser:
    """Picks drawn with the probabilities that the networks give: the largest of score + Gumbel noise."""

    def choose(choice: Choice) -> int:
        scores = scores_of(getattr(networks, choice.head), choice.rows)
        return int(np.argmax(scores + rng.gumbel(size=len(scores))))

    return choose


def best(networks: Networks) -> Chooser:
    """The pick of the highest score."""
    return lambda choice: int(np.argmax(scores_of(getattr(networks, choice.head), choice.rows)))


def scale_of(workload: TaskWorkload, settings: MlfHSettings, forecast: AccuracyForecast | None, seed: int) -> Scale:
    """What MLF-H reaches on a workload, up to the end of an episode."""
    told = roll_out(Course(workload, Scale(1.0, 1.0), settings, forecast, seed), as_taught).rewards
    return Scale(-float(told[:, 0].sum()), -float(told[:, 2].sum()))
