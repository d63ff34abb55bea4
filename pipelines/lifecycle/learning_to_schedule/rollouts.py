"""Runs of workloads with their choices written down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jobcast.domain.tasks import Floats, Ints
from jobcast.models.scheduling.policy import Picks, picks_of
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Choice, Course
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES, HEADS
from jobcast.schedulers.tasks.network import Networks, scores_of

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
    states : (n_decisions, n_numbers) how things stood before them; see `task_courses.state_of`
    """

    picks: Mapping[str, Picks]
    decision: Mapping[str, Ints]
    times_s: Floats
    rewards: Floats
    states: Floats


def roll_out(begin: Callable[[np.random.Generator], Course], seed: int, choose: Chooser) -> Rollout:
    """Run a course to its end.

    Parameters
    ----------
    begin : draws a course of jobs of tasks
    seed : of the draw
    choose : answers choices
    """
    rows: dict[str, list[Floats]] = {head: [] for head in HEADS}
    chosen: dict[str, list[int]] = {head: [] for head in HEADS}
    decision: dict[str, list[int]] = {head: [] for head in HEADS}
    course = begin(np.random.default_rng(seed))
    while (choice := course.next()) is not None:
        picked = choose(choice)
        rows[choice.head].append(choice.rows)
        chosen[choice.head].append(picked)
        decision[choice.head].append(len(course.rounds))
        course.take(picked)
    times_s, states, earned = zip(*course.rounds, strict=True)
    return Rollout(
        {head: picks_of(rows[head], chosen[head], FEATURES[head]) for head in HEADS},
        {head: np.array(decision[head], dtype=np.int64) for head in HEADS},
        np.array(times_s),
        np.array(earned),
        np.array(states),
    )


def as_taught(choice: Choice) -> int:
    """MLF-H's pick."""
    return choice.taught


def sampling(networks: Networks, rng: np.random.Generator) -> Chooser:
    """Picks drawn with the probabilities that the networks give: the largest of score + Gumbel noise."""

    def choose(choice: Choice) -> int:
        scores = scores_of(getattr(networks, choice.head), choice.rows)
        # Adding Gumbel noise and taking the largest draws from the softmax without computing it.
        return int(np.argmax(scores + rng.gumbel(size=len(scores))))

    return choose


def best(networks: Networks) -> Chooser:
    """The pick of the highest score."""
    return lambda choice: int(np.argmax(scores_of(getattr(networks, choice.head), choice.rows)))
