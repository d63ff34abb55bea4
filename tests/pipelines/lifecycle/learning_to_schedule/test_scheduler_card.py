"""What the registry is told of a learned scheduler."""

import pytest

from jobcast.models.scheduling.policy import Measured, MlfPolicy, Training
from jobcast.pipelines.lifecycle.learning_to_schedule.training import TrainedScheduler
from jobcast.pipelines.lifecycle.predictors.task_order import scheduler_card
from jobcast.traces.table import Source
from tests.schedulers.tasks.test_task_network import arrays


@pytest.mark.parametrize(("better", "said"), [(True, "measured to be better"), (False, "not measured to be better")])
def test_the_card_says_whether_it_was_better(better, said):
    training = Training(seed=4, iterations=2, betas=(0.5, 0.4), servers=20, jobs=70, imitation={"jobs": 0.9})
    measured = Measured(3, {"mean_jct_s": -0.2}, {"mean_jct_s": -0.3}, {"mean_jct_s": -0.1})
    policy = MlfPolicy().set(arrays(), {"jobs": ("a",), "hosts": ()}, training, measured, better, 10.0, 20.0)
    trained = TrainedScheduler(policy, ({"reward": -0.5, "completion": -1.0},), ((0, -0.6), (2, -0.4)), ())
    card = scheduler_card(trained, "mine", Source("mine.csv", "ab" * 32, 100))
    assert card.description == f"ppo, trained on 70 jobs of mine; {said} than MLF-H"
    assert (card.seed, card.train_from_s, card.train_until_s, card.trace_rows) == (4, 10.0, 20.0, 100)
    assert card.parameters["better"] is better
    assert card.parameters["beta_2"] == 0.4
    assert card.metrics["against_mlf_h"] == {
        "mean": {"mean_jct_s": -0.2},
        "low": {"mean_jct_s": -0.3},
        "high": {"mean_jct_s": -0.1},
    }
    assert card.series == {"reward": (-0.5,), "check": (-0.6, -0.4)}
