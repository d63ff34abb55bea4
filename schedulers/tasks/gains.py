"""What training will still gain, from what it gained last: the metric as c - a / (k + 1) after k epochs.

Errors of first-order methods fall like 1 / k (SLAQ, Zhang et al., SoCC 2017), so that one gain tells a.
"""

import numpy as np

from jobcast.domain.tasks import Floats, TaskView

UNSEEN = 1.0
"""a of a job that has not ended an epoch: the whole range of an accuracy."""


def epochs_seen(view: TaskView) -> Floats:
    """(n_jobs,) epochs that jobs have ended."""
    return np.floor(view.done / view.jobs.epoch_iterations + 1e-9)


def amplitude(view: TaskView) -> Floats:
    """(n_jobs,) a of each job's curve: the last gain x k (k + 1)."""
    epochs = epochs_seen(view)
    return np.where(np.isnan(view.last_gain), UNSEEN, np.maximum(view.last_gain, 0.0) * epochs * (epochs + 1.0))


def gain_until(view: TaskView, epoch: Floats) -> Floats:
    """(n_jobs,) what the metric will gain until some epochs (n_jobs,) are over; 0 where they are already."""
    epochs = np.where(np.isnan(view.last_gain), 0.0, epochs_seen(view))
    return amplitude(view) * np.maximum(0.0, 1.0 / (epochs + 1.0) - 1.0 / (np.maximum(epoch, 0.0) + 1.0))
