"""What learned schedulers earn, what follows for their weights, and when they are better than MLF-H."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.scheduling.policy import Measured, MlfPolicy, Training, picks_of
from jobcast.pipelines.lifecycle.learning_to_schedule.explorations import FIGURES, change, compare, is_better, measured
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES
from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import Rollout, advantages, earned, improve
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import (
    HORIZON_S,
    STEP_S,
    Scale,
    Standing,
    objectives,
    returns,
)
from jobcast.pipelines.lifecycle.learning_to_schedule.training import TrainedScheduler
from jobcast.pipelines.lifecycle.predictors.task_order import scheduler_card
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import networks_of
from jobcast.traces.table import Source
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.schedulers.tasks.test_task_network import arrays

SCALE = Scale(mean_jct_s=600.0, moved_mb=1000.0)


def standing(now_s, over, accuracy=(0.0, 0.0), sent_mb=0.0):
    return Standing(now_s, np.array(over), np.array([True, True]), np.array(accuracy), sent_mb)


def between(before, after, deadline_s=(np.inf, np.inf), target=(np.nan, np.nan)):
    return objectives(before, after, np.array(deadline_s), np.array(target), SCALE)


def test_an_active_job_costs_the_time_that_passes_and_a_deadline_once_when_it_passes():
    told = between(standing(0.0, [False, True]), standing(300.0, [False, True], sent_mb=50.0))
    assert told.tolist() == pytest.approx([-300.0 / (2 * 600.0), 0.0, -0.05, 0.0, 0.0])
    jobs = {"deadline_s": (250.0, 250.0)}
    assert between(standing(0.0, [False, True]), standing(300.0, [False, True]), **jobs)[1] == -0.5
    assert between(standing(300.0, [False, True]), standing(600.0, [False, True]), **jobs)[1] == 0.0


def test_a_missing_accuracy_costs_at_the_deadline_or_the_end():
    needs, begun = {"deadline_s": (250.0, 9e9), "target": (0.5, 0.5)}, standing(0.0, [False] * 2)
    poor, good = (0.4, 0.4), (0.6, 0.6)
    for over, accuracy, cost in (([False, False], poor, -0.5), ([False, True], poor, -1.0), ([False, True], good, 0.0)):
        assert between(begun, standing(300.0, over, accuracy), **needs)[3] == cost
    late = between(standing(300.0, [False] * 2), standing(600.0, [True, False], poor), **needs)
    assert late[3] == 0.0  # was judged at its deadline


def test_accuracy_counts_until_the_deadline():
    told = between(standing(300.0, [False] * 2), standing(600.0, [False] * 2, (0.2, 0.3)), deadline_s=(250.0, 900.0))
    assert told[4] == pytest.approx(0.15)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30), st.integers(0, 99))
def test_returns_are_the_discounted_sums_up_to_the_horizon(rewards, seed):
    gaps = np.random.default_rng(seed).uniform(300.0, 4 * 3600.0, len(rewards))
    now_s = np.cumsum(gaps)
    found = returns(np.array(rewards), now_s, eta=0.9)
    for place in range(len(rewards)):
        apart = now_s[place:] - now_s[place]
        kept = apart < HORIZON_S
        expected = (0.9 ** (apart / STEP_S) * np.array(rewards[place:]))[kept].sum()
        assert found[place] == pytest.approx(expected, abs=1e-9)


BETAS = (1.0, 0.0, 0.0, 0.0, 0.0)


def run(rewards, chosen=0, states=None):
    """A run whose first decision had one choice of two jobs."""
    rows = np.eye(2, FEATURES["jobs"])
    return Rollout(
        {"jobs": picks_of([rows], [chosen], FEATURES["jobs"]), "hosts": picks_of([], [], FEATURES["hosts"])},
        {"jobs": np.array([0]), "hosts": np.empty(0, dtype=np.int64)},
        900.0 * np.arange(len(rewards)),
        np.column_stack([rewards, np.ones((len(rewards), 4))]).astype(float),
        np.zeros((len(rewards), 2)) if states is None else np.array(states),
    )


def test_an_advantage_is_what_a_run_earns_beyond_the_others():
    found = advantages([run([1.0, 1.0]), run([0.0, 2.0]), run([0.0])], BETAS)
    first = [1.95 - (1.9 + 0.0) / 2, 1.0 - (2.0 + 0.0) / 2]
    second = [1.9 - 1.95 / 2, 2.0 - 1.0 / 2]
    third = [-(1.95 + 1.9) / 2]
    spread = np.std(first + second + third)
    for own, expected in zip(found, (first, second, third), strict=True):
        assert own.tolist() == pytest.approx([value / spread for value in expected])


def test_what_follows_from_how_runs_stand_is_no_advantage():
    states = np.random.default_rng(0).normal(size=(40, 1, 1))
    luck = [run([3.0 * state[0, 0]], states=state) for state in states]
    assert np.abs(np.concatenate(advantages(luck, BETAS))).max() < 1e-5
    better = [run([3.0 * state[0, 0] + 2.0 * (k == 2)], states=state) for k, state in enumerate(states)]
    assert int(np.argmax(np.concatenate(advantages(better, BETAS)))) == 2


def test_what_was_earned_is_not_discounted():
    reward, objectives = earned([run([1.0, 1.0]), run([0.0, 4.0])], (1.0, 0.5, 0.0, 0.0, 0.0))
    assert objectives.tolist() == [3.0, 2.0, 2.0, 2.0, 2.0]
    assert reward == 4.0


def test_the_choice_of_better_runs_becomes_likelier():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'jobcast[rl]'")
    from jobcast.models.scheduling.learner import Learner

    learner = Learner(FEATURES)
    group = [run([1.0], chosen=1), run([0.0], chosen=0)]
    before = learner.log_chances("jobs", group[0].picks["jobs"])[0]
    improve(learner, [group], BETAS, seed=0)
    assert learner.log_chances("jobs", group[0].picks["jobs"])[0] > before


def changes(jct, deadline=0.0, accuracy=0.0):
    noise = np.array([-0.01, 0.0, 0.01])
    found = np.zeros((3, len(FIGURES)))
    for name, value in (("mean_jct_s", jct), ("deadline_ratio", deadline), ("accuracy_ratio", accuracy)):
        found[:, FIGURES.index(name)] = value + noise
    return measured(found)


def test_completion_times_are_told_as_shares_and_ratios_as_differences():
    mine = dict.fromkeys(FIGURES, 3.0)
    theirs = dict.fromkeys(FIGURES, 4.0)
    assert change(mine, theirs).tolist() == [-0.25, -0.25, -1.0, -1.0, -1.0]


def test_the_interval_is_students():
    found = changes(-0.2)
    assert found.means["mean_jct_s"] == pytest.approx(-0.2)
    # t of two degrees of freedom at 97.5 %: 4.303; the mean's standard error: 0.01 / sqrt(3)
    assert found.highs["mean_jct_s"] == pytest.approx(-0.2 + 4.303 * 0.01 / 3**0.5, abs=1e-5)


@pytest.mark.parametrize(
    ("told", "better"),
    [
        (changes(-0.2), True),
        (changes(-0.01), False),  # within the noise
        (changes(0.2), False),
        (changes(-0.2, deadline=-0.01), True),  # within the noise
        (changes(-0.2, deadline=-0.2), False),
        (changes(-0.2, accuracy=-0.2), False),
    ],
)
def test_better_is_measurably_faster_and_keeps_what_was_promised(told, better):
    assert is_better(told) == better


def test_a_policy_against_itself_changes_nothing():
    policy = MlfRl(networks_of(arrays()))
    found = compare(policy, policy, [small_workload(6), small_workload(6, seed=1)], [0, 1])
    assert set(found.means.values()) == {0.0}
    other = compare(policy, MlfH(), [small_workload(6), small_workload(6, seed=1)], [0, 1])
    assert any(other.means.values())


@pytest.mark.parametrize(("better", "said"), [(True, "measured to be better"), (False, "not measured to be better")])
def test_the_card_says_whether_it_was_better(better, said):
    training = Training(seed=4, iterations=2, betas=(0.5, 0.4), servers=20, jobs=70, imitation={"jobs": 0.9})
    measured = Measured(3, {"mean_jct_s": -0.2}, {"mean_jct_s": -0.3}, {"mean_jct_s": -0.1})
    policy = MlfPolicy().set(arrays(), {"jobs": ("a",), "hosts": ()}, training, measured, better, 10.0, 20.0)
    trained = TrainedScheduler(policy, ({"reward": -0.5, "completion": -1.0},), ((0, -0.6), (2, -0.4)), ())
    card = scheduler_card(trained, "mine", Source("mine.csv", "ab" * 32, 100))
    assert card.description == f"pgpe, trained on 70 jobs of mine; {said} than MLF-H"
    assert (card.seed, card.train_from_s, card.train_until_s, card.trace_rows) == (4, 10.0, 20.0, 100)
    assert card.parameters["better"] is better
    assert card.parameters["beta_2"] == 0.4
    against = {name: one["mean_jct_s"] for name, one in card.metrics["against_mlf_h"].items()}
    assert against == {"mean": -0.2, "low": -0.3, "high": -0.1}
    assert card.series == {"reward": (-0.5,), "check": (-0.6, -0.4)}
