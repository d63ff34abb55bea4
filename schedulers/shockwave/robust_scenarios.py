"""What is left of jobs if forecasts of their regimes are wrong: slower or faster, so that the makespan is hedged.

Equation 10 takes the larger of mean load and longest job. A load forecast too high would hide a long job that cannot
wait, one too low costs nothing. So the longest job is measured at its slowest, the load at its fastest.
"""

from math import inf

from jobcast.domain.rounds import ActiveJob


def present_left_s(active: ActiveJob) -> float:
    """Seconds that a job still runs if it keeps its batch size; 0 for one that reports no epochs."""
    training, progress = active.job.training, active.progress
    if training is None or progress is None:
        return 0.0
    return (training.epochs - progress.epochs) * training.epoch_s[progress.batch_size]


def best_left_s(active: ActiveJob) -> float:
    """Seconds that a job still runs if it goes at its fastest from now on; infinite for one that reports no epochs."""
    training, progress = active.job.training, active.progress
    if training is None or progress is None:
        return inf
    return (training.epochs - progress.epochs) * min(training.epoch_s.values())
