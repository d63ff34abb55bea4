"""When forecasts are asked for, and what they are shown."""

import numpy as np
import pytest

from tests.simulator.tasks.task_cases import TaskJob, cluster_of, replay_tasks, workload_of
from tests.simulator.tasks.task_policies import Script

SERVERS = cluster_of(1, 4)


class Asked:
    """A forecast that keeps its questions."""

    def __init__(self):
        self.questions = []

    def __call__(self, jobs, shown, seen, epochs):
        self.questions.append((jobs.tolist(), shown.copy(), seen.tolist(), epochs.tolist()))
        return 0.5 + 0.01 * seen, 0.1 * jobs + 0.1

    def seen_of(self, job):
        return [seen[jobs.index(job)] for jobs, _, seen, _ in self.questions if job in jobs]


def ask(rows, **options):
    """Questions, and what the policy saw; each job's first task on its own GPU from the beginning, 60 s a round."""
    forecast, policy = Asked(), Script({0: {"put": [(job, job) for job in range(len(rows))]}})
    replay_tasks(workload_of(rows, SERVERS), policy, forecast, fluctuation=0.0, **options)
    return forecast, policy


@pytest.mark.parametrize(
    ("epochs", "every", "seen"),
    [
        (40, 0.1, [4, 8, 12, 16, 20, 24, 28, 32, 36]),
        (40, 0.25, [12, 24, 36]),  # not after 8, fewer than ten
        (11, 0.1, [2, 4, 6, 8]),  # not after the first alone; then 1.1 epochs or more
        (10, 0.1, [1, 2, 3, 4, 5, 6, 7, 8, 9]),  # of few epochs one is enough
        (5, 0.1, [1, 2, 3, 4]),  # once an epoch, no oftener
        (2, 0.1, [1]),
        (1, 0.1, []),
    ],
)
def test_every_share_of_the_epochs(epochs, every, seen):
    """Ten rounds of 60 iterations: at their ends a tenth of the epochs more is over."""
    forecast, _ = ask([TaskJob(epochs=epochs, iterations=600.0)], forecast_every=every)
    assert forecast.seen_of(0) == seen


def test_what_is_shown_ends_with_what_is_over_and_jobs_are_asked_about_together():
    rows = [TaskJob(epochs=5, iterations=600.0), TaskJob(epochs=10, iterations=600.0), TaskJob(iterations=50.0)]
    forecast, policy = ask(rows)
    jobs, shown, seen, epochs = forecast.questions[1]  # after 120 s
    assert (jobs, seen, epochs) == ([0, 1], [1, 2], [5, 10])
    curves = [0.9 * (1.0 - np.exp(-3.0 * np.arange(1, 3) / count)) for count in (5, 10)]
    assert np.allclose(shown, [[curves[0][0], np.nan], curves[1]], equal_nan=True)
    assert [question[0] for question in forecast.questions[:2]] == [[1], [0, 1]]  # the third job was over by then
    assert policy.of("final_mean", 0) == pytest.approx(
        {0: np.nan, 60: np.nan, 120: 0.51, 180: 0.51, 240: 0.52, 300: 0.52, 360: 0.53, 420: 0.53, 480: 0.54, 540: 0.54},
        nan_ok=True,
    )
    assert policy.of("final_sd", 1)[60] == pytest.approx(0.2)


def test_without_a_forecast_nothing_is_known():
    policy = Script({0: {"put": [(0, 0)]}})
    replay_tasks(workload_of([TaskJob(iterations=600.0)], SERVERS), policy)
    assert np.isnan(list(policy.of("final_mean").values())).all()
