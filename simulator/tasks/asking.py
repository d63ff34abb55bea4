"""Forecasts of jobs' final metrics, asked for in batches as epochs pass."""

import numpy as np

from jobcast.domain.tasks import AccuracyForecast, Ints
from jobcast.simulator.tasks.state import ACTIVE, TaskState, TaskWorld

FEW_EPOCHS = 10
"""Jobs of at most so many epochs are asked about after their first; others after their second, which shows a trend."""
DUST = 1e-9
"""Epochs by which a share may be missed for multiplying floats."""


def ask_forecasts(forecast: AccuracyForecast, world: TaskWorld, state: TaskState, epochs: Ints, every: float) -> None:
    """Ask about all active jobs that finished a new part of their epochs since they were last asked about.

    Parameters
    ----------
    forecast : shown the metric of epochs 1, 2, ... in columns 0, 1, ...; nothing beyond the epochs finished
    epochs : (n_jobs,) that the jobs declare
    every : share of a job's epochs between two questions; at least one epoch
    """
    active = state.active[: state.counts[ACTIVE]]
    seen = state.epoch[active]
    least = np.where(epochs[active] <= FEW_EPOCHS, 1, 2)
    due = (seen >= least) & (seen - state.asked[active] >= np.maximum(1.0, every * epochs[active] - DUST))
    jobs, seen = active[due], seen[due]
    if not len(jobs):
        return
    columns = np.arange(1, int(seen.max()) + 1)
    shown = np.where(columns <= seen[:, None], world.metric[jobs, 1 : int(seen.max()) + 1], np.nan)
    mean, sd = forecast(jobs.copy(), shown, seen, epochs[jobs])
    state.final_mean[jobs], state.final_sd[jobs] = mean, sd
    state.asked[jobs] = seen
