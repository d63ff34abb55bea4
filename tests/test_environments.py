"""The environments that are registered."""

import re
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from jobcast import environments
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import EpisodeSettings
from jobcast.testing import world
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload

SMALL = {"workload": small_workload(12), "episode": EpisodeSettings(jobs=6, servers=(3, 3), load=(1.0, 1.0))}
CASES = [
    ("jobcast/Tasks-v0", {}),
    ("jobcast/Tasks-v0", SMALL),
    *(("jobcast/Queues-v0", {"law": law}) for law in environments.LAWS),
    ("jobcast/Queues-v0", {"draw": environments.stretches(world("runtime", 1).workload, 10)}),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_gymnasium_finds_nothing_to_warn_of(name, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, **settings).unwrapped)


@pytest.mark.parametrize(("name", "settings"), CASES[1:])
def test_an_episode_is_the_same_for_the_same_seed_and_ends(name, settings):
    def played(seed):
        env = gymnasium.make(name, **settings)
        rng, told = np.random.default_rng(0), [env.reset(seed=seed)]
        over = False
        while not over:
            action = rng.choice(np.flatnonzero(told[-1][0]["mask"]))
            told.append(env.step(action))
            over = told[-1][2] or told[-1][3]
        return told

    first, again, other = played(3), played(3), played(4)
    assert data_equivalence(first, again, exact=True)
    assert not data_equivalence(first, other, exact=True)
    assert sum(step[1] for step in first[1:]) < 0.0


def test_the_page_of_mlf_rl_runs_and_mlf_h_earns_its_own_share():
    page = (Path(__file__).parents[1] / "docs" / "mlf-rl.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    told = {}
    exec(block, told)
    assert told["over"]
    assert told["info"]["not_offered"] == 0
    assert -1.5 < told["earned"] < -0.25  # -0.5 and -0.25 for MLF-H's own completion times and traffic, more for delays


def test_a_law_in_which_no_gangs_run_is_refused():
    with pytest.raises(ConfigError, match="no queues under law speedup; choose from runtime, epochs, goodput"):
        environments.queues(law="speedup")
