"""From a workload to a policy: deterministic, and resumed where it was interrupted."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.models.registry.cards import content_sha256
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import EpisodeSettings
from jobcast.pipelines.lifecycle.learning_to_schedule.training import SCHEDULERS, SchedulerSettings, train_scheduler
from jobcast.schedulers.tasks.features import JOB_FEATURES, ML_FEATURES
from jobcast.schedulers.tasks.learned_priorities import LearnedPriorities, corrections_of
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import networks_of
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.simulator.tasks.task_cases import replay_tasks

WORKLOAD = small_workload(20)
SHORT = SchedulerSettings(
    iterations=2,
    workloads=1,
    runs=2,
    shown=2,
    imitation_steps=20,
    checks=1,
    compared=2,
    episode=EpisodeSettings(jobs=8, servers=(3, 3), load=(1.0, 1.0)),
)


@pytest.fixture(autouse=True)
def _torch(request):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'jobcast[rl]'")


def digest(trained, folder):
    trained.predictor.save(folder)
    return content_sha256(folder)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path, name):
    whole = train_scheduler(name, WORKLOAD, tmp_path / "whole", settings=SHORT)

    class Interrupt(BaseException):
        pass

    def stop(done, total):
        if (done, total) == (1, SHORT.iterations) and (tmp_path / "parts" / "state.json").exists():
            raise Interrupt

    with pytest.raises(Interrupt):
        train_scheduler(name, WORKLOAD, tmp_path / "parts", settings=SHORT, progress=stop)
    resumed = train_scheduler(name, WORKLOAD, tmp_path / "parts", settings=SHORT)
    assert len(whole.history) == 2
    assert resumed.history == whole.history
    assert digest(whole, tmp_path / "a") == digest(resumed, tmp_path / "b")
    if name == "device-rl":
        assert whole.predictor.training_.imitation.keys() == {"jobs", "hosts"}
        policy = MlfRl(networks_of(whole.predictor.arrays_))
    else:
        policy = LearnedPriorities(corrections_of(whole.predictor.arrays_))
    log = replay_tasks(WORKLOAD, policy, seed=0)
    assert np.isfinite(log.end_s).all()
    with pytest.raises(ConfigError, match="a training with other settings or jobs"):
        train_scheduler(name, WORKLOAD, tmp_path / "parts", settings=replace(SHORT, runs=3))


def test_device_rl_reads_completion_times_alone(tmp_path):
    trained = train_scheduler("device-rl", WORKLOAD, tmp_path, settings=replace(SHORT, iterations=1))
    weights = trained.predictor.arrays_["jobs.first"]
    blank = [JOB_FEATURES.index(name) for name in ML_FEATURES]
    assert not weights[blank].any()
    assert weights[JOB_FEATURES.index("remaining")].any()
    assert trained.predictor.training_.betas == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert not SCHEDULERS["device-rl"].settings.migration


def test_without_iterations_the_policy_is_mlf_h(tmp_path):
    trained = train_scheduler("mlf-policy", WORKLOAD, tmp_path, settings=replace(SHORT, iterations=0))
    assert trained.checks == ((0, 0.0),)
    assert set(trained.predictor.measured_.means.values()) == {0.0}
    assert not trained.predictor.better_


@pytest.mark.slow
def test_weights_of_the_reward_are_searched_where_that_is_asked_for(tmp_path):
    trained = train_scheduler("mlf-policy", WORKLOAD, tmp_path, settings=replace(SHORT, iterations=1, tune=1))
    assert len(trained.tried) == 1 + 5
    best = max(trained.tried, key=lambda each: each["value"])
    assert trained.predictor.training_.betas == best["betas"]


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'mlf' is no learned scheduler; choose from mlf-policy, device-rl"):
        train_scheduler("mlf", WORKLOAD, tmp_path)
