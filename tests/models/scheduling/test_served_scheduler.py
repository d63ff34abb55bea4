"""Scores of waiting jobs as MLflow serves them."""

import numpy as np
import pytest

from jobcast.models.scheduling.policy import MlfPolicy, Training
from jobcast.models.scheduling.served import ServedSchedulingPolicy
from jobcast.schedulers.tasks.features import JOB_FEATURES
from jobcast.schedulers.tasks.network import networks_of, scores_of
from tests.schedulers.tasks.test_task_network import arrays


def test_served_scores_are_those_that_the_scheduler_orders_by():
    training = Training(seed=0, iterations=0, betas=(1.0,), servers=1, jobs=1)
    policy = MlfPolicy().set(arrays(), {"jobs": JOB_FEATURES, "hosts": ()}, training)
    served = ServedSchedulingPolicy(policy)
    frame = served.example()
    frame.loc[1, "remaining"] = 0.7
    told = served.predict(frame)
    expected = scores_of(networks_of(arrays()).jobs, frame.to_numpy())
    np.testing.assert_allclose(told["score"], expected)
    assert told["probability"].sum() == pytest.approx(1.0)
    assert np.isclose(np.log(told["probability"][1] / told["probability"][0]), expected[1] - expected[0])
    assert list(told.columns) == list(served.outputs)
