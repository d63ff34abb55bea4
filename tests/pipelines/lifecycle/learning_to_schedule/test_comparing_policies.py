"""When a learned policy is measured to be better than MLF-H."""

import numpy as np
import pytest

from jobcast.pipelines.lifecycle.learning_to_schedule.comparison import FIGURES, change, compare, is_better, measured
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import networks_of
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.schedulers.tasks.test_task_network import arrays


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
