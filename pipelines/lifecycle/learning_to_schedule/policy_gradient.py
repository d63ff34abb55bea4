"""Runs with their choices written down; from these imitation of MLF-H, then policy gradient on reward 7.

MLFS, section 3.4.

What a run earns says more of its jobs than of the policy. So several runs of one workload are made, and what each
earns after an instant is compared with the mean of the others there (Mao et al., SIGCOMM 2019, section 5.3). And runs
part: one with more jobs left will lose more whatever it decides next. So what a linear fit tells from how a run stands
is taken off as well. Neither depends on the choice that is judged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.scheduling.learner import BETAS, Fit, Learner
from jobcast.models.scheduling.policy import Picks, joined, picks_of
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import Choice, Course
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES, HEADS
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import returns
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


BATCH = 512
"""Choices of each head in a step."""
IMITATION_RATE = 3e-3
"""Adam's learning rate, falling to a tenth of it."""


def picks_by_head(rollouts: Sequence[Rollout]) -> dict[str, Picks]:
    """Choices of some runs."""
    return {head: joined((one.picks[head] for one in rollouts), FEATURES[head]) for head in HEADS}


def imitate(
    learner: Learner,
    shown: Sequence[Rollout],
    steps: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Fit]:
    """Learn picks that were written down; how well those of the last fifth of the runs, kept back, are told.

    Parameters
    ----------
    shown : runs of MLF-H, two at least
    steps : of Adam
    seed : of the batches
    """
    # Whole runs are held back: picks of one run are alike.
    kept = max(len(shown) // 5, 1)
    learnt, held = picks_by_head(shown[:-kept]), picks_by_head(shown[-kept:])
    rng = np.random.default_rng(seed)
    for step in range(steps):
        batch = {
            head: picks.take(rng.integers(0, len(picks), BATCH)) if len(picks) else picks
            for head, picks in learnt.items()
        }
        learner.imitate(batch, IMITATION_RATE * 0.1 ** (step / steps))
        if progress is not None:
            progress(step + 1, steps)
    return {head: learner.fit_of(head, picks) for head, picks in held.items() if len(picks)}


PASSES = 4
"""Times that the picks of an iteration are gone through."""
BATCHES = 4
"""Steps of a pass."""
RATE = 1e-3
"""Of Adam, falling to a tenth of it."""
LEAST_SPREAD = 1e-6


def advantages(runs: Sequence[Rollout], betas: Sequence[float]) -> list[Floats]:
    """Of runs of one workload: how much more each earned after each decision than was to be expected, (n_decisions,).

    In units of their standard deviation, so that no workload counts for more because more is at stake in it.
    """
    weights = np.asarray(betas)
    # Undiscounted objectives are weighted first: discounting is linear.
    gains = [returns(run.rewards @ weights, run.times_s)[:, None] for run in runs]
    beyond = np.concatenate(_beyond_others(runs, gains))[:, 0]
    states = np.concatenate(_beyond_others(runs, [run.states for run in runs]))
    # Of both what others had at that time is taken off, so that only deviations are fitted.
    slopes = np.linalg.lstsq(states, beyond, rcond=None)[0]
    found = beyond - states @ slopes
    # Runs that all earned the same teach nothing; dividing by 0 would teach noise.
    found /= max(float(found.std()), LEAST_SPREAD)
    return np.split(found, np.cumsum([len(run.times_s) for run in runs])[:-1])


def _beyond_others(runs: Sequence[Rollout], numbers: Sequence[Floats]) -> list[Floats]:
    """Numbers by decision, (n_decisions, k), less the mean of the other runs at the same time; 0 after a run's end."""
    found = []
    for own, mine in zip(runs, numbers, strict=True):
        others = [
            np.column_stack([np.interp(own.times_s, run.times_s, column, right=0.0) for column in theirs.T])
            for run, theirs in zip(runs, numbers, strict=True)
            if run is not own
        ]
        found.append(mine - np.mean(others, axis=0))
    return found


def earned(runs: Sequence[Rollout], betas: Sequence[float]) -> tuple[float, Floats]:
    """What runs earned: the reward in all, and by objective; means over runs, undiscounted."""
    totals = np.mean([run.rewards.sum(axis=0) for run in runs], axis=0)
    return float(totals @ np.asarray(betas)), totals


def improve(
    learner: Learner, groups: Sequence[Sequence[Rollout]], betas: Sequence[float], seed: int, rate: float = RATE
) -> tuple[float, Floats]:
    """Some passes of clipped PPO over the picks of runs, those of one workload in a group; what the runs earned."""
    runs = [run for group in groups for run in group]
    by_run = [each for group in groups for each in advantages(group, betas)]
    picks = picks_by_head(runs)
    # Chances under which the picks were drawn: PPO clips against these in every pass.
    before = {head: learner.log_chances(head, picks[head]) for head in HEADS}
    worth = {
        head: np.concatenate([each[run.decision[head]] for run, each in zip(runs, by_run, strict=True)])
        for head in HEADS
    }
    rng = np.random.default_rng(seed)
    for _ in range(PASSES):
        # Each head in as many batches, whatever its number of picks: steps are taken together.
        parts = {head: np.array_split(rng.permutation(len(picks[head])), BATCHES) for head in HEADS}
        for number in range(BATCHES):
            which = {head: parts[head][number] for head in HEADS}
            learner.improve(
                {head: picks[head].take(which[head]) for head in HEADS},
                {head: before[head][which[head]] for head in HEADS},
                {head: worth[head][which[head]] for head in HEADS},
                rate,
            )
    return earned(runs, betas)


def worth(objectives: tuple[float, ...]) -> float:
    """Reward 7 with the weights of section 4.1, whatever weights were trained with: one yardstick for all."""
    return float(np.asarray(objectives) @ np.asarray(BETAS))
